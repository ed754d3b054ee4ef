"""Rows that tie in an ORDER BY: their order is settled, so that a result is the same whenever it is computed.

PostgreSQL's sort is not stable, and a few partitions sorted alone may leave ties in another order than the whole.
"""

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.calls import UNORDERED, bare_call, function_name
from pytrickle.plan.sql.dialect import row_text

RANKS = frozenset({"rank", "dense_rank", "percent_rank", "cume_dist"})
NUMBERS = frozenset({"row_number", "ntile", "lag", "lead", "first_value"})
PEERLESS = frozenset({"", "NO OTHERS", "CURRENT ROW"})


def settle_call(call: exp.Expr, arguments: tuple[str, ...]) -> exp.Expr:
    """Let an aggregate call that says an order see tying rows in the order of their whole content."""
    result = call.copy()
    for order in list(bare_call(result).find_all(exp.Order)):
        if not isinstance(order.this, exp.Distinct):
            order.append("expressions", _by_content(arguments))
    return result


def settle_window(window: exp.Expr, arguments: tuple[str, ...], sorted_once: bool) -> exp.Expr:
    """Let a window function that tells peers apart see them in the order of their whole content.

    Where that would change what a peer is, the rows must come in order already: `sorted_once` says that all windows
    ask for the same order.
    """
    function = window.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    name, spec, order = function_name(function), window.args.get("spec"), window.args.get("order")
    by_rows = spec is not None and spec.args.get("kind") == "ROWS"
    if name in RANKS or (name in UNORDERED and not by_rows):
        return window
    exclude = spec.args.get("exclude") if spec is not None else None
    peerless = by_rows and (exclude.name if exclude else "").upper() in PEERLESS
    if peerless or (name in NUMBERS and spec is None):
        result = window.copy()
        items = [each.copy() for each in order.expressions] if order else []
        result.set("order", exp.Order(expressions=[*items, _by_content(arguments)]))
        return result
    if not sorted_once or (order and not all(isinstance(each.this, exp.Column) for each in order.expressions)):
        raise NotDifferentiable(f"{name}() over rows that may tie")
    return window


def sort_of(window: exp.Window) -> tuple[str, str]:
    """Return the text of what a window sorts by."""
    parts, order = window.args.get("partition_by") or [], window.args.get("order")
    return ", ".join(each.sql() for each in parts), order.sql() if order else ""


def _by_content(arguments: tuple[str, ...]) -> exp.Expr:
    return exp.Ordered(this=exp.Var(this=row_text(arguments)), nulls_first=False)
