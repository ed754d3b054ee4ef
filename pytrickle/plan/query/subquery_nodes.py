"""Which nodes of an expression are subqueries, with what belongs to them."""

from dataclasses import dataclass

from sqlglot import exp


@dataclass(frozen=True, slots=True)
class Quantifier:
    """The rows of a subquery that a comparison with ANY, or with `every` one (ALL), looks at.

    They may come as the elements of `ARRAY(query)`, which may be cast to arrays of other types, one after the other.
    """

    query: exp.Query
    every: bool
    as_array: bool = False
    element_types: tuple[exp.DataType, ...] = ()


def quantifier(node: exp.Expr) -> Quantifier | None:
    """Return with the rows of which subquery a node compares a value, if it does.

    >>> from pytrickle.plan.sql.dialect import parse_query
    >>> found = quantifier(parse_query("SELECT a <> ALL ((ARRAY(SELECT b FROM c))::text[])").selects[0])
    >>> found.query.sql(), found.every, found.as_array, [each.sql() for each in found.element_types]
    ('SELECT b FROM c', True, True, ['TEXT'])
    """
    match node.expression if isinstance(node, exp.Binary) else None:
        case exp.Any() | exp.All() as call:
            every, rows = isinstance(call, exp.All), call.this.unnest()
        # So the parser takes ALL with anything but a subquery.
        case exp.Anonymous(this=name, expressions=[listed]) if str(name).upper() == "ALL":
            every, rows = True, listed.unnest()
        case _:
            return None
    if isinstance(rows, exp.Query):
        return Quantifier(rows, every)
    types: list[exp.DataType] = []
    while isinstance(rows, exp.Cast) and rows.to.is_type(exp.DType.ARRAY):
        types.insert(0, rows.to.expressions[0])
        rows = rows.this.unnest()
    return Quantifier(rows.expressions[0], every, True, tuple(types)) if is_array(rows) else None


def is_subquery(node: exp.Expr) -> bool:
    """Whether a node is a subquery with what belongs to it."""
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    return isinstance(node, exp.Exists | exp.Query) or is_array(node) or quantifier(node) is not None


def is_array(node: exp.Expr) -> bool:
    """Whether a node is ARRAY(subquery): no function takes a subquery without parentheses of its own."""
    return isinstance(node, exp.Anonymous) and any(
        isinstance(each, exp.Query) and not isinstance(each, exp.Subquery) for each in node.expressions
    )


def has_query_operand(node: exp.Expr) -> bool:
    """Whether what is compared with the rows of a subquery has subqueries itself."""
    compares = isinstance(node, exp.In | exp.Binary)
    return compares and node.this.find(exp.Query) is not None
