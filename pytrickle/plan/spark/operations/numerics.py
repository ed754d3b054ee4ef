"""Sums, averages and extremes of numerics in Spark, as the texts that PostgreSQL shows.

The scale of a sum is that of its widest addend. How values travel says `numeric_text`; what is too wide for Spark's
decimals raises INEXACT.
"""

from pytrickle.plan.spark import numeric_text
from pytrickle.plan.spark.bounds import Bounds
from pytrickle.plan.spark.grouping import RAISE, numeric_aggregates
from pytrickle.plan.spark.operations.quotient import divided

# All values of bigint; a sum of as many as there are numbers for rows has 38 digits.
INTEGER = "DECIMAL(19,0)"
RAISED = f"CAST({RAISE} AS STRING)"
# A session without ANSI mode writes small decimals with an exponent.
PLAIN = f"CASE WHEN {{0}} LIKE '%E%' THEN {RAISED} ELSE {{1}} END"
# What PostgreSQL's own sum and avg give where some value is NaN or infinite.
IS_NAN = "({column}_nan > 0 OR ({column}_pinf > 0 AND {column}_ninf > 0))"
SUM_OR_AVG = f"""\
CASE WHEN {{column}}_n = 0 THEN NULL WHEN {IS_NAN} THEN 'NaN' \
WHEN {{column}}_pinf > 0 THEN 'Infinity' WHEN {{column}}_ninf > 0 THEN '-Infinity' ELSE {{value}} END"""
SUM = f"""\
CASE WHEN {{column}}_n = 0 THEN NULL WHEN {IS_NAN} THEN CAST({{nan}} AS {{type}}) \
WHEN {{column}}_pinf > 0 OR {{column}}_ninf > 0 OR abs({{column}}_s) >= {{nan}} THEN {RAISE} \
ELSE CAST({{column}}_s AS {{type}}) END"""
# NaN is larger than all other values.
LEAST = """\
CASE WHEN {column}_n = 0 THEN NULL WHEN {column}_ninf > 0 THEN '-Infinity' WHEN {column}_min IS NOT NULL THEN {value} \
WHEN {column}_pinf > 0 THEN 'Infinity' ELSE 'NaN' END"""
GREATEST = """\
CASE WHEN {column}_n = 0 THEN NULL WHEN {column}_nan > 0 THEN 'NaN' WHEN {column}_pinf > 0 THEN 'Infinity' \
WHEN {column}_max IS NOT NULL THEN {value} ELSE '-Infinity' END"""
EXTREMES = {"min": LEAST, "max": GREATEST}
FOUND = f"CASE WHEN {{column}}_kind = {numeric_text.FINITE} THEN {{column}}_value END"

Items = dict[str, str]


def read(column: str) -> Items:
    """Read what a text is, its value and its scale."""
    return {
        f"{column}_kind": numeric_text.kind(column),
        f"{column}_value": numeric_text.value(column),
        f"{column}_scale": numeric_text.scale(column),
    }


def read_decimal(column: str, bounds: Bounds) -> Items:
    """Read a number that comes as a decimal with such bounds."""
    nan = f"{column} = {numeric_text.power(bounds.digits)}"
    value = f"CASE WHEN {column} IS NULL OR {nan} THEN 0 ELSE {column} END"
    kind = f"WHEN {nan} THEN {numeric_text.NAN} ELSE {numeric_text.FINITE}"
    return {
        f"{column}_kind": f"CASE WHEN {column} IS NULL THEN {numeric_text.NULL} {kind} END",
        f"{column}_value": f"CAST({value} AS {numeric_text.VALUE})",
        f"{column}_scale": f"CASE WHEN NOT {nan} THEN {bounds.scale} END",
    }


def read_integer(column: str) -> Items:
    """Read an integer, which always fits, as a numeric without digits behind the point."""
    return {
        f"{column}_kind": f"CASE WHEN {column} IS NULL THEN {numeric_text.NULL} ELSE {numeric_text.FINITE} END",
        f"{column}_value": f"coalesce(CAST({column} AS {INTEGER}), 0)",
        f"{column}_scale": f"CASE WHEN {column} IS NOT NULL THEN 0 END",
    }


def aggregates(column: str, function: str, over: str = "") -> Items:
    """Write what is taken for a function of the values of a group, or of those that its window is `over`."""
    found = numeric_aggregates(column, over) | {f"{column}_places": f"max({column}_scale){over}"}
    if function in EXTREMES:
        found[f"{column}_{function}"] = f"{function}({FOUND.format(column=column)}){over}"
    return found


def quotients(column: str) -> tuple[Items, ...]:
    """Write an average step by step, each over the columns before it; the last one is its text."""
    return divided(f"{column}_avg", f"{column}_s", f"{column}_n", f"{column}_places")


def result(function: str, column: str) -> str:
    """Write the result of a function as PostgreSQL's text."""
    if function in EXTREMES:
        return EXTREMES[function].format(column=column, value=_shown(f"{column}_{function}", f"{column}_places"))
    value = f"{column}_avg" if function == "avg" else _shown(f"{column}_s", f"{column}_places")
    return SUM_OR_AVG.format(column=column, value=value)


def is_nan(column: str) -> str:
    """Write that the sum of a column is NaN."""
    return IS_NAN.format(column=column)


def read_sum(column: str, digits: int, scale: int) -> str:
    """Write the sum of a column, NaN as the least number of more digits; raise where it has more."""
    return SUM.format(column=column, nan=numeric_text.power(digits), type=f"DECIMAL({digits + 1 + scale},{scale})")


def trimmed(text: str) -> str:
    """Leave out the zeros at the end of the digits behind the point."""
    cut = f"TRIM(TRAILING '.' FROM TRIM(TRAILING '0' FROM {text}))"
    return f"CASE WHEN position('.' IN {text}) > 0 THEN {cut} ELSE {text} END"


def _shown(value: str, places: str) -> str:
    """Write a number with so many digits behind the point; there are no others than zeros after them."""
    text = f"CAST({value} AS STRING)"
    behind = f"CASE WHEN {places} > 0 THEN '.' || rpad(split_part({text}, '.', 2), {places}, '0') ELSE '' END"
    return PLAIN.format(text, f"split_part({text}, '.', 1) || {behind}")
