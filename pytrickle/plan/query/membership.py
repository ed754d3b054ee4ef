"""Whether a row is among the rows of a subquery: EXISTS, IN and comparisons with ANY or ALL, with their NULLs."""

from collections.abc import Iterator

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import indicator
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.mixed_equality import equated
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.row_comparison import by_columns, items_of
from pytrickle.plan.query.scope import resolve
from pytrickle.plan.sql.three_valued import COMPARISONS, no_value, truth

Case = tuple[Block, exp.Expr]


def present(facts: Facts, block: Block, inner: tuple[Block, ...], negated: bool = False) -> list[Case]:
    """List the cases of whether inner blocks have a row for a row of the block."""
    inner = tuple(each for each in inner if not each.is_empty)
    if not inner:
        return [(block, truth(negated))]
    match = indicator(facts, block, inner)
    matched = match.within(block)
    found = [(matched, truth(not negated))] if matched else []
    return found + [(each, truth(negated)) for each in match.outside(block)]


def in_cases(recursion: Recursion, block: Block, node: exp.Expr, context: Context, direct: bool) -> list[Case]:
    """List the cases of IN over a subquery; `direct` says that NULL counts as false."""
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
    if direct or not (item_null or value_null):
        return present(recursion.facts, block, equal)
    if len(items) > 1:
        unknown = [*_unknown(inner, pairs, items, item_null), *_unknown(inner, pairs, None, value_null)]
        return _rows_among(recursion.facts, block, equal, tuple(unknown))
    return _three_valued(recursion.facts, block, (inner, equal), items[0], value_null)


def _three_valued(
    facts: Facts,
    block: Block,
    inner: tuple[tuple[Block, ...], tuple[Block, ...]],
    item: exp.Expr,
    value_null: bool,
) -> list[Case]:
    """IN is true with a match, NULL without one where either side is NULL and there are rows, else false."""
    everything, equal = inner
    cases: list[Case] = []
    for case, value in present(facts, block, equal):
        cases += [(case, value)] if value == truth(True) else _unmatched(facts, case, everything, item, value_null)
    return cases


def _unmatched(facts: Facts, block: Block, inner: tuple[Block, ...], item: exp.Expr, value_null: bool) -> list[Case]:
    nulls = [each.where(no_value(_only(each))) for each in inner] if value_null else []
    cases: list[Case] = []
    for case, found in present(facts, block, tuple(each for each in nulls if each)):
        if found == truth(True):
            cases.append((case, truth(None)))
            continue
        known = case.where(exp.Not(this=no_value(item)))
        cases += [(known, truth(False))] if known else []
        unknown = case.where(no_value(item))
        for one, any_row in present(facts, unknown, inner) if unknown else []:
            cases.append((one, truth(None) if any_row == truth(True) else truth(False)))
    return cases


def _only(block: Block) -> exp.Expr:
    return next(iter(block.names[""].values())).copy()


def _unknown(
    inner: tuple[Block, ...], pairs: list[list[exp.Expr]], items: list[exp.Expr] | None, wanted: bool
) -> Iterator[Block]:
    """Find the rows of which nobody knows whether they are equal, since a column of one side (the inner one without
    `items`) is NULL. Asked for first, that leaves few rows to compare with all others."""
    for each, tests in zip(inner, pairs, strict=True) if wanted else ():
        values = items or list(each.names[""].values())
        found = each.where(exp.or_(*map(no_value, values)), _is(exp.and_(*tests), None))
        if found:
            yield found


def _rows_among(facts: Facts, block: Block, equal: tuple[Block, ...], unknown: tuple[Block, ...]) -> list[Case]:
    """IN over rows of several columns is true with an equal row, NULL without one where one may be equal."""
    cases: list[Case] = []
    for case, found in present(facts, block, equal):
        if found == truth(True):
            cases.append((case, found))
        else:
            nulls = present(facts, case, unknown)
            cases += [(one, truth(None) if null == truth(True) else truth(False)) for one, null in nulls]
    return cases


def quantified_cases(recursion: Recursion, block: Block, node: exp.Expr, context: Context, direct: bool) -> list[Case]:
    """List the cases of a comparison with ANY or ALL of a subquery."""
    items = [resolve(each, context.outer) for each in items_of(node.this)]
    inner = recursion.derived(node.expression.this, context)
    shown = [[value.copy() for value in each.names[""].values()] for each in inner]
    if any(len(values) != len(items) for values in shown):
        raise NotDifferentiable("a comparison with ANY or ALL of a subquery that names a column twice")
    if len(items) > 1:
        tests = [by_columns(node, [item.copy() for item in items], values) for values in shown]
    else:
        tests = [_comparison(node, items[0], values[0]) for values in shown]
    every = isinstance(node.expression, exp.All)
    if not direct:
        return _compared(recursion.facts, block, inner, tests, every)
    if every:
        return present(
            recursion.facts, block, _where(inner, [_is(test, True, negate=True) for test in tests]), negated=True
        )
    return present(recursion.facts, block, _where(inner, tests))


def _comparison(node: exp.Expr, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Compare two values as ANY or ALL does; most operators bind as tightly as || does."""
    result = node.copy()
    result.set("this", left.copy())
    result.set("expression", right if isinstance(node, COMPARISONS) else exp.Paren(this=right))
    return result


def _compared(facts: Facts, block: Block, inner: tuple[Block, ...], tests: list[exp.Expr], every: bool) -> list[Case]:
    """A comparison with each row is settled by one that is true (ANY) or false (ALL), else NULL if one is NULL."""
    cases: list[Case] = []
    settled = _where(inner, [_is(test, not every) for test in tests])
    unknown = _where(inner, [_is(test, None) for test in tests])
    for case, found in present(facts, block, settled):
        if found == truth(True):
            cases.append((case, truth(not every)))
        else:
            nulls = present(facts, case, unknown)
            cases += [(one, truth(None) if null == truth(True) else truth(every)) for one, null in nulls]
    return cases


def _is(test: exp.Expr, value: bool | None, negate: bool = False) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=test.copy()), expression=truth(value), **({"negate": True} if negate else {}))


def _where(blocks: tuple[Block, ...], tests: list[exp.Expr]) -> tuple[Block, ...]:
    return tuple(one for each, test in zip(blocks, tests, strict=True) if (one := each.where(test)))
