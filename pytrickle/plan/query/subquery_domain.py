"""The domain of a subquery: the distinct values that it needs of the rows around it."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pytrickle.plan.algebra.relation import Derived, Function
from pytrickle.plan.query.block import Block, project, row_text_of
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import replacing, tables_of
from pytrickle.plan.sql.three_valued import decided
from pytrickle.plan.sql.types import is_exact


def null_safe_columns(
    facts: Facts, outer: Block, inner: tuple[Block, ...], free: tuple[exp.Expr, ...]
) -> frozenset[exp.Expr]:
    """Return the columns that may be NULL in outer rows for which the inner blocks have rows all the same."""
    return frozenset(
        column
        for column in free
        if not facts.never_null(column, outer) and not all(_rejects_null(block, column) for block in inner)
    )


def _rejects_null(block: Block, column: exp.Expr) -> bool:
    """Whether some condition on a block is never true where a column of the rows around it is NULL."""
    step = replacing({column: exp.Null()})
    asked = (each for each in block.predicates if column in list(each.find_all(exp.Column)))
    return any(decided(each.transform(step)) in {None, False} for each in asked)


def domain_columns(
    facts: Facts, outer: Block, free: tuple[exp.Expr, ...], by_text: bool = False
) -> tuple[exp.Expr, ...]:
    """Return columns and, where some have values that are equal but not the same, the text of these as one more.

    A condition may tell such values apart, as it does '1 mon' and '30 days' where they are added to a date. With
    `by_text` it is the text of all: by tests that hold for NULL, too, PostgreSQL compares every row with every other.
    """
    types = facts.types_of(project(replace(outer, predicates=(), negated=False), free))
    blurred = tuple(column for column, name in zip(free, types, strict=True) if not is_exact(name, facts.definition))
    blurred = free if by_text else blurred
    if not blurred:
        return free
    whole, computed = row_text_of(blurred), {leaf.alias for leaf in outer.leaves if isinstance(leaf, Derived)}
    if computed & tables_of_all(blurred):
        # PostgreSQL moves a condition on a group down to its rows, though not all of these look like the group. Only
        # conditions with a subquery stay where they are.
        whole = exp.Select(expressions=[whole]).subquery()
    return (*free, whole)


def domain_rows(outer: Block, free: tuple[exp.Expr, ...]) -> Block:
    """Read the values that outer rows ask for, from only those leaves that have them.

    Without the other leaves there may be more values than outer rows have, but these match no outer row; and the
    changes and joins of a leaf that is left out need not be followed twice.
    """
    needed = tables_of_all(free)
    while more := frozenset(
        table
        for leaf in outer.leaves
        if isinstance(leaf, Function) and leaf.alias in needed
        for table in leaf.tables - needed
    ):
        needed |= more
    leaves = tuple(leaf for leaf in outer.leaves if leaf.alias in needed)
    predicates = tuple(each for each in outer.predicates if tables_of(each) <= needed)
    return replace(outer, leaves=leaves, predicates=predicates, negated=False)


def tables_of_all(expressions: tuple[exp.Expr, ...]) -> frozenset[str]:
    """Return the aliases that some expressions read."""
    return frozenset(table for expression in expressions for table in tables_of(expression))
