"""How many digits the value of an expression can have: what PostgreSQL's types and operators say, never a value."""

import re
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.plan.postgres.aggregate import SCALED
from pytrickle.plan.sql.fallible import Types, written_type

# The digits of whole numbers, by the names of their types from the narrowest on.
DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
NUMERIC = "numeric"
LITERAL = re.compile(r"(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number's type, its digits before the point at most, and its digits behind the point.

    Unless `fixed`, those behind are the most there can be. Without `nan` it is never NaN; infinite it never is.
    """

    type_name: str
    digits: int
    scale: int = 0
    nan: bool = False
    fixed: bool = True

    @property
    def whole(self) -> bool:
        """Whether it is of a type of whole numbers, which may overflow."""
        return self.type_name in DIGITS


def bounds_of(node: exp.Expr, types: Types) -> Bounds | None:
    """Return the bounds of a number; None for what is none, or has none.

    >>> from sqlglot import parse_one
    >>> found = bounds_of(parse_one("a * (CAST((1) AS DECIMAL) - a)"), lambda column: "numeric(15,2)")
    >>> found.type_name, found.digits, found.scale
    ('numeric', 27, 4)
    """
    match node:
        case exp.Paren():
            return bounds_of(node.this, types)
        case exp.Column():
            return bounds_of_type(types(node))
        case exp.Literal():
            return None if node.is_string else _of_literal(node.name)
        case exp.Neg():
            return bounds_of(node.this, types)
        case exp.Cast():
            return _of_cast(node, types)
        case exp.Add() | exp.Sub() | exp.Mul():
            return combined(node, bounds_of(node.this, types), bounds_of(node.expression, types))
        case exp.Case():
            return _of_case(node, types)
        case _:
            return None


def bounds_of_type(type_name: str | None) -> Bounds | None:
    """Return the bounds of a type's values.

    >>> bounds_of_type("numeric(4,6)"), bounds_of_type("numeric")
    (Bounds(type_name='numeric', digits=0, scale=6, nan=True, fixed=True), None)
    """
    if type_name in DIGITS:
        return Bounds(type_name, DIGITS[type_name])
    declared = SCALED.fullmatch(type_name or "")
    if declared is None or int(declared[2]) < 0:
        return None
    return Bounds(NUMERIC, max(0, int(declared[1]) - int(declared[2])), int(declared[2]), nan=True)


def combined(node: exp.Expr, left: Bounds | None, right: Bounds | None) -> Bounds | None:
    """Return the bounds of a sum, a difference or a product."""
    if left is None or right is None:
        return None
    if left.whole and right.whole:
        return max(left, right, key=lambda each: each.digits)
    nan, fixed = left.nan or right.nan, left.fixed and right.fixed
    if isinstance(node, exp.Mul):
        return Bounds(NUMERIC, left.digits + right.digits, left.scale + right.scale, nan, fixed)
    return Bounds(NUMERIC, max(left.digits, right.digits) + 1, max(left.scale, right.scale), nan, fixed)


def _of_literal(text: str) -> Bounds | None:
    found = LITERAL.fullmatch(text)
    if found is None:
        return None
    if found[2] is not None:
        return Bounds(NUMERIC, len(found[1]), len(found[2]))
    fitting = [name for name, bits in (("integer", 31), ("bigint", 63)) if int(text) < 1 << bits]
    return Bounds(fitting[0], DIGITS[fitting[0]]) if fitting else Bounds(NUMERIC, len(text))


def _of_cast(node: exp.Cast, types: Types) -> Bounds | None:
    inner, wanted = bounds_of(node.this, types), written_type(node.to)
    if wanted == NUMERIC and inner:
        return Bounds(NUMERIC, inner.digits, inner.scale, inner.nan, inner.fixed)
    return bounds_of_type(wanted)


def _of_case(node: exp.Case, types: Types) -> Bounds | None:
    results = [branch.args["true"] for branch in node.args["ifs"]]
    default = node.args.get("default")
    found = [bounds_of(each, types) for each in (*results, *([default] if default is not None else []))]
    known = [each for each in found if each]
    if len(known) < len(found) or len({each.type_name for each in known}) > 1:
        return None
    digits, scale = max(each.digits for each in known), max(each.scale for each in known)
    fixed = all(each.fixed and each.scale == scale for each in known)
    return Bounds(known[0].type_name, digits, scale, any(each.nan for each in known), fixed)
