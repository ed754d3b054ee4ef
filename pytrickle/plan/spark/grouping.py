"""Grouping in Spark: what the leaves carry for an aggregate's arguments, and the sums that Spark takes over it.

Groups are told apart by the texts of their keys, or by numbers, so one group may come in several parts (1.0 and 1.00);
the write transaction puts the parts together. Spark's decimals have 38 digits: what does not fit raises INEXACT there,
and the refresh is computed by PostgreSQL instead. A declared type of few enough digits always fits, NaN as a number
that has one digit more; values of others go with a code that says what they are.
"""

from dataclasses import dataclass

from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.query import Call
from pytrickle.plan.postgres.aggregate import INTEGERS, SCALED, Merge, is_numeric
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark import numeric_text
from pytrickle.plan.spark.key_encoding import carried_key, shown_key
from pytrickle.plan.spark.numeric_text import power

INEXACT = "pytrickle: a value or a sum is too wide for the decimals of Spark"
WEIGHT_TYPE = "DECIMAL(9,0)"

RAISE = f"raise_error('{INEXACT}')"


@dataclass(frozen=True, slots=True)
class SparkGrouping:
    """What Spark groups by, each key with its text in Spark's SQL, and its aggregates by name; `consolidated` says that
    rows must cancel out first."""

    by: tuple[tuple[str, str], ...]
    aggregates: tuple[tuple[str, str], ...]
    consolidated: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result."""
        return tuple(name for name, _ in (*self.by, *self.aggregates))


def spark_grouping(grouped: Grouped, sums: bool = True) -> SparkGrouping | None:
    """Return how Spark computes parts of the increments; None if it cannot compute one of them exactly.

    Without `sums` it computes none of numerics.
    """
    types = dict(grouped.types)
    calls = [call for call in grouped.aggregate.calls if call.written is None and call.argument is not None]
    if not sums and any(is_numeric(types[call.argument or ""]) for call in calls):
        return None
    keys, found = _copied_keys(grouped), {"pgt_rows": f"sum({WEIGHT})"}
    for call in calls:
        argument = call.argument or ""
        if call.function not in {"min", "max"} or types[argument] in INTEGERS:
            found |= _aggregates(call, types[argument])
        elif key := keys.get(argument):
            # Of one text of a key there is one value.
            shown = shown_key(f"`{key}`", types[key])
            found[f"{call.name}_v"] = f"max({shown}) FILTER (WHERE {WEIGHT} > 0)"
        else:
            return None
    direct = [column.name for column in grouped.merged if column.merge is not Merge.SCALES]
    scales = tuple(column.name.removesuffix("s") for column in grouped.merged if column.merge is Merge.SCALES)
    if not set(direct) <= set(found):
        return None
    by = tuple((name, shown_key(f"`{name}`", types.get(name, ""))) for name in (*grouped.keys, *scales))
    return SparkGrouping(by, tuple((name, found[name]) for name in direct), bool(grouped.extrema))


def _copied_keys(grouped: Grouped) -> dict[str, str]:
    """Return the keys of which there are copies as arguments, by these: those of which equal values look different."""
    blocks = [dict(block.columns) for block in blocks_of(grouped.aggregate.input)]
    pairs = ((argument, key) for argument in grouped.arguments for key in grouped.keys)
    return {argument: key for argument, key in pairs if all(each[argument] == each[key] for each in blocks)}


def carried_columns(grouped: Grouped, name: str, sql: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Write what PostgreSQL evaluates for a column below the aggregate, a key or an argument.

    Return beside it what Spark makes of that, at the place {}: columns, as name and text.
    """
    type_name = dict(grouped.types)[name]
    if name in grouped.keys:
        return carried_key(sql, type_name), ((name, "{}"),)
    if type_name in INTEGERS:
        return f"CAST({sql} AS bigint)", ((name, "{}"),)
    if digits := _fitting_digits(type_name):
        return numeric_text.as_decimal(sql, *digits), ((f"{name}_value", "{}"),)
    if is_numeric(type_name):
        found = [(f"{name}_kind", numeric_text.kind("{0}")), (f"{name}_value", numeric_text.value("{0}"))]
        found += [(f"{name}_scale", numeric_text.scale("{0}"))] if type_name == "numeric" else []
        return f"CAST({sql} AS text)", tuple(found)
    return f"CAST(CASE WHEN ({sql}) IS NOT NULL THEN 1 ELSE 0 END AS smallint)", ((f"{name}_kind", "{}"),)


def _fitting_digits(type_name: str) -> tuple[int, int] | None:
    """Return the declared digits of a type, all and those behind the point, if they are few enough.

    >>> [_fitting_digits(name) for name in ("numeric(27,12)", "numeric(18,2)", "numeric(20,13)", "numeric(3,-2)")]
    [(27, 12), None, None, None]
    """
    declared = SCALED.fullmatch(type_name)
    if declared is None:
        return None
    precision, scale = int(declared[1]), int(declared[2])
    return (precision, scale) if 0 <= scale <= min(12, precision) and precision - scale <= 15 else None


def _aggregates(call: Call, type_name: str) -> dict[str, str]:
    """Write the aggregates of one call in Spark's SQL, under the names of the state's columns."""
    name = call.argument
    if call.function in {"min", "max"}:
        return {f"{call.name}_v": f"{call.function}({name}) FILTER (WHERE {WEIGHT} > 0)"}
    if type_name in INTEGERS:
        value = f"coalesce(CAST({name} AS DECIMAL(20,0)), 0)"
        return {f"{name}_n": _counted(f"{name} IS NOT NULL"), f"{name}_s": _summed(_product(value))}
    if digits := _fitting_digits(type_name):
        return _fitting(name or "", power(digits[0] - digits[1]))
    if not is_numeric(type_name):
        return {f"{name}_n": _counted(f"{name}_kind = 1")}
    return numeric_aggregates(name or "")


def numeric_aggregates(name: str, over: str = "") -> dict[str, str]:
    """Write the aggregates of a numeric whose kind and value are read, see `numeric_text`; `over` is their window."""
    fitting = f"CASE WHEN {name}_kind = {numeric_text.TOO_WIDE} THEN {RAISE} ELSE {_product(f'{name}_value')} END"
    return {
        f"{name}_n": _counted(f"{name}_kind <> {numeric_text.NULL}", over),
        f"{name}_s": _summed(fitting, over),
        f"{name}_nan": _counted(f"{name}_kind = {numeric_text.NAN}", over),
        f"{name}_pinf": _counted(f"{name}_kind = {numeric_text.INFINITE}", over),
        f"{name}_ninf": _counted(f"{name}_kind = {numeric_text.MINUS_INFINITE}", over),
    }


def _fitting(name: str, nan: str) -> dict[str, str]:
    """Write the aggregates of a declared type, in which there are no infinities."""
    value = f"{name}_value"
    return {
        f"{name}_n": _counted(f"{value} IS NOT NULL"),
        f"{name}_s": _summed(f"CASE WHEN {value} < {nan} THEN {_product(value)} ELSE 0 END"),
        f"{name}_nan": _counted(f"{value} = {nan}"),
        f"{name}_pinf": "0",
        f"{name}_ninf": "0",
    }


def _counted(condition: str, over: str = "") -> str:
    """Count values; a window may have frames without rows, of which a sum would be NULL."""
    total = f"sum(CASE WHEN {condition} THEN {WEIGHT} ELSE 0 END){over}"
    return f"coalesce({total}, 0)" if over else total


def _product(value: str) -> str:
    """Multiply by the weight. Products of decimals take long, and nearly all weights are 1 or -1."""
    wide = f"coalesce({value} * CAST({WEIGHT} AS {WEIGHT_TYPE}), {RAISE})"
    return f"CASE {WEIGHT} WHEN 1 THEN {value} WHEN -1 THEN -{value} ELSE {wide} END"


def _summed(product: str, over: str = "") -> str:
    """Sum what is never NULL: a sum that is NULL although there are rows does not fit."""
    return f"CASE WHEN count(1){over} > 0 THEN coalesce(sum({product}){over}, {RAISE}) END"
