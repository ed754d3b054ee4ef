"""Subqueries in expressions as joins: each becomes cases of blocks in which it has a known value.

EXISTS, IN and the like hold for the rows that match an indicator of distinct keys, and not for all others; a scalar
subquery is a grouped or single row to join, and NULL for the rows without one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Leaf
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.calls import CALL_AROUND, is_call
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.counts import Counts, what_counts
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.fold import MAX_BLOCKS, fitting
from pytrickle.plan.query.guard import fallible_last, guard_cases
from pytrickle.plan.query.lateral import embedded, reads_no_table
from pytrickle.plan.query.membership import in_cases, present
from pytrickle.plan.query.mixed_equality import equated
from pytrickle.plan.query.nearer_columns import with_nearer_columns
from pytrickle.plan.query.outer_condition import pulled_out
from pytrickle.plan.query.quantified import quantified_cases
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.row_comparison import by_columns, compared_query, items_of, width
from pytrickle.plan.query.scalar_subquery import array_cases, scalar_cases
from pytrickle.plan.query.scope import HOISTED, OPERAND, SUBQUERY, Names, reads_around, resolve
from pytrickle.plan.query.select_clauses import having_alone, shown_and_asked
from pytrickle.plan.query.subquery_nodes import has_query_operand, is_subquery, quantifier
from pytrickle.plan.sql.three_valued import conjuncts, truth

Case = tuple[Block, exp.Expr]
# The values of subqueries, or of the columns of their rows, by the columns that stand in for them.
Values = Mapping[str, exp.Expr]


def filtered(recursion: Recursion, block: Block, condition: exp.Expr | None, context: Context) -> tuple[Block, ...]:
    """Keep the rows for which a condition is true."""
    if condition is None:
        return (block,)
    result: tuple[Block, ...] = (block,)
    for conjunct in fallible_last(conjuncts(condition)):
        cases = [case for one in result for case in _cases(recursion, one, [conjunct], context, True)]
        cases = guard_cases(recursion.facts, cases, conjunct.find(exp.Query) is not None)
        kept = (one.where(*expressions) for one, expressions in cases)
        result = fitting(recursion.facts, tuple(one for one in kept if one is not None))
    return result


def expanded(
    recursion: Recursion, block: Block, expressions: list[exp.Expr], context: Context
) -> list[tuple[Block, list[exp.Expr]]]:
    """Resolve expressions over a block; every case gives each subquery in them a value."""
    return _cases(recursion, block, expressions, context, False)


def take_out(expression: exp.Expr, found: list[exp.Expr]) -> exp.Expr:
    """Take the subqueries out of an expression whose rows are hoisted; columns of HOISTED stand in for them."""
    return _take_out(expression, found, HOISTED)


def take_out_of_calls(expression: exp.Expr, found: list[exp.Expr], aggregates: frozenset[str]) -> exp.Expr:
    """Take those out of it that stand in calls of aggregates."""

    def step(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Query):
            return node.copy()
        return take_out(node, found) if is_call(node, aggregates) else node

    return expression.copy().transform(step)


def without_subqueries_of_calls(select: exp.Select, aggregates: frozenset[str]) -> tuple[exp.Select, list[exp.Expr]]:
    """Take the subqueries out of the calls of a SELECT: they are computed for each row, before the groups."""
    found: list[exp.Expr] = []
    result = select.copy()
    for node in shown_and_asked(result):
        node.replace(take_out_of_calls(node, found, aggregates))
    return result, found


def refuse_calls_of_rows_around(select: exp.Select, aggregates: frozenset[str], names: Names, outer: Names) -> None:
    """Refuse calls of which the subqueries read rows around the SELECT, and none of its own: they belong to those."""
    for item in shown_and_asked(select):
        for call in item.walk(prune=lambda node: isinstance(node, exp.Query)):
            if is_call(call, aggregates) and not reads_around(call, names) and reads_around(call, outer):
                raise NotDifferentiable(CALL_AROUND)


def put_back(expression: exp.Expr, found: list[exp.Expr]) -> exp.Expr:
    """Put the subqueries back into an expression that they were taken out of."""

    def step(node: exp.Expr) -> exp.Expr:
        hoisted = isinstance(node, exp.Column) and node.table == HOISTED
        return found[int(node.name[1:])].copy() if hoisted else node

    return expression.copy().transform(step)


def hoist(
    recursion: Recursion, blocks: tuple[Block, ...], found: list[exp.Expr], context: Context
) -> tuple[Block, ...]:
    """Give blocks the values of subqueries that were taken out, as names of HOISTED."""
    for number, node in enumerate(found):
        cases = [case for block in blocks for case in _subquery_cases(recursion, block, node, context, Counts.VALUE)]
        blocks = tuple(
            block.named({**block.names, HOISTED: {**block.names.get(HOISTED, {}), **_named(number, node, value)}})
            for block, value in cases
        )
        blocks = fitting(recursion.facts, blocks)
    return blocks


def _cases(
    recursion: Recursion, block: Block, expressions: list[exp.Expr], context: Context, wanted: bool
) -> list[tuple[Block, list[exp.Expr]]]:
    found: list[exp.Expr] = []
    without = [_take_out(expression, found, SUBQUERY) for expression in expressions]
    cases: list[tuple[Block, Values]] = [(block, {})]
    for number, node in enumerate(found):
        counts = what_counts(without, number, wanted)
        cases = [
            (after, {**values, **_named(number, node, value)})
            for before, values in cases
            for after, value in _subquery_cases(recursion, before, node, context, counts)
        ]
        cases = _fitting(recursion.facts, cases)
    result: list[tuple[Block, list[exp.Expr]]] = []
    for case, values in cases:
        filled = Filled(recursion.facts, (*context.around, *case.leaves), values)
        result.append((case, [filled.put(resolve(each, case.names, context.outer)) for each in without]))
    return result


def _named(number: int, node: exp.Expr, value: exp.Expr) -> Values:
    """Name the value of a subquery that was taken out, or each column of its row."""
    if width(node) == 1:
        return {f"s{number}": value}
    return {f"s{number}_{i}": each for i, each in enumerate(value.expressions)}


def _fitting(facts: Facts, cases: list[tuple[Block, Values]]) -> list[tuple[Block, Values]]:
    """Fold too many cases into one, whose leaf shows the values of the subqueries so far."""
    if len(cases) <= MAX_BLOCKS:
        return cases
    named = (block.named({**block.names, SUBQUERY: values}) for block, values in cases)
    return [
        (
            whole.named({alias: columns for alias, columns in whole.names.items() if alias != SUBQUERY}),
            dict(whole.names[SUBQUERY]),
        )
        for whole in fitting(facts, tuple(named))
    ]


def _take_out(expression: exp.Expr, found: list[exp.Expr], table: str) -> exp.Expr:
    """Take the topmost subqueries out of an expression; numbered columns stand in for them."""

    def number(node: exp.Expr) -> int:
        if node not in found:
            found.append(node.copy())
        return found.index(node)

    def step(node: exp.Expr) -> exp.Expr:
        query = compared_query(node)
        if query is not None:
            left = [_take_out(item, found, table) for item in items_of(node.this)]
            names = [f"s{number(query)}_{i}" for i in range(width(query))]
            return by_columns(node, left, [exp.column(name, table=table) for name in names])
        if not is_subquery(node):
            return node
        if isinstance(node, exp.Query) and width(node) > 1:
            raise NotDifferentiable("a comparison of a row with a subquery by an operator of your own")
        return exp.column(f"s{number(node)}", table=table)

    return expression.copy().transform(step)


@dataclass(frozen=True, slots=True)
class Filled:
    """Puts the values of subqueries back into expressions over leaves."""

    facts: Facts
    leaves: tuple[Leaf, ...]
    values: Values

    def put(self, expression: exp.Expr) -> exp.Expr:
        """Replace the columns that stand in for subqueries.

        PostgreSQL does not print the casts of a column that is compared as a part of a row.
        """
        return expression.transform(self._step)

    def _step(self, node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.EQ | exp.NEQ) and _stands_in(node.expression) and "_" in node.expression.name:
            left, right = self.put(node.this), self.values[node.expression.name]
            equal = equated(self.facts, self.leaves, left, right)
            return type(node)(this=equal.this, expression=equal.expression)
        return self.values[node.name].copy() if _stands_in(node) else node


def _stands_in(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) and node.table == SUBQUERY


def _as_select(node: exp.Expr) -> exp.Expr:
    """Write the one row of (VALUES (x)) as (SELECT x).

    In a condition over LATERAL PostgreSQL computes the former once, for whichever row comes first.
    """
    if not isinstance(node, exp.Values) or len(node.expressions) != 1 or node.args.get("alias"):
        return node
    select = exp.Select(expressions=[each.copy() for each in node.expressions[0].expressions])
    for clause in ("order", "limit", "offset"):
        select.set(clause, node.args.get(clause))
    return select


def _subquery_cases(recursion: Recursion, block: Block, node: exp.Expr, context: Context, counts: Counts) -> list[Case]:
    """List the cases of one subquery."""
    if reads_no_table(node):
        return [(block, embedded(recursion.facts, node.transform(_as_select), block.names, context.outer))]
    if has_query_operand(node):
        return _with_operand(recursion, block, node, context, counts)
    inside = with_nearer_columns(recursion.facts, block, context).within(block)
    match node:
        case exp.Exists():
            if pulled := pulled_out(node, recursion.facts.definition.aggregates):
                return _both(recursion, block, pulled, context, counts)
            return _found(recursion, block, node, inside)
        case exp.In():
            return in_cases(recursion, block, node, inside, counts)
        case exp.Anonymous():
            return array_cases(recursion, block, node.expressions[0], inside)
        case exp.Query():
            return scalar_cases(recursion, block, node, inside)
    rows = quantifier(node)
    assert rows is not None
    return quantified_cases(recursion, block, node, rows, inside, counts)


def _with_operand(recursion: Recursion, block: Block, node: exp.Expr, context: Context, counts: Counts) -> list[Case]:
    """List the cases of a comparison whose left side has subqueries of its own: theirs first."""
    found: list[Case] = []
    items = items_of(node.this)
    bare, names = node.copy(), [f"v{i}" for i in range(len(items))]
    row = exp.Tuple(expressions=[exp.column(name, table=OPERAND) for name in names])
    bare.set("this", row if isinstance(node.this.unnest(), exp.Tuple | exp.Anonymous) else row.expressions[0])
    for case, values in _cases(recursion, block, items, context, False):
        named = case.named({**case.names, OPERAND: dict(zip(names, values, strict=True))})
        for one, truth_value in _subquery_cases(recursion, named, bare, context, counts):
            rest = {alias: columns for alias, columns in one.names.items() if alias != OPERAND}
            found.append((one.named(rest), truth_value))
    return found


def _found(recursion: Recursion, block: Block, node: exp.Exists, inside: Context) -> list[Case]:
    """List the cases of EXISTS: the rows that have a partner, and those that have none."""
    asked = having_alone(node.this, recursion.facts.definition)
    if asked:
        return scalar_cases(recursion, block, asked, inside)
    return present(recursion.facts, block, recursion.rows(node.this, inside))


def _both(
    recursion: Recursion, block: Block, parts: tuple[exp.Expr, ...], context: Context, counts: Counts
) -> list[Case]:
    """List the cases of several conditions at once, none of which is ever NULL."""
    condition = exp.and_(*(part.copy() for part in parts))
    if counts is Counts.TRUE_ROWS:
        return [(each, truth(True)) for each in filtered(recursion, block, condition, context)]
    return [(each, value) for each, (value,) in _cases(recursion, block, [condition], context, False)]
