"""Subqueries with one row: an aggregate over the rows that belong to a row, or the one row that there may be."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.query.block import Block, own_column, project, type_of
from pytrickle.plan.query.calls import bare_call, function_name, is_own
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import Match, columns_around, decorrelate_by_domain, free_columns
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.grouping import Grouping, WrittenCalls
from pytrickle.plan.query.guard import any_fails
from pytrickle.plan.query.lateral import calls_set, reads_no_table
from pytrickle.plan.query.membership import present
from pytrickle.plan.query.nested_grouping import group, group_table, read_around
from pytrickle.plan.query.null_padding import beside, nulls_of, nulls_of_leaf
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.query.select_clauses import is_distinct_on, is_plain_aggregate
from pytrickle.plan.query.set_operation import VALUE, single
from pytrickle.plan.query.unique_rows import finds_one_row
from pytrickle.plan.sql.aggregates import TRAITS
from pytrickle.plan.sql.three_valued import truth

ARRAY_AGG = "array_agg"
Blocks = tuple[Block, ...]
Case = tuple[Block, exp.Expr]
Cases = list[tuple[Block, list[exp.Expr]]]


def scalar_cases(recursion: Recursion, block: Block, query: exp.Expr, context: Context) -> list[Case]:
    """List the cases of a scalar subquery's value: where it has a row, and where it has none.

    The value of a subquery of several columns is a tuple.
    """
    query, context = recursion.unwrapped(query, context)
    query = _without_idle_limit(recursion, query, context)
    if isinstance(query, exp.Select) and is_plain_aggregate(query, recursion.facts.definition):
        kept = _if_kept(query)
        return [(case, _value(values)) for case, values in aggregate_cases(recursion, block, kept, context)]
    inner = recursion.derived(query, context)
    shown = [list(each.names[""].values()) for each in inner]
    named = tuple(
        each.named({VALUE: {f"v{i}": value for i, value in enumerate(values)}})
        for each, values in zip(inner, shown, strict=True)
    )
    rows = tuple(zip(inner, map(tuple, shown), strict=True))
    fails, computed = any_fails(recursion.facts, rows), columns_around(rows)
    sure = not fails and finds_one_row(recursion.facts, inner)
    if sure and (computed or free_columns(inner)):
        return _looked_up(recursion.facts, block, inner[0], shown[0], context)
    decorrelated = decorrelate_by_domain(recursion.facts, block, named, "a scalar subquery", fails, computed)
    found, values = single(recursion.facts, decorrelated, sure)
    nulls = nulls_of_leaf(recursion.facts, found)
    without = [nulls[f"v{i}"] for i in range(len(values))]
    return [
        (case, _value([values, without][missing])) for case, missing in _with_or_without(block, found, always=False)
    ]


def _without_idle_limit(recursion: Recursion, query: exp.Expr, context: Context) -> exp.Expr:
    """Leave out LIMIT, and what sorts for it, where a unique key leads to one row at most."""
    limit = query.args.get("limit")
    bound = limit.expression if limit else None
    if not isinstance(query, exp.Select) or query.args.get("offset"):
        return query
    if not (isinstance(bound, exp.Literal) and bound.is_int and bound.name != "0"):
        return query
    bare = query.copy()
    bare.set("limit", None)
    bare.set("order", None)
    return bare if finds_one_row(recursion.facts, recursion.derived(bare, context)) else query


def _looked_up(facts: Facts, block: Block, inner: Block, values: list[exp.Expr], context: Context) -> list[Case]:
    """Join the one row at most that there is for each row, by a unique key; without one the value is NULL."""
    nulls = list(nulls_of(facts, project(replace(beside(context.around, inner), predicates=()), tuple(values))))
    matched = replace(block, leaves=(*block.leaves, *inner.leaves)).where(*inner.predicates)
    without = [case for case, lacks in present(facts, block, (inner,), negated=True) if lacks == truth(True)]
    found = [(matched, _value(values))] if matched else []
    return [*found, *((case, _value(nulls)) for case in without)]


def _if_kept(query: exp.Select) -> exp.Select:
    """Show NULLs for the row that HAVING drops."""
    result = query.copy()
    having = result.args.get("having")
    if having:
        result.set("having", None)
        for item in result.selects:
            item.replace(exp.Case(ifs=[exp.If(this=having.this.copy(), true=item.unalias().copy())]))
    return result


def _with_having(query: exp.Select) -> exp.Select:
    """Show, as the last column, what HAVING asks."""
    result = query.copy()
    having = result.args.get("having")
    if having:
        result.set("having", None)
        result.append("expressions", having.this.copy())
    return result


def _value(columns: list[exp.Expr]) -> exp.Expr:
    return columns[0] if len(columns) == 1 else exp.Tuple(expressions=columns)


def array_cases(recursion: Recursion, block: Block, query: exp.Expr, context: Context) -> list[Case]:
    """List the cases of ARRAY(subquery): array_agg over its rows in its order, and an empty array for none."""
    query, context = recursion.unwrapped(query, context)
    rows, orders = _with_order(query)
    if any(query.args.get(clause) for clause in ("limit", "offset")) and query.args.get("distinct"):
        raise NotDifferentiable("ARRAY over a subquery with DISTINCT and LIMIT")
    if isinstance(query, exp.Select) and any(calls_set(item, recursion.facts.definition) for item in query.selects):
        raise NotDifferentiable("ARRAY over a set-returning function in a select list")
    if not orders:
        raise NotDifferentiable("ARRAY over a subquery without ORDER BY, whose result depends on the order of rows")
    value: exp.Expr = own_column("pgt_array", "v")
    names = dict.fromkeys(("v", *(order.this.name for order in orders)))
    if isinstance(rows, exp.Select) and _is_plainly_distinct(rows):
        rows.set("distinct", None)
        value = exp.Distinct(expressions=[value])
    call = exp.Anonymous(this=ARRAY_AGG, expressions=[exp.Order(this=value, expressions=orders)])
    shown = exp.Anonymous(this="COALESCE", expressions=[call, exp.Literal.string("{}")])
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    alias = exp.TableAlias(this=exp.to_identifier("pgt_array"), columns=columns)
    source = exp.From(this=exp.Lateral(this=exp.Subquery(this=rows), alias=alias))
    cases = aggregate_cases(recursion, block, exp.Select(expressions=[shown], from_=source), context)
    return [(case, values[0]) for case, values in cases]


def _with_order(query: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
    """Have a subquery show what it sorts by; return it, and its ORDER BY over the columns v, o0, o1, ... that it has.

    DISTINCT and set operations sort by what they show, so by v; DISTINCT ON by anything.
    """
    clause = query.args.get("order")
    orders = [each.copy() for each in clause.expressions] if clause else []
    result = query.copy()
    sorts = isinstance(query, exp.Select) and not _is_plainly_distinct(query)
    for position, order in enumerate(orders):
        if sorts:
            result.append("expressions", exp.alias_(order.this.copy(), f"pgt_o{position}", quoted=True))
        order.set("this", own_column("pgt_array", f"o{position}" if sorts else "v"))
    return result, orders


def _is_plainly_distinct(select: exp.Select) -> bool:
    return bool(select.args.get("distinct")) and not is_distinct_on(select)


def aggregate_cases(recursion: Recursion, block: Block, query: exp.Select, context: Context) -> Cases:
    """List the cases of a SELECT of aggregates, which has one row whatever it finds, beside the rows of a block."""
    query, inner = recursion.aggregated(query, context)
    aggregates = recursion.facts.definition.aggregates | {ARRAY_AGG}
    table = group_table(context.outer)
    lift = Grouping(GroupKeys(table, [], False), WrittenCalls(), aggregates, inner[0].names)
    lifted = [lift.lift(item.unalias()) for item in query.selects]
    calls = [tuple(resolve(call, each.names, context.outer) for call in lift.calls.nodes) for each in inner]
    fails = any_fails(recursion.facts, tuple(zip(inner, calls, strict=True)))
    around = read_around(lift, (), inner, context.outer)
    decorrelated = decorrelate_by_domain(recursion.facts, block, inner, "an aggregate", fails, around)
    found, columns = group(recursion.facts, lift, (), decorrelated, context.outer)
    values = [resolve(item, {table: columns}, context.outer) for item in lifted]
    tied = bool(decorrelated[0].pairs or decorrelated[0].guards)
    nulls = nulls_of_leaf(recursion.facts, found)
    empty = {f"c{i}": _of_nothing(call, nulls[f"c{i}"]) for i, call in enumerate(lift.calls.nodes if tied else ())}
    without = [resolve(item, {table: empty}, context.outer) for item in lifted] if tied else []
    return [(case, [values, without][missing]) for case, missing in _with_or_without(block, found, always=not tied)]


def lateral_aggregate(recursion: Recursion, left: Blocks, join: exp.Join, context: Context) -> Blocks | None:
    """Join LATERAL (SELECT aggregates): every row has a partner, also where the subquery finds nothing."""
    item = join.this
    if not isinstance(item, exp.Lateral) or not isinstance(item.this, exp.Subquery) or reads_no_table(item.this):
        return None
    query, inner = recursion.unwrapped(item.this, context)
    condition = join.args.get("on")
    always = condition is None or condition.unnest() == exp.Boolean(this=True)
    if not (isinstance(query, exp.Select) and is_plain_aggregate(query, recursion.facts.definition) and always):
        return None
    names = [*item.alias_column_names, *[each.alias_or_name for each in query.selects][len(item.alias_column_names) :]]
    optional = bool(join.side)
    shown = _if_kept(query) if optional else _with_having(query)
    result: list[Block] = []
    for block in left:
        for case, values in aggregate_cases(recursion, block, shown, inner.within(block)):
            kept = case.where(*values[len(names) :]) or case.without_rows()
            result.append(kept.named({**block.names, item.alias: dict(zip(names, values, strict=False))}))
    return tuple(result)


def _with_or_without(block: Block, found: Block, always: bool) -> list[tuple[Block, bool]]:
    """Pair a block's rows that have a partner with False, those that have none with True."""
    if always:
        return [(block.joined(found), False)]
    (leaf,) = found.leaves
    assert isinstance(leaf, Derived)
    match = Match(leaf, found.predicates)
    matched = match.within(block)
    return [(each, False) for each in [matched] if each] + [(each, True) for each in match.outside(block)]


def _of_nothing(call: exp.Expr, null: exp.Expr) -> exp.Expr:
    """Return what an aggregate gives over no rows."""
    name = function_name(bare_call(call))
    if is_own(name):
        raise NotDifferentiable(f"{name}() in a correlated subquery, where it may give anything over no rows")
    if name in TRAITS and TRAITS[name].zero:
        return exp.Cast(this=exp.Literal.number(0), to=type_of("bigint"))
    return null
