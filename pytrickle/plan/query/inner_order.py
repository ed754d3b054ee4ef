"""Orders below the top of a query: PostgreSQL promises nothing about them, but keeps them where nothing else sorts."""

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.calls import UNORDERED, function_name
from pytrickle.plan.sql.dialect import parse_query


def refuse_sorted_input(definition: Definition, what: str) -> None:
    """Refuse what takes rows in the order in which a subquery, a CTE or a view below it sorts them."""
    # A LIMIT also meets the order in which the last window function of its own SELECT left the rows.
    sorting = (exp.Query, exp.Window) if what.startswith("LIMIT") else exp.Query
    texts = (definition.text, *(view.text for view in definition.views))
    for text in texts:
        tree = parse_query(text)
        own = tree.args.get("order") if text is definition.text else None
        if any(order is not own and isinstance(order.parent, sorting) for order in tree.find_all(exp.Order)):
            raise NotDifferentiable(f"{what} over rows that something below sorts")


def refuse_lined_up_input(definition: Definition, what: str) -> None:
    """Refuse what takes rows as a window function leaves them, or those of one arm of UNION ALL after another's.

    That is an order which neither the places of the rows nor their values show.
    """
    for text in (definition.text, *(view.text for view in definition.views)):
        tree = parse_query(text)
        if tree.find(exp.Window):
            raise NotDifferentiable(f"{what} over rows that something below sorts")
        if any(not union.args.get("distinct") for union in tree.find_all(exp.Union)):
            raise NotDifferentiable(f"{what} over UNION ALL")


def takes_rows_as_they_come(window: exp.Expr) -> bool:
    """Whether a window function, its named window spelled out, depends on an order of rows that it leaves open."""
    function = window.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    by_rows = window.args.get("spec") is not None
    return not window.args.get("order") and (by_rows or function_name(function) not in UNORDERED)
