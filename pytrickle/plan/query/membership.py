"""Whether a row is among the rows of a subquery: EXISTS and IN, with their NULLs."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.counts import Counts
from pytrickle.plan.query.decorrelate import Match, indicator
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.mixed_equality import equated
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.row_comparison import items_of
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.sql.three_valued import no_value, truth

Case = tuple[Block, exp.Expr]


def present(facts: Facts, block: Block, inner: tuple[Block, ...], negated: bool = False) -> list[Case]:
    """List the cases of whether inner blocks have a row for a row of the block."""
    match = _match(facts, block, inner)
    if match is None:
        return [(block, truth(negated))]
    matched = match.within(block)
    found = [(matched, truth(not negated))] if matched else []
    return found + [(each, truth(negated)) for each in match.outside(block)]


def in_cases(recursion: Recursion, block: Block, node: exp.Expr, context: Context, counts: Counts) -> list[Case]:
    """List the cases of IN over a subquery."""
    items = [resolve(each, context.outer) for each in items_of(node.this)]
    inner = recursion.derived(node.args["query"], context)
    values = [list(each.names[""].values()) for each in inner]
    if any(len(each) != len(items) for each in values):
        raise NotDifferentiable("IN over a subquery that names a column twice")
    pairs = [
        [equated(recursion.facts, (*context.around, *each.leaves), *pair) for pair in zip(items, shown, strict=True)]
        for each, shown in zip(inner, values, strict=True)
    ]
    equal = tuple(one for each, tests in zip(inner, pairs, strict=True) if (one := each.where(*tests)))
    item_null = not all(recursion.facts.never_null(item, block) for item in items)
    value_null = not all(
        recursion.facts.never_null(v, each) for each, vs in zip(inner, values, strict=True) for v in vs
    )
    if counts.is_truth or not (item_null or value_null):
        return present(recursion.facts, block, equal)
    if len(items) > 1:
        unknown = [*_unknown(inner, pairs, items, item_null), *_unknown(inner, pairs, None, value_null)]
        doubts = [_Doubt(block, tuple(unknown), True)]
    else:
        doubts = list(_doubts(block, inner, items[0], item_null, value_null))
    return _three_valued(recursion.facts, block, equal, doubts, counts)


@dataclass(frozen=True, slots=True)
class _Doubt:
    """Rows for which IN is not false where inner blocks have a row; it is true for those that have an `equal` one."""

    rows: Block
    inner: tuple[Block, ...]
    may_be_equal: bool


def _doubts(
    block: Block, inner: tuple[Block, ...], item: exp.Expr, item_null: bool, value_null: bool
) -> Iterator[_Doubt]:
    """Nobody knows whether a value is equal to a NULL, nor whether NULL is equal to any value."""
    known = block.where(exp.Not(this=no_value(item))) if item_null else block
    if value_null and known:
        nulls = (each.where(no_value(next(iter(each.names[""].values())).copy())) for each in inner)
        yield _Doubt(known, tuple(each for each in nulls if each), True)
    unknown = block.where(no_value(item)) if item_null else None
    if unknown:
        yield _Doubt(unknown, inner, False)


def _unknown(
    inner: tuple[Block, ...], pairs: list[list[exp.Expr]], items: list[exp.Expr] | None, wanted: bool
) -> Iterator[Block]:
    """Find the rows of which nobody knows whether they are equal, since a column of one side (the inner one without
    `items`) is NULL. Asked for first, that leaves few rows to compare with all others."""
    for each, tests in zip(inner, pairs, strict=True) if wanted else ():
        values = items or list(each.names[""].values())
        found = each.where(exp.or_(*map(no_value, values)), is_(exp.and_(*tests), None))
        if found:
            yield found


def _three_valued(
    facts: Facts, block: Block, equal: tuple[Block, ...], doubts: list[_Doubt], counts: Counts
) -> list[Case]:
    """IN is true with an equal row, NULL without one where there is a doubt, else false: L - L ⋈ E - L ⋈ D + L ⋈ E ⋈ D.

    A row may be in several cases; with their signs these add up to one for the value that IN has, else to zero.
    """
    match = _match(facts, block, equal)
    doubtful = [(each, other) for each in doubts if (other := _match(facts, each.rows, each.inner))]
    cases: list[Case] = [(block, truth(False))]
    for part in _parts(block, match and match.excluding, [(doubt, each.excluding) for doubt, each in doubtful]):
        cases += [(each.minus(), truth(False)) for each in part]
    if counts is not Counts.FALSE_ROWS:
        found, unknown = _parts(block, match, doubtful)
        cases += [(each, truth(True)) for each in found]
        cases += [(each, truth(True if counts is Counts.FALSITY else None)) for each in unknown]
    return cases


def _match(facts: Facts, block: Block, inner: tuple[Block, ...]) -> Match | None:
    """Tell whether inner blocks have a row for a row of the block, unless they never have one."""
    filled = tuple(each for each in inner if not each.is_empty)
    return indicator(facts, block, filled) if filled else None


def _parts(block: Block, match: Match | None, doubtful: list[tuple[_Doubt, Match]]) -> tuple[list[Block], list[Block]]:
    """Return the rows that have an equal row, and those that have none but a doubt."""
    found = match.within(block) if match else None
    unknown: list[Block | None] = []
    for doubt, each in doubtful:
        unknown.append(each.within(doubt.rows))
        both = each.within(found) if found and doubt.may_be_equal else None
        unknown.append(both.minus() if both else None)
    return [found] if found else [], [each for each in unknown if each]


def is_(test: exp.Expr, value: bool | None, negate: bool = False) -> exp.Expr:
    """Ask whether a condition is true, false or NULL."""
    return exp.Is(this=exp.Paren(this=test.copy()), expression=truth(value), **({"negate": True} if negate else {}))


def where(blocks: tuple[Block, ...], tests: list[exp.Expr]) -> tuple[Block, ...]:
    """Keep of each block the rows that pass a test of its own."""
    return tuple(one for each, test in zip(blocks, tests, strict=True) if (one := each.where(test)))
