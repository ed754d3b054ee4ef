"""Grouped SELECTs below other parts of a query, as operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.query.block import Block, own_column, project, sum_of
from pytrickle.plan.query.calls import CALL_AROUND, bare_call, function_name, refuse_rounding_calls
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import Decorrelated, columns_around, decorrelate_by_domain
from pytrickle.plan.query.derive import derive
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.grouping import Grouping, WrittenCalls
from pytrickle.plan.query.grouping_sets import Keys
from pytrickle.plan.query.guard import any_fails
from pytrickle.plan.query.null_padding import nulls_of
from pytrickle.plan.query.operation import Rows, columns_of, text
from pytrickle.plan.query.representative_calls import mark_representatives
from pytrickle.plan.query.scope import Names, has_name, resolve, single_source
from pytrickle.plan.query.tie_breaking import settle_call
from pytrickle.plan.sql.types import is_exact

GROUP = "\x00group"
# Exact sums, of which the order of rows does not even decide how many digits they show.
SUMS = frozenset({"count", "sum", "avg"})
SUM_TYPES = frozenset({"bigint", "numeric"})
Blocks = tuple[Block, ...]
Anew = Grouping[WrittenCalls]


def group_table(outer: Names) -> str:
    """Name the groups of a query such that they hide none of a query around it, whose calls a subquery may read."""
    return f"{GROUP}{sum(name.startswith(GROUP) for name in outer)}"


def grouped(facts: Facts, lift: Anew, sets: Sequence[Keys], blocks: Blocks, context: Context) -> tuple[Block, ...]:
    """Build the groups of blocks for each grouping set, one block each; all have the same names.

    What ties them to the rows around becomes further keys, which the blocks' conditions equate with the outer sides.
    """
    around = read_around(lift, tuple(lift.keys), blocks, context.outer)
    computed = (*lift.keys, *lift.calls.nodes)
    rows = tuple((each, tuple(resolve(node, each.names, context.outer) for node in computed)) for each in blocks)
    decorrelated = decorrelate_by_domain(facts, context.block, blocks, "an aggregate", any_fails(facts, rows), around)
    if decorrelated[0].pairs and not all(sets):
        raise NotDifferentiable("an aggregate without GROUP BY that is tied to the rows around it")
    absent = _nulls(facts, lift.keys, decorrelated, context.outer) if len(sets) > 1 else ()
    nulls = dict(zip(lift.keys, absent, strict=False))
    # Those of no set depend on a primary key, which then is in each of them.
    dependent = tuple(key for key in lift.keys if all(key not in keys for keys in sets))
    result = []
    for keys in sets:
        own = tuple(lift.keys) if len(sets) == 1 else (*keys, *dependent)
        block, columns = group(facts, lift, own, decorrelated, context.outer)
        at = {key: columns[f"k{i}"] for i, key in enumerate(own)}
        shown = {f"k{i}": at[key] if key in at else nulls[key] for i, key in enumerate(lift.keys)}
        shown |= {name: column for name, column in columns.items() if name.startswith("c")}
        result.append(block.named(_visible(lift, blocks[0].names, {**shown, **lift.bits_of(frozenset(own))})))
    return tuple(result)


def group(
    facts: Facts, lift: Anew, own: Keys, decorrelated: tuple[Decorrelated, ...], outer: Names
) -> tuple[Block, dict[str, exp.Expr]]:
    """Build the groups by some keys, and return them with their columns: k<i>, then the ties', and c<i>."""
    keys = tuple(f"k{i}" for i in range(len(own) + len(decorrelated[0].pairs)))
    arguments = (*keys, *lift.calls.arguments.names)
    rows: Rows = tuple((each.block, _columns(lift, own, each, outer)) for each in decorrelated)
    taken = [_over_rows(lift, own, call) for call in lift.calls.nodes]
    settled = [settle_call(call, arguments) for call in taken]
    construct = Group(tuple(map(text, settled)), settled != taken)
    leaf = _in_any_order(facts, derive(facts, rows, arguments, keys, construct), taken)
    leaf = mark_representatives(facts, leaf, rows, {f"c{i}": call for i, call in enumerate(taken)})
    refuse_rounding_calls(lift.calls.nodes, facts.types_of(leaf.operation)[len(keys) :][: len(settled)])
    return Block((leaf,), decorrelated[0].ties(leaf.alias, len(own)), {}), columns_of(leaf)


def _over_rows(lift: Anew, own: Keys, call: exp.Expr) -> exp.Expr:
    """Write a call over the rows of the groups; what an ordered-set aggregate takes once for a group is a key of it.

    So is p in `percentile_cont(p) WITHIN GROUP (ORDER BY x)`.
    """
    marked = call.copy()
    for node in list(marked.find_all(exp.WithinGroup)):
        for direct in node.this.expressions:
            direct.replace(direct.copy().transform(lambda each: _marker(own, each) or each))
    taken = lift.calls.arguments.take(marked)
    return taken.transform(lambda node: own_column(ROW, node.name) if isinstance(node, exp.Placeholder) else node)


def _marker(own: Keys, node: exp.Expr) -> exp.Expr | None:
    bare = node.unnest()
    return exp.Placeholder(this=f"k{own.index(bare)}") if bare in own else None


def _in_any_order(facts: Facts, leaf: Derived, calls: list[exp.Expr]) -> Derived:
    """Mark groups whose rows need not be sorted: of values that are equal but not the same only sums are shown."""
    operation, construct = leaf.operation, leaf.operation.construct
    assert isinstance(construct, Group)
    found = zip(operation.arguments, facts.types_of(operation.input), strict=True)
    unlike = {name for name, type_name in found if not is_exact(type_name, facts.definition)}
    results = operation.types[len(operation.keys) :]
    # Groups without keys and calls have a column all the same.
    free = (_adds_up(call, result) or not unlike & _read(call) for call, result in zip(calls, results, strict=False))
    if unlike & set(operation.keys) or not all(free):
        return leaf
    return replace(leaf, operation=replace(operation, construct=replace(construct, any_order=True)))


def _adds_up(call: exp.Expr, result: str) -> bool:
    """Whether a call is a sum, an average or a number of rows, and exact, so that it takes them in any order."""
    return function_name(bare_call(call)) in SUMS and result in SUM_TYPES and not call.find(exp.Distinct, exp.Order)


def _read(call: exp.Expr) -> set[str]:
    return {column.name for column in call.find_all(exp.Column)}


def _nulls(
    facts: Facts, keys: list[exp.Expr], decorrelated: tuple[Decorrelated, ...], outer: Names
) -> tuple[exp.Expr, ...]:
    rows = (
        project(each.block, tuple(resolve(key, each.block.names, each.inside(outer)) for key in keys))
        for each in decorrelated
    )
    return nulls_of(facts, sum_of(tuple(rows))) if keys else ()


def read_around(lift: Anew, own: Keys, blocks: Blocks, outer: Names) -> tuple[exp.Expr, ...]:
    """List the columns of the rows around that groups are made of, or that their calls take."""
    if any(_belongs_around(call, blocks[0].names) for call in lift.calls.nodes):
        raise NotDifferentiable(CALL_AROUND)
    return columns_around(tuple((block, _read_of(lift, own, block, outer)) for block in blocks))


def _belongs_around(call: exp.Expr, names: Names) -> bool:
    """Whether a call takes columns, but none of its own query: SQL has the query around it compute it."""
    columns = list(call.find_all(exp.Column))
    return bool(columns) and not any(has_name(names, column) for column in columns)


def _read_of(lift: Anew, own: Keys, block: Block, outer: Names) -> tuple[exp.Expr, ...]:
    keys = (resolve(key, block.names, outer) for key in own)
    return (*keys, *lift.calls.arguments.resolved(block.names, outer))


def _columns(lift: Anew, own: Keys, decorrelated: Decorrelated, around: Names) -> tuple[exp.Expr, ...]:
    names, outer = decorrelated.block.names, decorrelated.inside(around)
    keys = [resolve(key, names, outer) for key in own]
    result = (*keys, *decorrelated.inner, *lift.calls.arguments.resolved(names, outer))
    if any(column.table not in decorrelated.block.aliases for each in result for column in each.find_all(exp.Column)):
        raise NotDifferentiable("an aggregate over a column of the query around it")
    return result


def _visible(lift: Anew, below: Names, columns: dict[str, exp.Expr]) -> Names:
    """Keys that are plain columns stay visible under their own names, for subqueries above the grouping.

    PostgreSQL 18 prints those of a single source without its alias, but the subqueries' references with it.
    """
    names: dict[str, dict[str, exp.Expr]] = {lift.group_keys.table: columns}
    for position, key in enumerate(lift.keys):
        alias = (key.table or single_source(below)) if isinstance(key, exp.Column) else None
        if alias:
            names.setdefault(alias, {})[key.name] = columns[f"k{position}"]
    return names
