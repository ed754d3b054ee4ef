"""Outer joins as sums: the rows that match, and those that do not with NULLs for the other side.

What has no match is everything minus what has one: L - L * distinct(keys of R), so an outer join is as linear as an
inner one but for the distinct keys (shared rules, section 1.3).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from sqlglot import exp

from pytrickle.plan.algebra import Function
from pytrickle.plan.block import Block
from pytrickle.plan.correlate import indicator
from pytrickle.plan.nulls import nulls_of_names
from pytrickle.plan.rowwise import is_rowwise, left_joined, padded
from pytrickle.plan.scope import MERGED, Names, first_named, resolve, tables_of
from pytrickle.plan.sublinks import Context, filtered

if TYPE_CHECKING:
    from pytrickle.plan.reader import Reader

Blocks = tuple[Block, ...]


def join(reader: Reader, left: Blocks, right: Blocks, clause: exp.Join, context: Context) -> Blocks:
    """Join two sums of blocks as a JOIN clause says; keep what has no match on the side or sides that it names."""
    side = (clause.side or "").upper()
    condition = clause.args.get("on")
    if side == "LEFT" and is_rowwise(right) and not (condition and condition.find(exp.Query)):
        return tuple(_padded(reader, one, right[0], clause, context) for one in left)
    result: list[Block] = []
    for one, other in product(left, right):
        names = _joined(clause, one.names, other.names)
        result += [block.named(names) for block in _matched(reader, one.times(other), clause, (one, other), context)]
    if side in {"LEFT", "FULL"}:
        nulls = nulls_of_names(reader, tuple(_beside(left[0], other) for other in right))
        for one in left:
            names = _joined(clause, one.names, nulls)
            inner = (other.where(*_conditions(clause, one.names, other.names, context.outer)) for other in right)
            result += _unmatched(reader, one, inner, names)
    if side in {"RIGHT", "FULL"}:
        nulls = nulls_of_names(reader, left)
        for other in right:
            names = _joined(clause, nulls, other.names)
            inner = (one.where(*_conditions(clause, one.names, other.names, context.outer)) for one in left)
            result += _unmatched(reader, other, inner, names)
    return tuple(result) or (
        left[0].times(right[0]).named(_joined(clause, left[0].names, right[0].names)).without_rows(),
    )


def _padded(reader: Reader, block: Block, right: Block, clause: exp.Join, context: Context) -> Block:
    """LEFT JOIN what is computed from each row alone, which has no change of its own."""
    alias, names = padded(reader, right)
    function = left_joined(right, alias, _conditions(clause, block.names, names, context.outer))
    return replace(block, leaves=(*block.leaves, function)).named(_joined(clause, block.names, names))


def _matched(
    reader: Reader, both: Block, clause: exp.Join, sides: tuple[Block, Block], context: Context
) -> tuple[Block, ...]:
    if clause.args.get("using"):
        found = both.where(*_conditions(clause, sides[0].names, sides[1].names, context.outer))
        return () if found is None else (found,)
    return filtered(reader, both, clause.args.get("on"), context)


def _conditions(clause: exp.Join, left: Names, right: Names, outer: Names) -> list[exp.Expr]:
    """Resolve the condition of a join between two sides."""
    using = clause.args.get("using")
    if using:
        pairs = [(first_named(left, name.name), first_named(right, name.name)) for name in using]
        return [exp.EQ(this=one.copy(), expression=other.copy()) for one, other in pairs]
    condition = clause.args.get("on")
    return [] if condition is None else [resolve(condition, _both(left, right), outer)]


def _unmatched(reader: Reader, block: Block, other: Iterable[Block | None], names: Names) -> tuple[Block, ...]:
    """Keep the rows of one side that match none of the other side's, which are under the join's condition."""
    asked = tuple(each for each in other if each is not None and not each.is_empty)
    alone = block.named(names)
    return indicator(reader, block, asked).outside(alone) if asked else (alone,)


def _both(left: Names, right: Names) -> Names:
    """Put the visible names of two sides side by side."""
    merged = {**left.get(MERGED, {}), **right.get(MERGED, {})}
    return {**left, **right, **({MERGED: merged} if merged else {})}


def _joined(clause: exp.Join, left: Names, right: Names) -> Names:
    """Name the columns of a join; those that USING merges can be named without an alias."""
    names = _both(left, right)
    using = [name.name for name in clause.args.get("using") or ()]
    if not using:
        return names
    side = (clause.side or "").upper()
    merged = dict(names.get(MERGED, {}))
    for name in using:
        one, other = first_named(left, name), first_named(right, name)
        both = exp.Anonymous(this="COALESCE", expressions=[one.copy(), other.copy()])
        merged[name] = {"RIGHT": other, "FULL": both}.get(side, one)
    return {**names, MERGED: merged}


def _beside(left: Block, right: Block) -> Block:
    """Let a LATERAL side stand beside what it refers to, so that it can be asked for its types."""
    functions = [leaf.tables for leaf in right.leaves if isinstance(leaf, Function)]
    expressions = [column for columns in right.names.values() for column in columns.values()]
    reads = frozenset[str]().union(*functions, *map(tables_of, expressions))
    return right if reads <= right.aliases else replace(right, leaves=(*left.leaves, *right.leaves))
