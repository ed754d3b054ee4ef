"""What reads the queries that a query holds, for those parts of a query that may hold some."""

from __future__ import annotations

from typing import Protocol

from sqlglot import exp

from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.facts import Facts


class Recursion(Protocol):
    """Reads queries as blocks, each where it stands."""

    @property
    def facts(self) -> Facts:
        """What is known of the relations so far."""

    def blocks(self, select: exp.Select, context: Context) -> tuple[Block, ...]:
        """Return the blocks of a SELECT's FROM and WHERE."""

    def aggregated(self, select: exp.Select, context: Context) -> tuple[exp.Select, tuple[Block, ...]]:
        """Return a SELECT without the subqueries in calls of aggregates, and its blocks, which have their values."""

    def rows(self, query: exp.Expr, context: Context) -> tuple[Block, ...]:
        """Return blocks that have a row exactly where a subquery has one; their names do not matter."""

    def derived(self, query: exp.Expr, context: Context) -> tuple[Block, ...]:
        """Return the blocks of a subquery; their names are {'': output column -> expression}."""

    def unwrapped(self, query: exp.Expr, context: Context) -> tuple[exp.Expr, Context]:
        """Strip parentheses and take in the WITH clause; later names see earlier ones."""
