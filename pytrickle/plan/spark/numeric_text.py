"""How a numeric travels: as a decimal of Spark where its type says how many digits it has, else as PostgreSQL's text.

PostgreSQL evaluates it once. Spark's decimals have 38 digits. What does not fit is told apart, so that it is never
rounded.
"""

import re

# A product of both has 38 digits, and so has a sum of such products. Spark may round a product of more.
EXPONENT, PLACES = 16, 12
VALUE = f"DECIMAL({EXPONENT + PLACES},{PLACES})"
NULL, FINITE, NAN, INFINITE, MINUS_INFINITE, TOO_WIDE = range(6)
NAMES = "'NaN', 'Infinity', '-Infinity'"
# What `as_decimal` writes, with a place for the pattern of what it writes.
DECIMAL = r"CAST\(pg_catalog\.numeric_smaller\({}, CAST\(10* AS numeric\)\) AS numeric\(\d+,\d+\)\)"
OF_COLUMN = re.compile(DECIMAL.format(r"\{0\}"))
# No text of so few characters has more digits.
SHORT = PLACES + 1


def kind(text: str) -> str:
    """Tell NULL, a value that fits, NaN, both infinities, and what does not fit apart."""
    return (
        f"CAST(CASE WHEN {text} IS NULL THEN {NULL} WHEN {text} = 'NaN' THEN {NAN} WHEN {text} = 'Infinity' THEN"
        f" {INFINITE} WHEN {text} = '-Infinity' THEN {MINUS_INFINITE} WHEN {_fits(text)} THEN {FINITE} ELSE {TOO_WIDE}"
        " END AS SMALLINT)"
    )


def value(text: str) -> str:
    """Read the number, or 0 where there is none that fits."""
    return f"CAST(CASE WHEN {text} NOT IN ({NAMES}) AND ({_fits(text)}) THEN {text} ELSE '0' END AS {VALUE})"


def scale(text: str) -> str:
    """Count the digits behind the point; NaN and the infinities have none to count."""
    point = f"position('.' IN {text})"
    count = f"CASE WHEN {point} > 0 THEN length({text}) - {point} ELSE 0 END"
    return f"CASE WHEN {text} NOT IN ({NAMES}) THEN {count} END"


def as_decimal(sql: str, precision: int, places: int) -> str:
    """Write for PostgreSQL a number of so many digits as the decimal that Spark reads, which has no NaN.

    NaN is the least number that has more digits. The function is the one of `min(numeric)`: NULL stays NULL.
    """
    nan = power(precision - places)
    return f"CAST(pg_catalog.numeric_smaller({sql}, CAST({nan} AS numeric)) AS numeric({precision + 1},{places}))"


def is_decimal(template: str) -> bool:
    """Whether a template writes a column, at {0}, by `as_decimal`.

    >>> is_decimal(as_decimal("{0}", 12, 2)), is_decimal("CAST({0} AS text)")
    (True, False)
    """
    return OF_COLUMN.fullmatch(template) is not None


def power(digits: int) -> str:
    """Write the least number of more digits."""
    return f"1{'0' * digits}"


def _fits(text: str) -> str:
    before, behind = f"replace(split_part({text}, '.', 1), '-', '')", f"split_part({text}, '.', 2)"
    beyond = f"replace(substr({behind}, {PLACES + 1}), '0', '')"
    return f"length({text}) <= {SHORT} OR (length({before}) <= {EXPONENT} AND {beyond} = '')"
