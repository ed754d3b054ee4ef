"""A numeric that travels as PostgreSQL's text of it, so that PostgreSQL evaluates it once: what Spark reads from it.

Spark's decimals have 38 digits. What does not fit is told apart, so that it is never rounded.
"""

# A product of both has 38 digits, and so has a sum of such products. Spark may round a product of more.
EXPONENT, PLACES = 16, 12
VALUE = f"DECIMAL({EXPONENT + PLACES},{PLACES})"
NULL, FINITE, NAN, INFINITE, MINUS_INFINITE, TOO_WIDE = range(6)
NAMES = "'NaN', 'Infinity', '-Infinity'"
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


def value_or_nan(text: str, precision: int, places: int) -> str:
    """Read a number of so many digits, NaN as the least one that has more."""
    wider = f"DECIMAL({precision + 1},{places})"
    nan = f"CAST({power(precision - places)} AS {wider})"
    return f"CASE WHEN {text} = 'NaN' THEN {nan} ELSE CAST({text} AS {wider}) END"


def power(digits: int) -> str:
    """Write the least number of more digits."""
    return f"1{'0' * digits}"


def _fits(text: str) -> str:
    before, behind = f"replace(split_part({text}, '.', 1), '-', '')", f"split_part({text}, '.', 2)"
    beyond = f"replace(substr({behind}, {PLACES + 1}), '0', '')"
    return f"length({text}) <= {SHORT} OR (length({before}) <= {EXPONENT} AND {beyond} = '')"
