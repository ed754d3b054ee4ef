"""A grouped SELECT at the top of a query, whose groups a state table keeps."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress

from sqlglot import exp

from pytrickle.plan.algebra.query import Aggregate, Call, Query
from pytrickle.plan.algebra.relation import Project, Relation
from pytrickle.plan.query.block import Block, cast_to, project, sum_of
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.group_keys import GroupKeys
from pytrickle.plan.query.grouping import Grouping, IncrementalCalls
from pytrickle.plan.query.guard import guard_rows
from pytrickle.plan.query.inner_order import refuse_sorted_input
from pytrickle.plan.query.one_scale import one_scale
from pytrickle.plan.query.overwriting import refuse_equal_keys
from pytrickle.plan.query.queries import Queries
from pytrickle.plan.query.representative_calls import representatives_at_top
from pytrickle.plan.query.representatives import Representatives, differing, is_representative, representative_columns
from pytrickle.plan.query.row_comparison import width
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.query.select_clauses import text_below
from pytrickle.plan.query.shown_values import ambiguous_keys, show_values
from pytrickle.plan.query.stored_order import WHAT, refuse_other_shapes, with_places
from pytrickle.plan.query.subquery import hoist, put_back, without_subqueries_of_calls
from pytrickle.plan.sql.dialect import render

GROUP = "g"
Blocks = tuple[Block, ...]
Expressions = tuple[exp.Expr, ...]
Incremental = Grouping[IncrementalCalls]


def grouped_in_stored_order(query: exp.Select, context: Context, queries: Queries) -> Query | None:
    """Read groups of which calls take the rows as they come."""
    definition = queries.facts.definition
    refuse_sorted_input(definition, WHAT)
    refuse_other_shapes(query, definition.aggregates)
    return grouped_at_top(query, context, queries, recomputed=True)


def grouped_at_top(query: exp.Select, context: Context, queries: Queries, recomputed: bool = False) -> Query | None:
    """Read the groups of a SELECT; with `recomputed` calls that do not add up are computed anew as they are written.

    Return None where increments cannot tell which of several equal values a group shows.
    """
    facts, calls = queries.facts, IncrementalCalls(recomputed)
    columns = facts.definition.columns
    query, found = without_subqueries_of_calls(query, facts.definition.aggregates)
    blocks = queries.blocks(query, context)
    grouping = Grouping(GroupKeys.of(facts, query, blocks, GROUP), calls, facts.definition.aggregates)
    lifted = [grouping.lift(item.unalias()) for item in query.selects]
    having = grouping.lift(query.args["having"].this) if query.args.get("having") else None
    blocks = hoist(queries, blocks, found, context)
    if recomputed:
        refuse_equal_keys(facts, query, grouping.keys, blocks)
    rows, names = _rows(facts, grouping, blocks)
    ambiguous = ambiguous_keys(facts, rows, names[: len(grouping.keys)], _settled(facts, grouping, blocks, lifted))
    if ambiguous is None:
        return None
    shown_by = {key: calls.name(exp.Min(this=grouping.keys[names.index(key)].copy())) for key in ambiguous}
    if shown_by:
        rows, names = _rows(facts, grouping, blocks)
    representatives = _representatives(facts, grouping, rows, blocks)
    if having is not None:
        is_representative(having, representatives)
    flags = [is_representative(each, representatives) for each in lifted]
    shown = tuple((e.name, name) for e, (name, _) in zip(lifted, columns, strict=True) if grouping.group_keys.is_key(e))
    values = (show_values(each, GROUP, shown_by) for each in lifted)
    output = tuple((name, render(cast_to(e, kind))) for e, (name, kind) in zip(values, columns, strict=True))
    condition = render(having) if having is not None else None
    grouped = query.args.get("group") is not None
    listed = _scaled(facts, grouping, blocks)
    aggregate = Aggregate(rows, names[: len(grouping.keys)], listed, condition, output, grouped, shown)
    shows = frozenset(name for (name, _), flag in zip(columns, flags, strict=True) if flag)
    placed = with_places(rows, query, facts.definition) if recomputed else None
    text = _text_below(query, (*grouping.keys, *calls.arguments), found)
    return Query(rows, names, aggregate, text=text, representatives=shows, placed=placed)


def _text_below(query: exp.Select, items: Expressions, found: list[exp.Expr]) -> str | None:
    """Write the rows below the groups as the user did; None where the columns of a subquery are compared one by one."""
    if any(width(each) > 1 for each in found):
        return None
    return text_below(query, [put_back(each, found) for each in items])


def _settled(facts: Facts, grouping: Incremental, blocks: Blocks, lifted: list[exp.Expr]) -> frozenset[str]:
    """Name the keys that are not shown, or whose equal values look the same though others of their type do not."""
    read = {column.name for each in lifted for column in each.find_all(exp.Column) if column.table == GROUP}
    found = [(block, _resolved(grouping, block)) for block in blocks]
    return frozenset(
        f"k{i}"
        for i in range(len(grouping.keys))
        if f"k{i}" not in read or one_scale(facts, ((block, columns[i]) for block, columns in found)) is not None
    )


def _scaled(facts: Facts, grouping: Incremental, blocks: Blocks) -> tuple[Call, ...]:
    """List the calls, with the scale that all values of their arguments have."""
    found, keys = [(block, _resolved(grouping, block)) for block in blocks], len(grouping.keys)
    scales = {
        f"a{i}": one_scale(facts, ((block, columns[keys + i]) for block, columns in found))
        for i in range(len(grouping.calls.arguments))
    }
    return tuple(replace(call, scale=scales.get(call.argument or "")) for call in grouping.calls.listed)


def _rows(facts: Facts, grouping: Incremental, blocks: Blocks) -> tuple[Relation, tuple[str, ...]]:
    """Return the rows below the groups, with the names of their columns: the keys, then the arguments."""
    found = tuple((each, _resolved(grouping, each)) for each in blocks)
    keys = len(grouping.keys)
    projects = tuple(_projected(block, columns, keys) for block, columns in guard_rows(facts, found))
    return sum_of(projects), tuple(name for name, _ in projects[0].columns)


def _resolved(grouping: Incremental, block: Block) -> Expressions:
    return tuple(resolve(each, block.names) for each in (*grouping.keys, *grouping.calls.arguments))


def _projected(block: Block, columns: Expressions, keys: int) -> Project:
    as_keys = project(block, columns[:keys], "k")
    as_arguments = project(block, columns[keys:], "a")
    return Project(as_keys.input, as_keys.columns + as_arguments.columns)


def _representatives(facts: Facts, grouping: Incremental, rows: Relation, blocks: Blocks) -> Representatives:
    """Find the keys and calls that show one of several equal values, with the types of these."""
    keys, arguments = len(grouping.keys), len(grouping.calls.arguments)
    names = [f"k{i}" for i in range(keys)] + [f"a{i}" for i in range(arguments)]
    flags = representative_columns((block, _resolved(grouping, block)) for block in blocks)
    ambiguous = {name: sort for name, sort in zip(names, differing(facts, rows), strict=True) if sort}
    representatives = {(GROUP, name): ambiguous[name] for name in compress(names, flags) if name in ambiguous}
    calls = representatives_at_top(grouping.calls.listed, representatives, ambiguous)
    return {
        (GROUP, name): kind for name, kind in {**ambiguous, **calls}.items() if name in calls or name.startswith("k")
    }
