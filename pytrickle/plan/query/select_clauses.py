"""What the clauses of a SELECT do: group, compute windows, tell rows apart or unroll sets."""

from collections.abc import Sequence

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.calls import is_call
from pytrickle.plan.query.lateral import calls_set
from pytrickle.plan.sql.dialect import render


def own_nodes(item: exp.Expr) -> list[exp.Expr]:
    """List the nodes of an expression without those of its subqueries."""
    return list(item.walk(prune=lambda node: isinstance(node, exp.Query)))


def has_calls(select: exp.Select, definition: Definition) -> bool:
    """Whether a SELECT calls an aggregate that is no window function, even if only to sort by it."""
    aggregates = definition.aggregates
    return any(
        is_call(node, aggregates) and not isinstance(node.parent, exp.Window)
        and not (isinstance(node.parent, exp.Filter) and isinstance(node.parent.parent, exp.Window))
        for item in evaluated(select)
        for node in own_nodes(item)
    )  # fmt: skip


def shown_and_asked(select: exp.Select) -> list[exp.Expr]:
    """List what a SELECT shows of its groups, and its HAVING."""
    having = select.args.get("having")
    return [*select.selects, *([having] if having else [])]


def evaluated(select: exp.Select) -> list[exp.Expr]:
    """List what PostgreSQL computes for every row or group of a SELECT: what it shows, sorts by and tells apart by."""
    clauses = (select.args.get(clause) for clause in ("distinct", "order"))
    return [*select.selects, *(each for each in clauses if each is not None), *(select.args.get("windows") or ())]


def unseen_sets(select: exp.Select, definition: Definition) -> list[exp.Expr]:
    """List what ORDER BY alone unrolls; under DISTINCT it is shown too."""
    order = select.args.get("order")
    if order is None or select.args.get("distinct"):
        return []
    shown = [item.unalias().unnest() for item in select.selects]
    sorts = [each.this for each in order.expressions]
    return [each for each in sorts if calls_set(each, definition) and each.unnest() not in shown]


def is_grouped(select: exp.Select, definition: Definition) -> bool:
    """Whether a SELECT groups: GROUP BY, HAVING or an aggregate call in its own list."""
    return bool(select.args.get("group") or select.args.get("having")) or has_calls(select, definition)


def has_windows(select: exp.Select) -> bool:
    """Whether the select list has window functions."""
    return any(isinstance(node, exp.Window) for item in select.selects for node in own_nodes(item))


def is_distinct_on(select: exp.Select) -> bool:
    """Whether a SELECT is DISTINCT ON something."""
    clause = select.args.get("distinct")
    return clause is not None and bool(clause.args.get("on"))


def unrolls(select: exp.Select, definition: Definition) -> bool:
    """Whether a SELECT calls set-returning functions, so that a row may become several or none."""
    return any(calls_set(item, definition) for item in evaluated(select))


def having_alone(query: exp.Expr, definition: Definition) -> exp.Select | None:
    """Write what HAVING says of the one group that a SELECT has; None where there is more that decides on its rows."""
    having = query.args.get("having")
    if not isinstance(query, exp.Select) or having is None or unrolls(query, definition):
        return None
    asked = query.copy()
    for clause in ("having", "distinct", "order"):
        asked.set(clause, None)
    asked.set("expressions", [exp.Coalesce(this=having.this.copy(), expressions=[exp.false()])])
    return asked if is_plain_aggregate(asked, definition) else None


def text_below(select: exp.Select, items: Sequence[exp.Expr]) -> str:
    """Write FROM and WHERE of a SELECT with another select list."""
    result = select.copy()
    for clause in ("distinct", "group", "having", "order", "windows"):
        result.set(clause, None)
    result.set("expressions", [_one_value(item.copy()) for item in items])
    return render(result)


def _one_value(item: exp.Expr) -> exp.Expr:
    """Keep a whole row from becoming its columns, as t.* does in a select list."""
    bare = item.unnest()
    return exp.Coalesce(this=item) if isinstance(bare, exp.Column) and bare.is_star else item


def refuse_limited_sets(query: exp.Expr, definition: Definition) -> None:
    """PostgreSQL leaves open which rows of a function LIMIT keeps, unless ORDER BY says so, but keeps the first."""
    if isinstance(query, exp.Select) and unrolls(query, definition) and not _sorts_by_its_sets(query, definition):
        raise NotDifferentiable("LIMIT over a set-returning function in the select list that ORDER BY does not name")


def _sorts_by_its_sets(select: exp.Select, definition: Definition) -> bool:
    """Whether ORDER BY names every set-returning item of the select list, and unrolls nothing else."""
    order = select.args.get("order")
    sorts = [each.this.unnest() for each in order.expressions] if order else []
    sets = [item.unalias().unnest() for item in select.selects if calls_set(item, definition)]
    return not unseen_sets(select, definition) and all(each in sorts for each in sets)


def is_plain_aggregate(select: exp.Select, definition: Definition) -> bool:
    """Whether a SELECT has aggregates and no more than HAVING above FROM and WHERE, so that it has one row, or none.

    It may have subqueries in the calls of aggregates.
    """
    clauses = ("group", "distinct", "limit", "offset", "windows")
    parts = shown_and_asked(select)
    above = (node for part in parts for node in part.walk(prune=lambda each: is_call(each, definition.aggregates)))
    subqueries = any(isinstance(node, exp.Query) for node in above)
    return (
        not any(select.args.get(c) for c in clauses)
        and has_calls(select, definition)
        and not has_windows(select)
        and not unrolls(select, definition)
        and not subqueries
    )
