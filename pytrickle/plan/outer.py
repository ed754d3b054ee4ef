"""Outer joins as sums: the rows that match, and those that do not with NULLs for the other side.

What has no match is everything minus what has one: L - L * distinct(keys of R), so an outer join is as linear as an
inner one but for the distinct keys (shared rules, section 1.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pytrickle.plan.block import Block, null_of
from pytrickle.plan.correlate import indicator
from pytrickle.plan.scope import MERGED, Names, first_named, resolve
from pytrickle.plan.sublinks import Context, filtered

if TYPE_CHECKING:
    from pytrickle.plan.reader import Reader

Blocks = tuple[Block, ...]


def join(reader: Reader, left: Blocks, right: Blocks, clause: exp.Join, context: Context) -> Blocks:
    """Join two sums of blocks as a JOIN clause says; keep what has no match on the side or sides that it names."""
    side = (clause.side or "").upper()
    result: list[Block] = []
    for both in (one.times(other) for one in left for other in right):
        result += filtered(reader, both, _condition(clause, both.names), context)
    if side in {"LEFT", "FULL"}:
        result += _unmatched(reader, left, right, clause, context.outer)
    if side in {"RIGHT", "FULL"}:
        result += _unmatched(reader, right, left, clause, context.outer)
    return tuple(_with_merged(block, clause, side, left[0].names, right[0].names) for block in result)


def _condition(clause: exp.Join, names: Names) -> exp.Expr | None:
    using = clause.args.get("using")
    if not using:
        found: exp.Expr | None = clause.args.get("on")
        return found
    sides = [{a: c for a, c in names.items() if (a in _own_aliases(clause)) is own} for own in (False, True)]
    pairs = [tuple(_reference(side, name.name) for side in sides) for name in using]
    return exp.and_(*(exp.EQ(this=one, expression=other) for one, other in pairs))


def _unmatched(reader: Reader, kept: Blocks, other: Blocks, clause: exp.Join, outer: Names) -> list[Block]:
    nulls = _null_names(reader, other)
    result: list[Block] = []
    for block in kept:
        inner = [_inner(block, each, clause, outer) for each in other]
        asked = tuple(each for each in inner if each is not None)
        alone = block.named({**nulls, **block.names})
        result += indicator(reader, block, asked).outside(alone) if asked else (alone,)
    return result


def _inner(block: Block, other: Block, clause: exp.Join, outer: Names) -> Block | None:
    """One side of the join under the join's condition, tied to the row of the other side."""
    both = {**block.names, **other.names}
    condition = _condition(clause, both)
    return other if condition is None else other.where(resolve(condition, both, outer))


def _null_names(reader: Reader, blocks: Blocks) -> Names:
    """Give every visible column of one side the value NULL of its type."""
    return {
        alias: {column: null_of(type_name) for column, type_name in columns.items()}
        for alias, columns in reader.types_of_names(blocks).items()
    }


def _own_aliases(clause: exp.Join) -> frozenset[str]:
    """The aliases that the right side of a join brings in."""
    names = [clause.this.alias_or_name]
    names += [join.this.alias_or_name for join in clause.this.args.get("joins") or ()]
    inner = clause.this.this
    if isinstance(clause.this, exp.Subquery) and not clause.this.alias and isinstance(inner, exp.Table | exp.Subquery):
        names += [inner.alias_or_name, *(join.this.alias_or_name for join in inner.args.get("joins") or ())]
    return frozenset(name for name in names if name)


def _reference(names: Names, column: str) -> exp.Expr:
    first_named(names, column)
    for alias, columns in names.items():
        if column in columns and alias != MERGED:
            return exp.column(column, table=alias, quoted=True)
    return exp.column(column, quoted=True)


def _with_merged(block: Block, clause: exp.Join, side: str, left: Names, right: Names) -> Block:
    """The columns that USING merges can be named without an alias."""
    using = [name.name for name in clause.args.get("using") or ()]
    if not using:
        return block
    merged = dict(block.names.get(MERGED, {}))
    for name in using:
        one, other = (
            first_named({a: block.names[a] for a in names if a in block.names}, name) for names in (left, right)
        )
        both = exp.Anonymous(this="COALESCE", expressions=[one.copy(), other.copy()])
        merged[name] = {"RIGHT": other, "FULL": both}.get(side, one)
    return block.named({**block.names, MERGED: merged})
