"""Three-valued logic over conditions whose parts became constants."""

from typing import Literal

from sqlglot import exp

COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
NUMERIC = frozenset({"smallint", "integer", "bigint", "numeric", "decimal", "real", "double precision"})
TEMPORAL = frozenset(
    {
        "date",
        "interval",
        *(f"{name}{zone} time zone" for name in ("time", "timestamp") for zone in (" with", " without")),
    }
) | {"timestamp", "timestamptz"}
# Of PostgreSQL's own, which are printed without a schema.
STRICT = frozenset({"date_trunc", "date_bin"})
Truth = bool | None | Literal["open"]


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Split a condition at its topmost ANDs, and at what all arms of an OR have in common.

    >>> from sqlglot import parse_one
    >>> [part.sql() for part in conjuncts(parse_one("(a AND b) OR (c AND a) OR (a AND d AND e)"))]
    ['a', 'b OR c OR (d AND e)']
    """
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    if isinstance(condition, exp.Or):
        return _factored(condition)
    return [condition]


def _factored(condition: exp.Or) -> list[exp.Expr]:
    """(a AND b) OR (a AND c) = a AND (b OR c), in three-valued logic too; an arm that is all in common absorbs."""
    arms = [conjuncts(arm) for arm in condition.flatten()]
    common = [part for part in arms[0] if all(part in arm for arm in arms[1:])]
    if not common:
        return [condition]
    rests = [[part for part in arm if part not in common] for arm in arms]
    rest = [exp.or_(*(exp.and_(*each) for each in rests))] if all(rests) else []
    return [*common, *rest]


def decided(condition: exp.Expr) -> Truth:
    """Return what a condition always is: True, False, None for NULL, or "open" if that depends on the row."""
    node = condition.unnest()
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Not():
            inner = decided(node.this)
            return inner if inner in {None, "open"} else not inner
        case exp.And() | exp.Or():
            return _junction(decided(node.this), decided(node.expression), isinstance(node, exp.Or))
        case exp.Is() if isinstance(node.expression, exp.Null) and is_null(node.this):
            return not node.args.get("negate")
        case exp.NullSafeEQ() if is_null(node.this) and is_null(node.expression):
            return True
        case _ if isinstance(node, COMPARISONS) and (is_null(node.this) or is_null(node.expression)):
            # Of an array without elements ALL is true, and ANY false, whatever it is compared with.
            return "open" if is_quantified(node.expression.unnest()) else None
        case _:
            return None if is_null(node) else "open"


def is_quantified(side: exp.Expr) -> bool:
    """Whether a side of a comparison is ANY or ALL of an array; the parser takes ALL for a function."""
    return isinstance(side, exp.Any | exp.All) or (isinstance(side, exp.Anonymous) and side.name.upper() == "ALL")


def is_null(expression: exp.Expr) -> bool:
    """Whether an expression is NULL, NULL of some type, or arithmetic on NULL of a number or a moment.

    NULL of a domain is written as an element of an empty array.
    """
    node = expression.unnest()
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div):
        sides = (node.this.unnest(), node.expression.unnest())
        return all(map(_is_built_in, sides)) and any(map(is_null, sides))
    if isinstance(node, exp.Anonymous) and node.name.lower() in STRICT:
        return any(map(is_null, node.expressions))
    if isinstance(node, exp.Bracket):
        return _is_empty_array(node.this.unnest())
    return isinstance(node, exp.Null) or (isinstance(node, exp.Cast | exp.Collate) and is_null(node.this))


def _is_empty_array(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.this == "{}"


def _is_built_in(node: exp.Expr) -> bool:
    """Whether a node is a constant or NULL of a number or a moment, so that no operator of a user's is meant.

    Those of the built-in types are strict.
    """
    if isinstance(node, exp.Cast):
        name = node.to.sql(dialect="postgres").lower().partition("(")[0]
        constant = isinstance(node.this.unnest(), exp.Literal)
        return (is_null(node) and name in NUMERIC) or ((constant or is_null(node)) and name in TEMPORAL)
    return (isinstance(node, exp.Literal) and not node.is_string) or is_null(node)


def no_value(expression: exp.Expr) -> exp.Expr:
    """Ask whether an expression has no value: a composite one IS NULL already when all of its columns are."""
    return exp.NullSafeEQ(this=exp.Paren(this=expression.copy()), expression=exp.Null())


def truth(value: bool | None) -> exp.Expr:
    """Write a constant."""
    return exp.Null() if value is None else exp.Boolean(this=value)


def _junction(left: Truth, right: Truth, is_or: bool) -> Truth:
    if left is is_or or right is is_or:
        return is_or
    if "open" in (left, right):
        return "open"
    return None if None in (left, right) else not is_or
