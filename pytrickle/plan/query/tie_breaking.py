"""Rows that tie in an ORDER BY: their order is settled, so that a result is the same whenever it is computed.

PostgreSQL's sort is not stable, and a few partitions sorted alone may leave ties in another order than the whole.
"""

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.calls import UNORDERED, bare_call, function_name
from pytrickle.plan.sql.dialect import row_order

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


def settle_window(window: exp.Expr, arguments: tuple[str, ...], sorted_once: bool, copy: str | None = None) -> exp.Expr:
    """Let a window function that tells peers apart see them in the order of their whole content.

    Where that would change what a peer is, the rows must come in order already: `sorted_once` says that all windows
    ask for the same order. If `copy` names the number of each of several equal rows, they come in its order.
    """
    name, order = _named(window), window.args.get("order")
    if name in RANKS or (name in UNORDERED and not _by_rows(window)):
        return window
    if tells_peers_apart(window):
        result = window.copy()
        items = [each.copy() for each in order.expressions] if order else []
        copies = [exp.Ordered(this=exp.Var(this=copy), nulls_first=False)] if copy else []
        result.set("order", exp.Order(expressions=[*items, _by_content(arguments), *copies]))
        return result
    if not sorted_once or (order and not all(isinstance(each.this, exp.Column) for each in order.expressions)):
        raise NotDifferentiable(f"{name}() over rows that may tie")
    return window


def tells_peers_apart(window: exp.Expr) -> bool:
    """Whether a window function gives rows that tie results of their own, by an order of them that can be settled."""
    name, spec = _named(window), window.args.get("spec")
    if name in RANKS or (name in UNORDERED and not _by_rows(window)):
        return False
    exclude = spec.args.get("exclude") if spec is not None else None
    peerless = _by_rows(window) and (exclude.name if exclude else "").upper() in PEERLESS
    return peerless or (name in NUMBERS and spec is None)


def _named(window: exp.Expr) -> str:
    function = window.this
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    return function_name(function)


def _by_rows(window: exp.Expr) -> bool:
    spec = window.args.get("spec")
    return spec is not None and spec.args.get("kind") == "ROWS"


def sort_of(window: exp.Window) -> tuple[str, str]:
    """Return the text of what a window sorts by."""
    parts, order = window.args.get("partition_by") or [], window.args.get("order")
    return ", ".join(each.sql() for each in parts), order.sql() if order else ""


def _by_content(arguments: tuple[str, ...]) -> exp.Expr:
    return exp.Ordered(this=exp.Var(this=row_order(arguments)), nulls_first=False)
