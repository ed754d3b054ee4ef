"""Aggregates over a subquery that sorts its rows: PostgreSQL hands them on in that order, which each call is told."""

from sqlglot import exp

from pytrickle.plan.query.block import aliased, own_column
from pytrickle.plan.query.calls import bare_call
from pytrickle.plan.query.scope import is_whole
from pytrickle.plan.query.select_clauses import own_nodes
from pytrickle.plan.query.stored_order import calls_in, is_open
from pytrickle.plan.sql.dialect import render

NAME = "pgt_sort_{}"
# With any of these the rows come in another order.
OTHERS = ("group", "distinct", "joins", "laterals")


def order_as_input(tree: exp.Expr, aggregates: frozenset[str]) -> exp.Expr:
    """Return a query in which such calls have the ORDER BY of what they read.

    >>> from pytrickle.plan.sql.dialect import parse_query
    >>> query = parse_query("SELECT json_agg(q.b) FROM (SELECT b FROM c ORDER BY b DESC LIMIT 3) AS q")
    >>> render(order_as_input(query, frozenset({"json_agg"}))).partition(" FROM ")[0]
    'SELECT json_agg("q"."b" ORDER BY "q"."b" DESC)'
    """
    result = tree.copy()
    for select in list(result.find_all(exp.Select)):
        calls = [call for item in select.selects for call in calls_in(item, aggregates) if is_open(call)]
        inner = _sorted(select)
        keys = _keys(select, inner) if calls and inner else None
        for call in calls if keys else ():
            last = bare_call(call).expressions[-1]
            last.replace(exp.Order(this=last.copy(), expressions=[key.copy() for key in keys or ()]))
    return result


def _sorted(select: exp.Select) -> exp.Subquery | None:
    """Return what a SELECT reads, if that is nothing but a subquery that sorts."""
    clause = select.args.get("from_")
    item = clause.this if clause else None
    if not isinstance(item, exp.Subquery) or not item.alias or item.args.get("joins"):
        return None
    if any(select.args.get(each) for each in OTHERS) or any(isinstance(node, exp.Window) for node in own_nodes(select)):
        return None
    return item if isinstance(item.this, exp.Select) and item.this.args.get("order") else None


def _keys(select: exp.Select, item: exp.Subquery) -> list[exp.Expr] | None:
    """Write what a subquery sorts by over its columns, of which it gets further ones; None where it cannot get any."""
    inner, keys, added = item.this, list[exp.Expr](), list[exp.Expr]()
    shown = item.alias_column_names + [each.alias_or_name for each in inner.selects][len(item.alias_column_names) :]
    texts = [render(each.unalias()) for each in inner.selects]
    for ordered in inner.args["order"].expressions:
        text = render(ordered.this)
        if text not in texts:
            texts.append(text)
            shown.append(NAME.format(len(added)))
            added.append(ordered.this)
        key = ordered.copy()
        key.set("this", own_column(item.alias, shown[texts.index(text)]))
        keys.append(key)
    if added and not _may_show_more(select, item):
        return None
    inner.set("expressions", [*inner.expressions, *map(aliased, added, shown[len(shown) - len(added) :])])
    return keys


def _may_show_more(select: exp.Select, item: exp.Subquery) -> bool:
    """Whether nobody notices a further column: neither rows as a whole nor distinct ones are shown."""
    whole = any(is_whole(column) and column.table == item.alias for column in select.find_all(exp.Column))
    return not (whole or item.this.args.get("distinct") or item.alias_column_names)
