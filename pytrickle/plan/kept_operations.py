"""Which operations of a query keep their groups, because it takes long to compute them anew."""

from collections.abc import Mapping
from dataclasses import replace

from sqlglot import exp

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.delta import at, blocks_of
from pytrickle.plan.algebra.query import Aggregate, Call, Query
from pytrickle.plan.algebra.relation import Derived, Join, Operation, Project, Version, leaves, operations, relids
from pytrickle.plan.postgres.aggregate import is_exact as adds_exactly
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.compile import compile_rows
from pytrickle.plan.postgres.kept_groups import MOST_KEPT, KeptGroups, Values, kept_table, with_values
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.grouping import added
from pytrickle.plan.query.one_scale import one_scale
from pytrickle.plan.query.probe import Probe, hashed_columns
from pytrickle.plan.sql.dialect import parse_query, render
from pytrickle.plan.sql.types import is_exact

# Of sources with fewer pages together, groups are computed anew in less time than keeping them takes.
WORTH_KEEPING = 1_000
# So many rows make a large group.
LARGE = 100
# More groups would take much room.
MOST_GROUPS = 1_000_000
GROUPS = "SELECT FROM (\n{rows}\n) AS d GROUP BY {keys}"
FUNCTIONS: dict[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


def kept_groups(query: Query, definition: Definition, probe: Probe) -> tuple[KeptGroups, ...]:
    """Lay out the tables of the operations of a query whose groups are kept."""
    found: list[KeptGroups] = []
    for operation in operations(query.rows):
        if len(found) < MOST_KEPT and _reads_much(operation, definition) and _is_innermost(operation):
            kept = _laid_out(operation, definition, probe, kept_table(definition.pgt_id, len(found)))
            found += [kept] if kept and _is_worth_keeping(kept, query, definition, probe) else []
    return tuple(found)


def _reads_much(operation: Operation, definition: Definition) -> bool:
    return sum(definition.source(relid).pages for relid in relids(operation.input)) >= WORTH_KEEPING


def _is_innermost(operation: Operation) -> bool:
    return all(each.linear for each in operations(operation.input))


def _is_worth_keeping(kept: KeptGroups, query: Query, definition: Definition, probe: Probe) -> bool:
    """Whether groups are large, or all of them are read: of few small groups all rows are soon read again."""
    operation = kept.operation
    if not operation.keys:
        return True
    rows = compile_rows(at(operation.input, Version.CURRENT), definition)
    groups = probe.estimated_rows(GROUPS.format(rows=rows, keys=", ".join(operation.keys)))
    are_worth_it = _are_all_read(operation, query) or probe.estimated_rows(rows) >= LARGE * groups
    return are_worth_it and groups <= MOST_GROUPS


def _are_all_read(operation: Operation, query: Query) -> bool:
    """Whether some part of a query reads groups of which no key is asked for by what stands beside or above them."""
    within = [(block, each.keys) for each in operations(query.rows) for block in blocks_of(each.input)]
    beside = [(block, ()) for block in blocks_of(query.rows) if len(leaves(block)) > 1]
    return any(
        isinstance(leaf, Derived) and leaf.operation == operation and not _is_asked_for(leaf, block, keys)
        for block, keys in (*within, *beside)
        for leaf in leaves(block)
    )


def _is_asked_for(leaf: Derived, block: Project, keys: tuple[str, ...]) -> bool:
    """Whether an equality, or one of the keys by which the block is asked for, is about a key of a leaf."""
    join = block.input
    assert isinstance(join, Join)
    sides = [side for each in join.predicates if each.equality for side in (each.equality.left, each.equality.right)]
    asked = [expr.column for name, expr in block.columns if name in keys and expr.column]
    return any(alias == leaf.alias and column in leaf.operation.keys for alias, column in (*sides, *asked))


def _laid_out(operation: Operation, definition: Definition, probe: Probe, table: str) -> KeptGroups | None:
    """Lay out one; None where increments do not give what the groups show, or another of several equal values."""
    found = _added_up(operation)
    if found is None:
        return None
    calls, values = found
    rows = with_values(compile_rows(at(operation.input, Version.CURRENT), definition), operation.keys, values)
    types = dict(zip((*operation.keys, *(name for name, _ in values)), probe.column_types(rows), strict=False))
    added_up = [call.argument for call in calls if call.argument and call.function != "count"]
    if not all(is_exact(types[key], definition) for key in operation.keys):
        return None
    if not all(adds_exactly(types[argument]) for argument in added_up):
        return None
    output = tuple((name, name) for name in operation.columns)
    scales = {name: _scale_of(text, operation, Facts(definition, probe)) for name, text in values}
    calls = tuple(replace(call, scale=scales.get(call.argument or "")) for call in calls)
    aggregate = Aggregate(operation.input, operation.keys, calls, None, output, bool(operation.keys))
    hashable = frozenset(hashed_columns(tuple(types.items()), definition, probe))
    exact = frozenset(name for name, of in types.items() if is_exact(of, definition))
    grouped = Grouped.of(aggregate, types, hashable, exact)
    layout = grouped.layout(rows)
    shown = probe.column_types(grouped.final(f"(\n{layout}\n) AS s"))
    return KeptGroups(operation, grouped, values, table, layout) if shown == operation.types else None


def _scale_of(text: str, operation: Operation, facts: Facts) -> int | None:
    """Return the scale of all values that an expression over the rows `d` of an operation has, if that is known."""
    value = parse_query(f"SELECT {text}").expressions[0]
    found = []
    for project in blocks_of(operation.input):
        meant = {name: parse_query(f"SELECT {expr.sql}").expressions[0].unalias() for name, expr in project.columns}
        found.append((Block(leaves(project), (), {}), value.transform(lambda node, meant=meant: _meant(node, meant))))
    return one_scale(facts, found)


def _meant(node: exp.Expr, meant: Mapping[str, exp.Expr]) -> exp.Expr:
    return exp.Paren(this=meant[node.name].copy()) if isinstance(node, exp.Column) and node.name in meant else node


def _added_up(operation: Operation) -> tuple[tuple[Call, ...], Values] | None:
    """Read the calls of groups, and what they add up under the names of its columns; None unless all of them add up."""
    construct = operation.construct
    if not isinstance(construct, Group) or construct.settled or not construct.calls:
        return None
    names: dict[str, str] = {}
    calls: list[Call] = []
    for number, text in enumerate(construct.calls):
        node = parse_query(f"SELECT {text}").expressions[0]
        function, value = FUNCTIONS.get(type(node)), node.this
        if function is None or isinstance(value, exp.Distinct | exp.Order) or node.expressions:
            return None
        taken = added(function, value, None)
        argument = names.setdefault(render(taken), f"a{len(names)}") if taken else None
        calls.append(Call(f"c{number}", function, argument))
    return tuple(calls), tuple((name, text) for text, name in names.items())
