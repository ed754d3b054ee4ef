"""Subqueries without tables that show an order of rows, which must not depend on how PostgreSQL computes them."""

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.calls import ORDERED, function_name, is_own

BOUNDS = ("limit", "offset")
MIXED = ("joins", "group", "distinct")


def refuse_unsettled(node: exp.Expr) -> None:
    """Refuse what hashing instead of sorting, or another order of joins, would change.

    The rows of one function come in its own order, however often they are computed.
    """
    for query in node.find_all(exp.Query):
        if not isinstance(query, exp.Subquery) and not _in_own_order(query) and _shows_order(query):
            raise NotDifferentiable("a subquery whose result depends on the order of rows")


def _in_own_order(query: exp.Expr) -> bool:
    """Whether a query reads one function or VALUES, and keeps the order of its rows."""
    if isinstance(query, exp.Values):
        return True
    if not isinstance(query, exp.Select) or any(query.args.get(clause) for clause in MIXED):
        return False
    source = query.args.get("from_")
    inner = source.this if source else None
    while isinstance(inner, exp.Lateral | exp.Subquery):
        inner = inner.this
    return not isinstance(inner, exp.Query) or _in_own_order(inner)


def _shows_order(query: exp.Query) -> bool:
    array = isinstance(query.parent, exp.Anonymous)
    if (array or any(query.args.get(clause) for clause in BOUNDS)) and not _orders_all(query):
        return True
    nodes = [node for item in query.selects for node in item.walk(prune=lambda node: isinstance(node, exp.Query))]
    return any(isinstance(node, exp.Window) or _is_loose_call(node) for node in nodes)


def _orders_all(query: exp.Query) -> bool:
    """Whether rows that tie in ORDER BY are equal: it names all that the query shows, or its only column."""
    clause = query.args.get("order")
    found = [each.this for each in clause.expressions] if clause else []
    shown = [item.unalias() for item in query.selects]
    return all(item in found for item in shown) or (len(shown) == 1 and exp.Literal.number(1) in found)


def _is_loose_call(node: exp.Expr) -> bool:
    if not isinstance(node, exp.Anonymous):
        return False
    name = function_name(node)
    if is_own(name):
        return True
    if name not in ORDERED:
        return False
    first = node.expressions[0]
    order = next((each for each in node.expressions if isinstance(each, exp.Order)), None)
    if isinstance(first, exp.Distinct) or (isinstance(first, exp.Order) and isinstance(first.this, exp.Distinct)):
        return False
    wanted = first.this if isinstance(first, exp.Order) else first
    return order is None or wanted not in [each.this for each in order.expressions]
