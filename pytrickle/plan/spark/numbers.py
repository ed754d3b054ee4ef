"""Numbers that Spark computes and compares by decimals of 38 digits, where these hold all digits of the result."""

from dataclasses import dataclass, replace

from sqlglot import exp

from pytrickle.plan.spark.bounds import DIGITS, NUMERIC, Bounds, combined
from pytrickle.plan.spark.grouping import RAISE
from pytrickle.plan.spark.numeric_text import power

PRECISION = 38
ADDED = {"add": "+", "sub": "-", "mul": "*"}
RANGES = {"smallint": 15, "integer": 31, "bigint": 63}


class Untranslatable(Exception):
    """An expression is not on the list."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in Spark's SQL, NULL where PostgreSQL's is: its type and digits as Spark's decimal has them.

    Where the text `nan` holds it stands for NaN. `fixed` says that PostgreSQL shows it with all digits of `scale`;
    `plain` is a whole number without a cast.
    """

    text: str
    type_name: str
    digits: int
    scale: int = 0
    nan: str | None = None
    fixed: bool = True
    plain: str | None = None

    def ordered(self, top: str) -> str:
        """Write it so that NaN is the number `top`."""
        if self.nan is None:
            return self.text
        return f"CASE WHEN {self.text} IS NULL THEN NULL WHEN {self.nan} THEN {top} ELSE {self.text} END"


def compared_numbers(left: Number, right: Number, operator: str) -> str:
    """Compare two numbers; NaN is larger than all others, and equals itself."""
    if left.plain and right.plain:
        return f"({left.plain} {operator} {right.plain})"
    digits, scale = max(left.digits, right.digits), max(left.scale, right.scale)
    check_fits(digits + 1, scale)
    top = f"CAST({power(digits)} AS DECIMAL({digits + 1},0))"
    return f"({left.ordered(top)} {operator} {right.ordered(top)})"


def computed(node: exp.Binary, left: Number, right: Number) -> Number:
    """Add, subtract or multiply; Spark's decimals are exact where all digits of the result fit."""
    one, other = _bounds(left), _bounds(right)
    if one.whole != other.whole:
        raise Untranslatable
    result = combined(node, one, other)
    assert result is not None
    multiplied = isinstance(node, exp.Mul)
    digits = left.digits + right.digits + 1 if multiplied else max(left.digits, right.digits) + 1
    check_fits(digits, result.scale)
    text = f"({left.text} {ADDED[node.key]} {right.text})"
    if result.whole:
        return Number(_within(text, result.type_name), result.type_name, DIGITS[result.type_name])
    nan = " OR ".join(each.nan for each in (left, right) if each.nan)
    return Number(text, NUMERIC, digits, result.scale, f"({nan})" if nan else None, result.fixed)


def cast_number(number: Number, wanted: str) -> Number:
    """Give a number a type that has all values of its own."""
    order = [*DIGITS, NUMERIC]
    if wanted not in order or order.index(wanted) < order.index(number.type_name):
        raise Untranslatable
    return replace(number, type_name=wanted)


def _bounds(number: Number) -> Bounds:
    return Bounds(number.type_name, number.digits, number.scale, number.nan is not None, number.fixed)


def _within(text: str, type_name: str) -> str:
    """Raise where PostgreSQL says that a whole number is out of range: the refresh is left to it, and it says so."""
    bits = RANGES[type_name]
    beyond = f"{text} NOT BETWEEN {-(1 << bits)} AND {(1 << bits) - 1}"
    return f"CASE WHEN {beyond} THEN {RAISE} ELSE CAST({text} AS DECIMAL({DIGITS[type_name]},0)) END"


def check_fits(digits: int, scale: int) -> None:
    """Refuse what Spark's decimals would round."""
    if digits + scale > PRECISION:
        raise Untranslatable
