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


def takes_rows_as_they_come(window: exp.Expr) -> bool:
    """Whether a window function, its named window spelled out, depends on an order of rows that it leaves open."""
    function = window.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    by_rows = window.args.get("spec") is not None
    return not window.args.get("order") and (by_rows or function_name(function) not in UNORDERED)
