"""Where a query or an expression stands: the names that it sees, and the rows around it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from pytrickle.plan.algebra.relation import Leaf
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.scope import Names


@dataclass(frozen=True, slots=True, eq=False)
class Cte:
    """An entry of a WITH clause, and the entries that its own query sees.

    `around` is where it stands if it refers to the rows around it: then it is read anew for each of its names.
    """

    entry: exp.Expr
    scope: Ctes
    around: Context | None = None


Ctes = Mapping[str, Cte]


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression stands: the WITH clause in force, the names around its query, and the block they are of.

    `around` are the leaves of that block and of all blocks around it.
    """

    ctes: Ctes
    outer: Names
    block: Block | None = None
    around: tuple[Leaf, ...] = ()

    def within(self, block: Block) -> Context:
        """Stand in a query that sees the names of a block too."""
        return Context(self.ctes, {**self.outer, **block.names}, block, (*self.around, *block.leaves))
