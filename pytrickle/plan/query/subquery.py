"""Subqueries in expressions as joins: each becomes cases of blocks in which it has a known value.

EXISTS, IN and the like hold for the rows that match an indicator of distinct keys, and not for all others; a scalar
subquery is a grouped or single row to join, and NULL for the rows without one (shared rules, sections 1.4 and 1.8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Leaf
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.decorrelate import indicator
from pytrickle.plan.query.fold import MAX_BLOCKS, fitting
from pytrickle.plan.query.guard import fallible_last, guarded_cases
from pytrickle.plan.query.lateral import embedded, reads_no_table
from pytrickle.plan.query.mixed_equality import equated
from pytrickle.plan.query.outer_condition import pulled_out
from pytrickle.plan.query.scalar_subquery import array_cases, scalar_cases
from pytrickle.plan.query.scope import HOISTED, OPERAND, SUBLINK, Ctes, Names, resolve
from pytrickle.plan.query.subquery_kinds import has_query_operand, is_sublink
from pytrickle.plan.sql.three_valued import conjuncts, no_value, truth

if TYPE_CHECKING:
    from pytrickle.plan.query.from_clause import Reader

Case = tuple[Block, exp.Expr]


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands: the WITH clause in force, the names around its query, and the block they are of.

    `around` are the leaves of that block and of all blocks around it.
    """

    ctes: Ctes
    outer: Names
    asking: Block | None = None
    around: tuple[Leaf, ...] = ()

    def within(self, block: Block) -> Context:
        """Stand in a query that sees the names of a block too."""
        return Context(self.ctes, {**self.outer, **block.names}, block, (*self.around, *block.leaves))


def filtered(reader: Reader, block: Block, condition: exp.Expr | None, context: Context) -> tuple[Block, ...]:
    """Keep the rows for which a condition is true."""
    if condition is None:
        return (block,)
    result: tuple[Block, ...] = (block,)
    for conjunct in fallible_last(conjuncts(condition)):
        cases = [case for one in result for case in _cases(reader, one, [conjunct], context, True)]
        cases = guarded_cases(reader, cases, conjunct.find(exp.Query) is not None)
        kept = (one.where(*expressions) for one, expressions in cases)
        result = fitting(reader, tuple(one for one in kept if one is not None))
    return result


def expanded(
    reader: Reader, block: Block, expressions: list[exp.Expr], context: Context
) -> list[tuple[Block, list[exp.Expr]]]:
    """Resolve expressions over a block; every case gives each subquery in them a value."""
    return _cases(reader, block, expressions, context, False)


def taken(expression: exp.Expr, found: list[exp.Expr]) -> exp.Expr:
    """Take the subqueries out of an expression whose rows are hoisted; columns of HOISTED stand in for them."""
    return _take(expression, found, HOISTED)


def hoisted(reader: Reader, blocks: tuple[Block, ...], found: list[exp.Expr], context: Context) -> tuple[Block, ...]:
    """Give blocks the values of subqueries that were taken out, as names of HOISTED."""
    for number, node in enumerate(found):
        cases = [case for block in blocks for case in _sublink(reader, block, node, context, False)]
        blocks = tuple(
            block.named({**block.names, HOISTED: {**block.names.get(HOISTED, {}), f"s{number}": value}})
            for block, value in cases
        )
        blocks = fitting(reader, blocks)
    return blocks


def _cases(
    reader: Reader, block: Block, expressions: list[exp.Expr], context: Context, wanted: bool
) -> list[tuple[Block, list[exp.Expr]]]:
    found: list[exp.Expr] = []
    without = [_take(expression, found, SUBLINK) for expression in expressions]
    cases: list[tuple[Block, list[exp.Expr]]] = [(block, [])]
    for number, node in enumerate(found):
        direct = wanted and _is_marker(without[0].unnest(), number)
        cases = [
            (after, [*values, value])
            for before, values in cases
            for after, value in _sublink(reader, before, node, context, direct)
        ]
        cases = _fitting(reader, cases)
    return [
        (case, [_put(resolve(each, case.names, context.outer), values) for each in without]) for case, values in cases
    ]


def _fitting(reader: Reader, cases: list[tuple[Block, list[exp.Expr]]]) -> list[tuple[Block, list[exp.Expr]]]:
    """Fold too many cases into one, whose leaf shows the values of the subqueries so far."""
    if len(cases) <= MAX_BLOCKS:
        return cases
    named = (
        block.named({**block.names, SUBLINK: {f"s{i}": value for i, value in enumerate(values)}})
        for block, values in cases
    )
    return [
        (
            whole.named({alias: columns for alias, columns in whole.names.items() if alias != SUBLINK}),
            list(whole.names[SUBLINK].values()),
        )
        for whole in fitting(reader, tuple(named))
    ]


def _take(expression: exp.Expr, found: list[exp.Expr], table: str) -> exp.Expr:
    """Take the topmost subqueries out of an expression; numbered columns stand in for them."""

    def step(node: exp.Expr) -> exp.Expr:
        if not is_sublink(node):
            return node
        if node not in found:
            found.append(node.copy())
        return exp.column(f"s{found.index(node)}", table=table)

    return expression.copy().transform(step)


def _is_marker(node: exp.Expr, number: int) -> bool:
    return isinstance(node, exp.Column) and node.table == SUBLINK and node.name == f"s{number}"


def _put(expression: exp.Expr, values: list[exp.Expr]) -> exp.Expr:
    def step(node: exp.Expr) -> exp.Expr:
        marked = isinstance(node, exp.Column) and node.table == SUBLINK
        return values[int(node.name[1:])].copy() if marked else node

    return expression.transform(step)


def _sublink(reader: Reader, block: Block, node: exp.Expr, context: Context, direct: bool) -> list[Case]:
    """List the cases of one subquery; `direct` says that only the rows for which it is true count."""
    if reads_no_table(node):
        return [(block, embedded(reader, node, block.names, context.outer))]
    if has_query_operand(node):
        return _with_operand(reader, block, node, context, direct)
    inside = context.within(block)
    match node:
        case exp.Exists() if pulled := pulled_out(node, reader.definition.aggregates):
            return _both(reader, block, pulled, context, direct)
        case exp.Exists():
            return _present(reader, block, reader.rows(node.this, inside))
        case exp.In():
            return _in(reader, block, node, inside, direct)
        case exp.Anonymous():
            return array_cases(reader, block, node.expressions[0], inside)
        case exp.Query():
            return scalar_cases(reader, block, node, inside)
        case _:
            return _quantified(reader, block, node, inside, direct)


def _with_operand(reader: Reader, block: Block, node: exp.Expr, context: Context, direct: bool) -> list[Case]:
    """List the cases of a comparison whose left side has subqueries of its own: theirs first."""
    found: list[Case] = []
    bare = node.copy()
    bare.set("this", exp.column("v", table=OPERAND))
    for case, (value,) in _cases(reader, block, [node.this], context, False):
        named = case.named({**case.names, OPERAND: {"v": value}})
        for one, truth_value in _sublink(reader, named, bare, context, direct):
            names = {alias: columns for alias, columns in one.names.items() if alias != OPERAND}
            found.append((one.named(names), truth_value))
    return found


def _both(reader: Reader, block: Block, parts: tuple[exp.Expr, ...], context: Context, direct: bool) -> list[Case]:
    """List the cases of several conditions at once, none of which is ever NULL."""
    condition = exp.and_(*(part.copy() for part in parts))
    if direct:
        return [(each, truth(True)) for each in filtered(reader, block, condition, context)]
    return [(each, value) for each, (value,) in _cases(reader, block, [condition], context, False)]


def _present(reader: Reader, block: Block, inner: tuple[Block, ...], negated: bool = False) -> list[Case]:
    inner = tuple(each for each in inner if not each.is_empty)
    if not inner:
        return [(block, truth(negated))]
    match = indicator(reader, block, inner)
    matched = match.within(block)
    found = [(matched, truth(not negated))] if matched else []
    return found + [(each, truth(negated)) for each in match.outside(block)]


def _in(reader: Reader, block: Block, node: exp.Expr, context: Context, direct: bool) -> list[Case]:
    items = [resolve(each, context.outer) for each in _row(node.this)]
    inner = reader.derived(node.args["query"], context)
    values = [list(each.names[""].values()) for each in inner]
    if any(len(each) != len(items) for each in values):
        raise NotDifferentiable("IN over a subquery that names a column twice")
    pairs = [
        [equated(reader, (*context.around, *each.leaves), *pair) for pair in zip(items, shown, strict=True)]
        for each, shown in zip(inner, values, strict=True)
    ]
    equal = tuple(one for each, tests in zip(inner, pairs, strict=True) if (one := each.where(*tests)))
    item_null = not all(reader.never_null(item, block) for item in items)
    value_null = not all(reader.never_null(v, each) for each, vs in zip(inner, values, strict=True) for v in vs)
    if direct or not (item_null or value_null):
        return _present(reader, block, equal)
    if len(items) > 1:
        return _compared(reader, block, inner, [exp.and_(*tests) for tests in pairs], False)
    return _three_valued(reader, block, (inner, equal), items[0], value_null)


def _three_valued(
    reader: Reader,
    block: Block,
    inner: tuple[tuple[Block, ...], tuple[Block, ...]],
    item: exp.Expr,
    value_null: bool,
) -> list[Case]:
    """IN is true with a match, NULL without one where either side is NULL and there are rows, else false."""
    everything, equal = inner
    cases: list[Case] = []
    for case, value in _present(reader, block, equal):
        cases += [(case, value)] if value == truth(True) else _unmatched(reader, case, everything, item, value_null)
    return cases


def _unmatched(reader: Reader, block: Block, inner: tuple[Block, ...], item: exp.Expr, value_null: bool) -> list[Case]:
    nulls = [each.where(no_value(_only(each))) for each in inner] if value_null else []
    cases: list[Case] = []
    for case, found in _present(reader, block, tuple(each for each in nulls if each)):
        if found == truth(True):
            cases.append((case, truth(None)))
            continue
        known = case.where(exp.Not(this=no_value(item)))
        cases += [(known, truth(False))] if known else []
        unknown = case.where(no_value(item))
        for one, present in _present(reader, unknown, inner) if unknown else []:
            cases.append((one, truth(None) if present == truth(True) else truth(False)))
    return cases


def _only(block: Block) -> exp.Expr:
    return next(iter(block.names[""].values())).copy()


def _quantified(reader: Reader, block: Block, node: exp.Expr, context: Context, direct: bool) -> list[Case]:
    item = resolve(node.this, context.outer)
    inner = reader.derived(node.expression.this, context)
    if any(len(each.names[""]) != 1 for each in inner):
        raise NotDifferentiable("a comparison of rows with ANY or ALL of a subquery")
    tests = [_comparison(node, item, _only(each)) for each in inner]
    every = isinstance(node.expression, exp.All)
    if not direct:
        return _compared(reader, block, inner, tests, every)
    if every:
        return _present(reader, block, _where(inner, [_is(test, True, negate=True) for test in tests]), negated=True)
    return _present(reader, block, _where(inner, tests))


def _comparison(node: exp.Expr, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Compare two values as ANY or ALL does; an operator that has a schema binds as tightly as || does."""
    result = node.copy()
    result.set("this", left.copy())
    result.set("expression", exp.Paren(this=right) if isinstance(node, exp.Operator) else right)
    return result


def _compared(reader: Reader, block: Block, inner: tuple[Block, ...], tests: list[exp.Expr], every: bool) -> list[Case]:
    """A comparison with each row is settled by one that is true (ANY) or false (ALL), else NULL if one is NULL."""
    cases: list[Case] = []
    settled = _where(inner, [_is(test, not every) for test in tests])
    unknown = _where(inner, [_is(test, None) for test in tests])
    for case, found in _present(reader, block, settled):
        if found == truth(True):
            cases.append((case, truth(not every)))
        else:
            nulls = _present(reader, case, unknown)
            cases += [(one, truth(None) if null == truth(True) else truth(every)) for one, null in nulls]
    return cases


def _is(test: exp.Expr, value: bool | None, negate: bool = False) -> exp.Expr:
    return exp.Is(this=exp.Paren(this=test.copy()), expression=truth(value), **({"negate": True} if negate else {}))


def _where(blocks: tuple[Block, ...], tests: list[exp.Expr]) -> tuple[Block, ...]:
    return tuple(one for each, test in zip(blocks, tests, strict=True) if (one := each.where(test)))


def _row(node: exp.Expr) -> list[exp.Expr]:
    bare = node.unnest()
    if isinstance(bare, exp.Tuple) or (isinstance(bare, exp.Anonymous) and str(bare.this).upper() == "ROW"):
        return list(bare.expressions)
    return [node]
