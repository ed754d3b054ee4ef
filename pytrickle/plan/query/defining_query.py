"""The defining query as algebra: what can be maintained differentially, or the reason why it cannot."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.narrow import narrowed
from pytrickle.plan.algebra.query import Aggregate, Call, Query, Top
from pytrickle.plan.algebra.relation import Project
from pytrickle.plan.query.block import Block, cast_to, project, sum_of
from pytrickle.plan.query.calls import function_name, is_call
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.first_rows import CLAUSES, cut_off
from pytrickle.plan.query.grouping_sets import is_simple
from pytrickle.plan.query.guard import guard_rows
from pytrickle.plan.query.hidden_order import body_of, with_hidden
from pytrickle.plan.query.inner_order import refuse_sorted_input
from pytrickle.plan.query.lateral import calls_set
from pytrickle.plan.query.mixed_equality import refuse_unfit_keys
from pytrickle.plan.query.null_padding import in_one_collation, union_of
from pytrickle.plan.query.one_scale import one_scale
from pytrickle.plan.query.probe import Probe
from pytrickle.plan.query.queries import Queries
from pytrickle.plan.query.representatives import Representatives, is_representative, representative_columns
from pytrickle.plan.query.select_clauses import (
    has_windows,
    is_distinct_on,
    is_grouped,
    own_nodes,
    refuse_limited_sets,
    text_below,
    unrolls,
)
from pytrickle.plan.query.shown_values import ambiguous_keys
from pytrickle.plan.query.sorted_input import order_as_input
from pytrickle.plan.query.stored_order import refuse_chosen_rows, takes_rows_as_stored
from pytrickle.plan.query.subquery import expanded
from pytrickle.plan.query.top_grouping import grouped_at_top, grouped_in_stored_order
from pytrickle.plan.query.unseen_order import sort_unseen
from pytrickle.plan.sql.aggregates import added_up
from pytrickle.plan.sql.dialect import parse_query, render
from pytrickle.plan.sql.operators import by_window_names
from pytrickle.plan.sql.types import base_of

Expressions = tuple[exp.Expr, ...]
Blocks = tuple[Block, ...]


def parse(definition: Definition, probe: Probe) -> Query:
    """Read a defining query as algebra; raise NotDifferentiable with the construct that has no delta rule."""
    if reason := definition.full_reason or definition.needs_path:
        raise NotDifferentiable(reason)
    tree = parse_query(definition.text, definition.aggregates)
    _check_survival(definition, tree, probe)
    tree = order_as_input(sort_unseen(tree), definition.aggregates)
    queries = Queries(Facts(definition, probe))
    query, context = queries.unwrapped(tree, Context({}, {}))
    if any(query.args.get(clause) for clause in CLAUSES):
        refuse_limited_sets(query, definition)
        if not query.args.get("order"):
            refuse_sorted_input(definition, "LIMIT without ORDER BY")
        refuse_chosen_rows(query, definition.aggregates)
    query, hidden = with_hidden(query, definition, probe)
    if hidden:
        definition = body_of(definition, hidden)
        queries = Queries(Facts(definition, probe))
    body, top = cut_off(query, tuple(name for name, _ in definition.columns), definition.aggregates)
    found = _body(body, context, queries)
    if found.aggregate is not None:
        _refuse_unfit_groups(found, found.aggregate, queries.facts)
    if top is not None and top.ordering:
        _refuse_telling_order(
            top, {("", name): type_name for name, type_name in definition.columns if name in found.representatives}
        )
    return replace(found, rows=narrowed(found.rows), top=replace(top, hidden=hidden) if top else None)


def _refuse_unfit_groups(query: Query, aggregate: Aggregate, facts: Facts) -> None:
    types = dict(zip(query.row_columns, facts.types_of(query.rows), strict=True))
    kept = [call.argument for call in aggregate.calls if call.argument and call.function in ("min", "max")]
    if any(types[name].startswith("record") for name in (*aggregate.keys, *kept)) or _gives_rows(facts, types, kept):
        raise NotDifferentiable("a group with a row of no named type, which no table can hold")
    refuse_unfit_keys(facts, query.rows, query.row_columns, aggregate.keys)


def _gives_rows(facts: Facts, types: Mapping[str, str], kept: list[str]) -> bool:
    """Whether an extreme of some type of the user's is a row of no type that has a name, as PostgreSQL 18 has it."""
    own = sorted({types[name] for name in kept if "." in types[name]})
    extremes = ", ".join(f"max(CAST(NULL AS {type_name}))" for type_name in own)
    return bool(own) and any(found.startswith("record") for found in facts.probe.column_types(f"SELECT {extremes}"))


def _refuse_telling_order(top: Top, representatives: Representatives) -> None:
    for item in parse_query(f"SELECT ORDER BY {', '.join(top.ordering)}").args["order"].expressions:
        is_representative(item, representatives)


def _body(query: exp.Expr, context: Context, queries: Queries) -> Query:
    found = _maintained(query, context, queries)
    if found is not None:
        return found
    return replace(_rows(queries.derived(query, context), queries.facts), text=render(query))


def _maintained(query: exp.Expr, context: Context, queries: Queries) -> Query | None:
    """Read a query whose groups, or distinct rows, increments maintain at its top; None for others."""
    if isinstance(query, exp.Select) and _accumulates(query, queries.facts.definition):
        return grouped_at_top(query, context, queries)
    if isinstance(query, exp.Select) and _recomputes(query, queries.facts.definition):
        return grouped_in_stored_order(query, context, queries)
    if isinstance(query, exp.Select) and _is_distinct_only(query, queries.facts.definition):
        return _distinct(query, context, queries)
    if isinstance(query, exp.Union) and query.args.get("distinct"):
        arms = in_one_collation(queries.facts, _arms(queries, query, context))
        return _distinct_rows(tuple(block for arm in arms for block in arm), queries.facts)
    return None


def _check_survival(definition: Definition, tree: exp.Expr, probe: Probe) -> None:
    """The text that the planner would write must mean to PostgreSQL what the user's text means."""
    for text in (definition.text, *(view.text for view in definition.views)):
        written = tree if text is definition.text else parse_query(text, definition.aggregates)
        if not probe.same_query(by_window_names(text), render(written)):
            raise NotDifferentiable("the query uses syntax that the planner cannot reproduce exactly")


def _accumulates(select: exp.Select, definition: Definition) -> bool:
    """Whether increments can maintain a grouped SELECT: plain groups and calls, nothing above them but expressions."""
    nodes = _nodes_above(select)
    if not _groups_plainly(select, definition) or any(isinstance(node, exp.Distinct | exp.Order) for node in nodes):
        return False
    called = {function_name(node) for node in nodes if isinstance(node, exp.Anonymous)}
    return not called & ((definition.aggregates | {"grouping"}) - added_up())


def _recomputes(select: exp.Select, definition: Definition) -> bool:
    """Whether increments could maintain a SELECT, but for calls that take rows as they come."""
    nodes = _nodes_above(select)
    if any(isinstance(node, exp.Anonymous) and node.name.lower() == "grouping" for node in nodes):
        return False
    return _groups_plainly(select, definition) and takes_rows_as_stored(select, definition.aggregates)


def _nodes_above(select: exp.Select) -> list[exp.Expr]:
    having = select.args.get("having")
    return [node for item in [*select.selects, *([having.this] if having else [])] for node in own_nodes(item)]


def _groups_plainly(select: exp.Select, definition: Definition) -> bool:
    """Whether a SELECT has plain groups or calls, and nothing above them but expressions."""
    if not is_grouped(select, definition) or select.args.get("distinct") or not is_simple(select):
        return False
    nodes, group = _nodes_above(select), select.args.get("group")
    if not (group or any(is_call(node, definition.aggregates) for node in nodes)):
        return False
    if any(isinstance(node, exp.Window | exp.WithinGroup) or _is_above(node, definition) for node in nodes):
        return False
    keys = group.expressions if group else ()
    if any(key.find(exp.Query) for key in keys):
        return False
    return not unrolls(select, definition) and not any(calls_set(item, definition) for item in keys)


def _is_above(node: exp.Expr, definition: Definition) -> bool:
    """Whether a node is a subquery in no call of an aggregate."""
    if not isinstance(node, exp.Query):
        return False
    around = node.parent
    while around is not None and not is_call(around, definition.aggregates):
        around = around.parent
    return around is None


def _is_distinct_only(select: exp.Select, definition: Definition) -> bool:
    plain = select.args.get("distinct") is not None and not is_distinct_on(select)
    return plain and not any((is_grouped(select, definition), has_windows(select), unrolls(select, definition)))


def _distinct(select: exp.Select, context: Context, queries: Queries) -> Query | None:
    names = [name for name, _ in queries.facts.definition.columns]
    items = [item.unalias() for item in select.selects]
    cases = [case for block in queries.blocks(select, context) for case in expanded(queries, block, items, context)]
    blocks = tuple(block.named({"": dict(zip(names, columns, strict=True))}) for block, columns in cases)
    types = [type_name for _, type_name in queries.facts.definition.columns]
    shown = [cast_to(item, kind) for item, kind in zip(items, types, strict=True)]
    found = _distinct_rows(blocks, queries.facts)
    if found is None:
        return None
    copied = [shown[int(name[1:])] for name in found.row_columns[len(shown) :]]
    return replace(found, text=text_below(select, [*shown, *copied]))


def _arms(queries: Queries, query: exp.Expr, context: Context) -> list[Blocks]:
    """Flatten a tree of UNIONs whose top removes duplicates anyway; each of them gives its arms types of its own.

    An integer of 25 bits that is united with a real loses one of them, whatever both are united with then.
    """
    bare = query
    while isinstance(bare, exp.Subquery) and not bare.alias:
        bare = bare.this
    if not isinstance(bare, exp.Union) or any(bare.args.get(clause) for clause in ("limit", "offset", "with_")):
        return [queries.derived(query, context)]
    left, right = (_arms(queries, arm, context) for arm in (bare.this, bare.expression))
    types = queries.facts.types_of(union_of([left[0], right[0]]))
    return [tuple(_typed(queries.facts, block, types) for block in arm) for arm in (*left, *right)]


def _typed(facts: Facts, block: Block, types: tuple[str, ...]) -> Block:
    """Cast the columns of a subquery that are of other types."""
    columns = block.names[""]
    own = facts.types_of(project(replace(block, predicates=(), negated=False), tuple(columns.values())))
    cast = (
        column if base_of(mine) == base_of(wanted) else cast_to(column, wanted)
        for column, mine, wanted in zip(columns.values(), own, types, strict=True)
    )
    return block.named({"": dict(zip(columns, cast, strict=True))})


def _rows(blocks: Blocks, facts: Facts) -> Query:
    projects = _projects(blocks, facts, "r")
    names = tuple(name for name, _ in projects[0].columns)
    return Query(sum_of(projects), names, None, representatives=_shown_as_one(blocks, facts.definition))


def _distinct_rows(blocks: Blocks, facts: Facts) -> Query | None:
    """Read rows of which each is shown once; None where increments cannot tell which of several equal ones is.

    Behind the keys k<i> the rows have copies a<i> of those whose equal values may look different.
    """
    columns = facts.definition.columns
    projects = _projects(blocks, facts, "k")
    keys = tuple(name for name, _ in projects[0].columns)
    found = [(block, list(block.names[""].values())) for block in blocks]
    scales = {key: one_scale(facts, ((block, each[i]) for block, each in found)) for i, key in enumerate(keys)}
    settled = frozenset(key for key, scale in scales.items() if scale is not None)
    ambiguous = ambiguous_keys(facts, sum_of(projects), keys, settled)
    if ambiguous is None:
        return None
    arguments = {key: f"a{key[1:]}" for key in ambiguous}
    rows = sum_of(tuple(_with_copies(each, arguments) for each in projects))
    calls = {key: Call(f"c{i}", "min", argument) for i, (key, argument) in enumerate(arguments.items())}
    values = [calls[key].name if key in calls else key for key in keys]
    output = tuple((name, f'g."{value}"') for (name, _), value in zip(columns, values, strict=True))
    shown = tuple((key, name) for (name, _), key in zip(columns, keys, strict=True))
    aggregate = Aggregate(rows, keys, tuple(calls.values()), None, output, True, shown)
    return Query(rows, (*keys, *arguments.values()), aggregate)


def _with_copies(project: Project, names: Mapping[str, str]) -> Project:
    """Add copies of some columns, under other names."""
    copies = tuple((names[name], value) for name, value in project.columns if name in names)
    return Project(project.input, project.columns + copies)


def _projects(blocks: Blocks, facts: Facts, prefix: str) -> tuple[Project, ...]:
    types = [type_name for _, type_name in facts.definition.columns]
    columns = [list(block.names[""].values()) for block in blocks]
    if any(len(each) != len(types) for each in columns):
        raise NotDifferentiable("a set operation whose arms name a column twice")
    found = guard_rows(facts, tuple((block, tuple(items)) for block, items in zip(blocks, columns, strict=True)))
    return tuple(
        project(block, tuple(cast_to(c, t) for c, t in zip(items, types, strict=True)), prefix)
        for block, items in found
    )


def _shown_as_one(blocks: Blocks, definition: Definition) -> frozenset[str]:
    """Name the columns that may show one of several equal values."""
    flags = representative_columns((block, tuple(block.names[""].values())) for block in blocks)
    return frozenset(name for (name, _), flag in zip(definition.columns, flags, strict=True) if flag)
