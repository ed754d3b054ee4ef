"""Subqueries in the ON of an outer join that read one of its sides alone: conditions on that side.

Of the side that may lack rows, L LEFT JOIN R ON p AND q = L LEFT JOIN (R WHERE q) ON p. Of the side that is kept, it is
(L WHERE q) LEFT JOIN R ON p, and all rows of L WHERE q IS NOT TRUE without a partner. A condition on both sides, of
which a subquery reads the kept one, is asked of that side with the subquery's value beside each row.
"""

from collections.abc import Iterator

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.scope import HOISTED
from pytrickle.plan.query.subquery import filtered, hoist, take_out
from pytrickle.plan.sql.three_valued import conjuncts

Blocks = tuple[Block, ...]
Joined = tuple[Blocks, Blocks, exp.Join]


def by_side(recursion: Recursion, left: Blocks, right: Blocks, join: exp.Join, context: Context) -> Iterator[Joined]:
    """List the joins whose sum is a join: left side, right side, clause. It is one, unless a kept side is asked.

    Raise NotDifferentiable where a subquery reads both sides, or both sides are kept. What the kept side shows of
    subqueries is to be left out of the names of the join: see `without_values`.
    """
    condition, side = join.args.get("on"), (join.side or "").upper()
    if condition is None or not side or not condition.find(exp.Query):
        yield left, right, join
        return
    if side == "FULL":
        raise NotDifferentiable("a subquery in the condition of a FULL JOIN")
    kept, other = (left, right) if side == "LEFT" else (right, left)
    parts = conjuncts(condition)
    asking = [part for part in parts if part.find(exp.Query)]
    of_other = [part for part in asking if not _asks(part, kept)]
    of_kept = [part for part in asking if _asks(part, kept) and not _asks(part, other)]
    rest = [part for part in parts if not any(part is each for each in (*of_other, *of_kept))]
    found: list[exp.Expr] = []
    rest = [take_out(part, found) for part in rest]
    if any(_asks(each, other) for each in found):
        raise NotDifferentiable("a subquery over both sides of an outer join in its condition")
    kept = hoist(recursion, kept, found, context)
    tied = join.copy()
    tied.set("on", exp.and_(*rest) if rest else exp.true())
    if of_other:
        other = _under(recursion, other, exp.and_(*of_other), context)
    if of_kept:
        asked = exp.and_(*of_kept)
        alone = _under(recursion, kept, _is_not_true(asked), context)
        kept = _under(recursion, kept, asked, context)
        yield _sides(side, alone, tuple(each.without_rows() for each in other), tied)
    yield _sides(side, kept, other, tied)


def without_values(blocks: Blocks) -> Blocks:
    """Leave out what a join named of subqueries."""
    return tuple(
        block.named({alias: columns for alias, columns in block.names.items() if alias != HOISTED}) for block in blocks
    )


def _sides(side: str, kept: Blocks, other: Blocks, join: exp.Join) -> Joined:
    return (kept, other, join) if side == "LEFT" else (other, kept, join)


def _under(recursion: Recursion, blocks: Blocks, condition: exp.Expr, context: Context) -> Blocks:
    found = tuple(each for block in blocks for each in filtered(recursion, block, condition, context))
    return found or (blocks[0].without_rows(),)


def _is_not_true(condition: exp.Expr) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=condition.copy()), expression=exp.true(), negate=True)


def _asks(condition: exp.Expr, side: Blocks) -> bool:
    """Whether a condition may read a side: a column without a table may be of any."""
    names = side[0].names
    return any(not column.table or column.table in names for column in condition.find_all(exp.Column))
