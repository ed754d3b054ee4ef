"""The defining query as algebra: what can be maintained differentially, or the reason why it cannot."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra import Aggregate, Project, Query
from pytrickle.plan.blocks import (
    Block,
    Reader,
    cast_to,
    is_aggregate,
    project,
    refuse_clauses,
    resolve,
    sum_of,
    union_arms,
    unwrap,
)
from pytrickle.plan.dialect import AGGREGATES, parse_query, render
from pytrickle.plan.grouping import Grouping, is_key
from pytrickle.plan.probe import Probe

Ctes = Mapping[str, exp.Expr]
Expressions = tuple[exp.Expr, ...]


def parse(definition: Definition, probe: Probe) -> Query:
    """Read a defining query as algebra; raise NotDifferentiable with the construct that has no delta rule."""
    _refuse_known(definition)
    tree = parse_query(definition.text)
    _check_survival(definition, tree, probe)
    query, ctes = unwrap(tree, {})
    refuse_clauses(query)
    reader = Reader(definition, probe)
    if isinstance(query, exp.SetOperation):
        return _union(query, ctes, reader)
    if not isinstance(query, exp.Select):
        raise NotDifferentiable(f"a {query.key.upper()} query")
    if is_aggregate(query):
        return _aggregate(query, ctes, reader)
    blocks = reader.blocks(query, ctes)
    items = [item.unalias() for item in query.selects]
    resolved = [[resolve(item, block.names) for item in items] for block in blocks]
    return _rows(blocks, resolved, definition, _is_distinct(query))


def _refuse_known(definition: Definition) -> None:
    if definition.full_reason:
        raise NotDifferentiable(definition.full_reason)
    if definition.returns_sets:
        raise NotDifferentiable("a set-returning function")
    unknown = sorted(definition.aggregates - {name.lower() for name in AGGREGATES})
    if unknown:
        raise NotDifferentiable(f"the aggregate {unknown[0]}()")


def _check_survival(definition: Definition, tree: exp.Expr, probe: Probe) -> None:
    """The text that the planner would write must mean to PostgreSQL what the user's text means."""
    for text in (definition.text, *(view.text for view in definition.views)):
        written = tree if text is definition.text else parse_query(text)
        if not probe.same_query(text, render(written)):
            raise NotDifferentiable("the query uses syntax that the planner cannot reproduce exactly")


def _union(query: exp.Expr, ctes: Ctes, reader: Reader) -> Query:
    distinct = any(node.args.get("distinct") for node in _set_operations(query))
    types = tuple(type_name for _, type_name in reader.definition.columns)
    if distinct and not query.args.get("distinct"):
        raise NotDifferentiable("UNION without ALL below the top of the query")
    arms = union_arms(query, all_only=not distinct)
    blocks = tuple(chain.from_iterable(reader.derived(arm, ctes) for arm in arms))
    columns = [list(block.names[""].values()) for block in blocks]
    if any(len(each) != len(types) for each in columns):
        raise NotDifferentiable("a union whose arms name a column twice")
    return _rows(blocks, columns, reader.definition, distinct)


def _set_operations(query: exp.Expr) -> list[exp.Expr]:
    while isinstance(query, exp.Subquery) and not query.alias:
        query = query.this
    if not isinstance(query, exp.SetOperation):
        return []
    return [query, *_set_operations(query.this), *_set_operations(query.expression)]


def _is_distinct(select: exp.Select) -> bool:
    clause = select.args.get("distinct")
    if clause is not None and clause.args.get("on"):
        raise NotDifferentiable("DISTINCT ON")
    return clause is not None


def _rows(blocks: tuple[Block, ...], columns: list[list[exp.Expr]], definition: Definition, distinct: bool) -> Query:
    prefix = "k" if distinct else "r"
    types = [type_name for _, type_name in definition.columns]
    projects = tuple(
        project(block, tuple(cast_to(c, t) for c, t in zip(items, types, strict=True)), prefix)
        for block, items in zip(blocks, columns, strict=True)
    )
    names = tuple(name for name, _ in projects[0].columns)
    rows = sum_of(projects)
    if not distinct:
        return Query(rows, names, None)
    output = tuple((name, f'g."{key}"') for (name, _), key in zip(definition.columns, names, strict=True))
    shown = tuple((key, name) for (name, _), key in zip(definition.columns, names, strict=True))
    return Query(rows, names, Aggregate(rows, names, (), None, output, True, shown))


def _aggregate(query: exp.Select, ctes: Ctes, reader: Reader) -> Query:
    if query.args.get("distinct"):
        raise NotDifferentiable("DISTINCT over an aggregate")
    grouping = Grouping.of(query)
    columns = reader.definition.columns
    lifted = [grouping.lift(item.unalias()) for item in query.selects]
    output = tuple((name, render(cast_to(e, kind))) for e, (name, kind) in zip(lifted, columns, strict=True))
    having = query.args.get("having")
    condition = render(grouping.lift(having.this)) if having else None
    keys, arguments = grouping.keys, grouping.arguments
    projects = tuple(_grouped(block, keys, arguments) for block in reader.blocks(query, ctes))
    names = tuple(name for name, _ in projects[0].columns)
    rows = sum_of(projects)
    grouped = query.args.get("group") is not None
    shown = tuple((e.name, name) for e, (name, _) in zip(lifted, columns, strict=True) if is_key(e))
    aggregate = Aggregate(rows, names[: len(keys)], grouping.calls, condition, output, grouped, shown)
    return Query(rows, names, aggregate)


def _grouped(block: Block, keys: Expressions, arguments: Expressions) -> Project:
    as_keys = project(block, tuple(resolve(key, block.names) for key in keys), "k")
    as_arguments = project(block, tuple(resolve(argument, block.names) for argument in arguments), "a")
    return replace(as_keys, columns=as_keys.columns + as_arguments.columns)
