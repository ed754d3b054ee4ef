"""Grouped SELECTs and window functions below other parts of a query, as operations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import Group, Window
from pytrickle.plan.query.above_grouping import GROUP, WINDOW, AboveGrouping, AboveWindows, function_name
from pytrickle.plan.query.block import Block, project, sum_of
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import Decorrelated, decorrelate_by_domain
from pytrickle.plan.query.derive import derive
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.grouping_sets import Keys
from pytrickle.plan.query.inner_order import refuse_sorted_input, takes_rows_as_they_come
from pytrickle.plan.query.null_padding import nulls_of
from pytrickle.plan.query.operation import Rows, columns_of, text
from pytrickle.plan.query.representative_calls import mark_representatives
from pytrickle.plan.query.scope import Names, resolve, single_source
from pytrickle.plan.query.tie_breaking import settle_call, settle_window, sort_of
from pytrickle.plan.sql.rounding import refuse_rounding

Blocks = tuple[Block, ...]


def grouped(
    facts: Facts, lift: AboveGrouping, sets: Sequence[Keys], blocks: Blocks, context: Context
) -> tuple[Block, ...]:
    """Build the groups of blocks for each grouping set, one block each; all have the same names.

    What ties them to the rows around becomes further keys, which the blocks' conditions equate with the outer sides.
    """
    decorrelated = decorrelate_by_domain(facts, context.block, blocks, "an aggregate")
    if decorrelated[0].pairs and not all(sets):
        raise NotDifferentiable("an aggregate without GROUP BY that is tied to the rows around it")
    nulls = dict(zip(lift.keys, _nulls(facts, lift.keys, blocks, context.outer), strict=True)) if len(sets) > 1 else {}
    result = []
    for keys in sets:
        own = tuple(lift.keys) if len(sets) == 1 else keys
        block, columns = group(facts, lift, own, decorrelated, context.outer)
        at = {key: columns[f"k{i}"] for i, key in enumerate(own)}
        shown = {f"k{i}": at[key] if key in at else nulls[key] for i, key in enumerate(lift.keys)}
        shown |= {name: column for name, column in columns.items() if name.startswith("c")}
        result.append(block.named(_visible(lift, {**shown, **lift.bits_of(frozenset(own))})))
    return tuple(result)


def group(
    facts: Facts, lift: AboveGrouping, own: Keys, decorrelated: tuple[Decorrelated, ...], outer: Names
) -> tuple[Block, dict[str, exp.Expr]]:
    """Build the groups by some keys, and return them with their columns: k<i>, then the ties', and c<i>."""
    keys = tuple(f"k{i}" for i in range(len(own) + len(decorrelated[0].pairs)))
    arguments = (*keys, *lift.arguments.names)
    rows: Rows = tuple((each.block, _columns(lift, own, each, outer)) for each in decorrelated)
    taken = [lift.arguments.take(call) for call in lift.calls.values()]
    settled = [settle_call(call, arguments) for call in taken]
    construct = Group(tuple(map(text, settled)), settled != taken)
    leaf = derive(facts, rows, arguments, keys, construct)
    leaf = mark_representatives(facts, leaf, rows, {f"c{i}": call for i, call in enumerate(taken)})
    _refuse_rounding(lift.calls.values(), facts.types_of(leaf.operation)[len(keys) :][: len(settled)])
    return Block((leaf,), decorrelated[0].ties(leaf.alias, len(own)), {}), columns_of(leaf)


def _nulls(facts: Facts, keys: list[exp.Expr], blocks: Blocks, outer: Names) -> tuple[exp.Expr, ...]:
    rows = (project(block, tuple(resolve(key, block.names, outer) for key in keys)) for block in blocks)
    return nulls_of(facts, sum_of(tuple(rows))) if keys else ()


def window(facts: Facts, lift: AboveWindows, blocks: Blocks, outer: Names) -> Block:
    """Add window functions to the rows of blocks; names are WINDOW's a<i> and w<i>."""
    parts = lift.common_keys()
    ordering = tuple(text(each) for each in _orders(lift))
    keys = tuple(f"k{i}" for i in range(len(parts)))
    arguments = (*keys, *lift.arguments.names)
    rows: Rows = tuple(
        (block, (*(resolve(key, block.names, outer) for key in parts), *lift.arguments.resolved(block.names, outer)))
        for block in blocks
    )
    refuse_ties(rows, "a window function")
    if any(map(takes_rows_as_they_come, lift.windows.values())):
        refuse_sorted_input(facts.definition, "a window without ORDER BY")
    sorted_once = len(set(map(sort_of, lift.windows.values()))) == 1
    settled = [settle_window(lift.arguments.take(each), arguments, sorted_once) for each in lift.windows.values()]
    entries = tuple(key.name for key in map(lift.arguments.take, parts) if isinstance(key, exp.Column))
    pushed_down = tuple(column.name for part in map(lift.arguments.take, parts) for column in part.find_all(exp.Column))
    construct = Window(tuple(map(text, settled)), ordering, entries, pushed_down)
    leaf = derive(facts, rows, arguments, keys, construct)
    taken = (lift.arguments.take(each) for each in lift.windows.values())
    leaf = mark_representatives(facts, leaf, rows, {f"w{i}": each for i, each in enumerate(taken)})
    functions_alone = [each.this for each in lift.windows.values()]
    _refuse_rounding(functions_alone, facts.types_of(leaf.operation)[len(lift.arguments.names) :])
    return Block((leaf,), (), {WINDOW: columns_of(leaf)})


def _columns(lift: AboveGrouping, own: Keys, decorrelated: Decorrelated, outer: Names) -> tuple[exp.Expr, ...]:
    names = decorrelated.block.names
    keys = [resolve(key, names, outer) for key in own]
    result = (*keys, *(inner for _, inner in decorrelated.pairs), *lift.arguments.resolved(names, outer))
    if any(column.table not in decorrelated.block.aliases for each in result for column in each.find_all(exp.Column)):
        raise NotDifferentiable("an aggregate over a column of the query around it")
    return result


def refuse_ties(rows: Rows, what: str) -> None:
    """Refuse an operation whose rows refer to the rows around it."""
    for block, columns in rows:
        expressions = (*columns, *block.predicates)
        if any(column.table not in block.aliases for each in expressions for column in each.find_all(exp.Column)):
            raise NotDifferentiable(f"{what} in a correlated subquery")


def _visible(lift: AboveGrouping, columns: dict[str, exp.Expr]) -> Names:
    """Keys that are plain columns stay visible under their own names, for subqueries above the grouping.

    PostgreSQL 18 prints those of a single source without its alias, but the subqueries' references with it.
    """
    names: dict[str, dict[str, exp.Expr]] = {GROUP: columns}
    for position, key in enumerate(lift.keys):
        alias = (key.table or single_source(lift.names)) if isinstance(key, exp.Column) else None
        if alias:
            names.setdefault(alias, {})[key.name] = columns[f"k{position}"]
    return names


def _refuse_rounding(calls: Iterable[exp.Expr], types: tuple[str, ...]) -> None:
    for call, type_name in zip(calls, types, strict=True):
        while isinstance(call, exp.Filter | exp.WithinGroup):
            call = call.this
        refuse_rounding(function_name(call), type_name)


def _orders(lift: AboveWindows) -> list[exp.Expr]:
    """List what the first window orders by, over the operation's rows."""
    first = next(iter(lift.windows.values()))
    order = first.args.get("order")
    return [lift.arguments.take(each) for each in order.expressions] if order else []
