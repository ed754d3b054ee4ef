"""Outer joins as sums: the rows that match, and those that do not with NULLs for the other side.

What has no match is everything minus what has one: L - L * distinct(keys of R), so an outer join is as linear as an
inner one but for the distinct keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import product

from sqlglot import exp

from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import indicator
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.lateral import is_rowwise, left_joined, padded
from pytrickle.plan.query.mixed_equality import Leaves, equated, merged
from pytrickle.plan.query.null_padding import beside, nulls_of_names
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.scope import MERGED, Names, first_named, resolve
from pytrickle.plan.query.subquery import filtered

Blocks = tuple[Block, ...]


def join(recursion: Recursion, left: Blocks, right: Blocks, clause: exp.Join, context: Context) -> Blocks:
    """Join two sums of blocks as a JOIN clause says; keep what has no match on the side or sides that it names."""
    sides = _Sides(recursion, clause, context)
    condition = clause.args.get("on")
    if sides.side == "LEFT" and is_rowwise(right) and not (condition and condition.find(exp.Query)):
        return tuple(_padded(sides, one, right[0]) for one in left)
    result: list[Block] = []
    for one, other in product(left, right):
        result += _matched(sides, one, other)
    if sides.side in {"LEFT", "FULL"}:
        around = (*context.around, *left[0].leaves)
        nulls = nulls_of_names(recursion.facts, tuple(beside(around, other) for other in right))
        for one in left:
            names = sides.names(one.leaves, one.names, nulls)
            result += _unmatched(recursion.facts, one, (sides.within(other, one, other) for other in right), names)
    if sides.side in {"RIGHT", "FULL"}:
        nulls = nulls_of_names(recursion.facts, left)
        for other in right:
            names = sides.names(other.leaves, nulls, other.names)
            result += _unmatched(recursion.facts, other, (sides.within(one, one, other) for one in left), names)
    names = sides.names((*left[0].leaves, *right[0].leaves), left[0].names, right[0].names)
    return tuple(result) or (left[0].times(right[0]).named(names).without_rows(),)


@dataclass(frozen=True, slots=True)
class _Sides:
    """What a JOIN clause says of the names of its two sides, which are columns of some leaves or NULL."""

    recursion: Recursion
    clause: exp.Join
    context: Context

    @property
    def side(self) -> str:
        """The side that is kept whole: LEFT, RIGHT, FULL or none."""
        return (self.clause.side or "").upper()

    @property
    def using(self) -> list[str]:
        """The columns that USING names."""
        return [name.name for name in self.clause.args.get("using") or ()]

    def conditions(self, leaves: Leaves, left: Names, right: Names) -> list[exp.Expr]:
        """Resolve the condition of the join."""
        around = (*self.context.around, *leaves)
        pairs = [(first_named(left, name), first_named(right, name)) for name in self.using]
        if pairs:
            return [equated(self.recursion.facts, around, one, other) for one, other in pairs]
        condition = self.clause.args.get("on")
        return [] if condition is None else [resolve(condition, _both(left, right), self.context.outer)]

    def names(self, leaves: Leaves, left: Names, right: Names) -> Names:
        """Name the columns of the join; those that USING merges can be named without an alias."""
        names, around = _both(left, right), (*self.context.around, *leaves)
        if not self.using:
            return names
        found = {
            name: merged(self.recursion.facts, around, self.side, first_named(left, name), first_named(right, name))
            for name in self.using
        }
        return {**names, MERGED: {**names.get(MERGED, {}), **found}}

    def within(self, block: Block, one: Block, other: Block) -> Block | None:
        """Keep the rows of a block under the condition of a join of two blocks."""
        return block.where(*self.conditions((*one.leaves, *other.leaves), one.names, other.names))


def _padded(sides: _Sides, block: Block, right: Block) -> Block:
    """LEFT JOIN what is computed from each row alone, which has no change of its own."""
    alias, names = padded(sides.recursion.facts, right)
    leaves = (*block.leaves, left_joined(right, alias, ()))
    function = left_joined(right, alias, sides.conditions(leaves, block.names, names))
    joined = replace(block, leaves=(*block.leaves, function))
    return joined.named(sides.names(leaves, block.names, names))


def _matched(sides: _Sides, one: Block, other: Block) -> tuple[Block, ...]:
    both = one.times(other)
    if not sides.using:
        return filtered(sides.recursion, both, sides.clause.args.get("on"), sides.context)
    kept = sides.within(both, one, other)
    return () if kept is None else (kept.named(sides.names(both.leaves, one.names, other.names)),)


def _unmatched(facts: Facts, block: Block, other: Iterable[Block | None], names: Names) -> tuple[Block, ...]:
    """Keep the rows of one side that match none of the other side's, which are under the join's condition."""
    asked = tuple(each for each in other if each is not None and not each.is_empty)
    alone = block.named(names)
    return indicator(facts, block, asked).outside(alone) if asked else (alone,)


def _both(left: Names, right: Names) -> Names:
    """Put the visible names of two sides side by side."""
    merged = {**left.get(MERGED, {}), **right.get(MERGED, {})}
    return {**left, **right, **({MERGED: merged} if merged else {})}
