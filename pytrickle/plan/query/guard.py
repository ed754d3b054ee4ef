"""Expressions that may fail, evaluated only for rows for which the query as written evaluates them.

A sum of products has rows that cancel out: those that an antijoin takes away again, and those that a delta joins from
an old and a new state. Where an expression over them may fail, what it reads is consolidated first:
f(R + S) = f(consolidate(R + S)).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pytrickle.plan.algebra.constructs.folded import Folded
from pytrickle.plan.algebra.relation import Derived, Function, Scan
from pytrickle.plan.query.block import Block, own_column, project
from pytrickle.plan.query.calls import ORDERED, is_call
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.operation import Rows, derive_unguarded
from pytrickle.plan.query.scope import columns_named, tables_of
from pytrickle.plan.sql.dialect import render
from pytrickle.plan.sql.fallible import Types, may_fail

FAILING = (exp.Div, exp.Mod, exp.IntDiv, exp.Cast, exp.Anonymous)
Columns = tuple[exp.Expr, ...]
Case = tuple[Block, list[exp.Expr]]


def guard_rows(facts: Facts, rows: Rows, deciding: int | None = None) -> Rows:
    """Consolidate the rows below expressions that may fail; the first `deciding` ones, or all, are evaluated now."""
    result: list[tuple[Block, Columns]] = []
    groups: dict[object, list[tuple[Block, Columns]]] = {}
    for block, columns in rows:
        types = _types_in(facts, block)
        if any(may_fail(each, types) for each in columns[:deciding]) and _is_closed(block, columns):
            groups.setdefault(_form(facts, block, columns), []).append((block, columns))
        else:
            result.append((block, columns))
    for group in groups.values():
        result += [_consolidate(facts, group)] if any(_cancels(block) for block, _ in group) else group
    return tuple(result)


def fallible_last(conjuncts: list[exp.Expr]) -> list[exp.Expr]:
    """Order conjuncts, those last that may fail and relate several FROM items, as join conditions do not.

    Of the others those with subqueries come last, so that these know what holds for the rows they are asked for.
    """

    def relates(part: exp.Expr) -> bool:
        return len({column.table for column in part.find_all(exp.Column)}) > 1 and may_fail(part)

    return sorted(conjuncts, key=lambda part: (relates(part), part.find(exp.Query) is not None))


def guard_cases(facts: Facts, cases: list[Case], divided: bool) -> list[Case]:
    """Consolidate the rows of cases below conditions that may fail and that are not taken down to a single table.

    `divided` says that the cases differ in the value of a subquery in the condition.
    """
    settled = [case for case in cases if not _is_asked(facts, case, divided)]
    asked = [case for case in cases if _is_asked(facts, case, divided)]
    if not asked:
        return cases
    visible = columns_named(asked[0][0].names)
    width = len(asked[0][1])
    rows: Rows = tuple((block, (*tests, *(block.names[a][c] for a, c in visible))) for block, tests in asked)
    for block, columns in guard_rows(facts, rows, width):
        names: dict[str, dict[str, exp.Expr]] = {alias: {} for alias in block.names}
        for (alias, column), shown in zip(visible, columns[width:], strict=True):
            names[alias][column] = shown
        settled.append((block.named(names), list(columns[:width])))
    return settled


def fails_inside(facts: Facts, block: Block, expressions: Columns) -> bool:
    """Whether something in expressions or conditions over a block may fail, aggregate calls themselves aside."""
    types = _types_in(facts, block)
    parts = (part for each in (*expressions, *block.predicates) for part in each.find_all(*FAILING))
    aggregates = facts.definition.aggregates | ORDERED
    return any(may_fail(part, types) for part in parts if not is_call(part, aggregates))


def any_fails(facts: Facts, rows: Rows) -> bool:
    """Whether something in rows, or in the conditions on them, may fail."""
    return any(fails_inside(facts, block, columns) for block, columns in rows)


def _is_asked(facts: Facts, case: Case, divided: bool) -> bool:
    block, tests = case
    types = _types_in(facts, block)
    joins = sum(len(tables_of(each)) > 1 for each in block.predicates)
    mixed = divided or any(len(tables_of(test)) > 1 for test in tests)
    return mixed and joins >= len(_weighted(block)) - 1 and any(may_fail(test, types) for test in tests)


def _consolidate(facts: Facts, group: list[tuple[Block, Columns]]) -> tuple[Block, Columns]:
    read = [_read(columns) for _, columns in group]
    names = tuple(f"a{i}" for i in range(len(read[0])))
    rows: Rows = tuple((block, found) for (block, _), found in zip(group, read, strict=True))
    leaf = derive_unguarded(facts, rows, names, (), Folded(cancels=True))
    block, columns = group[0]
    places = {column: own_column(leaf.alias, name) for column, name in zip(read[0], names, strict=True)}
    shown = tuple(_placed(each, places) for each in columns)
    return replace(block, leaves=(leaf,), predicates=(), negated=False), shown


def _read(columns: Columns) -> Columns:
    """List the columns of leaves that expressions read, each once."""
    return tuple(dict.fromkeys(column.copy() for each in columns for column in each.find_all(exp.Column)))


def _placed(expression: exp.Expr, places: dict[exp.Expr, exp.Column]) -> exp.Expr:
    return expression.copy().transform(lambda node: places[node].copy() if node in places else node)


def _form(facts: Facts, block: Block, columns: Columns) -> object:
    """Tell expressions over leaves apart by all but the names of these."""
    read = _read(columns)
    places = {column: own_column("", f"a{i}") for i, column in enumerate(read)}
    relation = project(replace(block, predicates=(), negated=False), read)
    texts = tuple(render(_placed(each, places)) for each in columns)
    return texts, facts.types_of(relation), facts.collations_of(relation)


def _cancels(block: Block) -> bool:
    """Whether a block, or a delta of it, has rows that others of the sum may take away."""
    weighted = _weighted(block)
    folded = [leaf for leaf in weighted if isinstance(leaf, Derived) and leaf.operation.linear]
    return block.negated or len(weighted) > 1 or not all(leaf.operation.construct.consolidated for leaf in folded)


def _weighted(block: Block) -> list[Scan | Derived]:
    return [leaf for leaf in block.leaves if not isinstance(leaf, Function)]


def _is_closed(block: Block, columns: Columns) -> bool:
    """Whether a block and expressions refer to no rows around it, and read something of it."""
    functions = [leaf.tables for leaf in block.leaves if isinstance(leaf, Function)]
    read = frozenset[str]().union(*map(tables_of, columns))
    return bool(read) and read.union(*functions, *map(tables_of, block.predicates)) <= block.aliases


def _types_in(facts: Facts, block: Block) -> Types:
    """Tell the types of the columns of a block's leaves."""
    leaves = {leaf.alias: leaf for leaf in block.leaves}

    def of(column: exp.Column) -> str | None:
        match leaves.get(column.table):
            case Scan(relid=relid):
                found = facts.definition.source(relid).column(column.name)
                return found.type_name if found else None
            case Derived(operation=operation):
                return dict(zip(operation.columns, operation.types, strict=False)).get(column.name)
            case _:
                return None

    return of
