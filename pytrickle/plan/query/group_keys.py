"""The keys of a GROUP BY, and the columns that depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.scope import unknown_reference


@dataclass(slots=True)
class GroupKeys:
    """The keys of a grouped SELECT; above the grouping each stands as k<i> of `table`. `open` ones take in more."""

    table: str
    listed: list[exp.Expr]
    open: bool

    @classmethod
    def of(cls, select: exp.Select, table: str) -> GroupKeys:
        """Take the keys of a SELECT with one grouping set; without GROUP BY there are none, and none come in."""
        group = select.args.get("group")
        return cls(table, [key.unnest() for key in group.expressions] if group else [], open=group is not None)

    def is_key(self, lifted: exp.Expr) -> bool:
        """Whether a lifted expression is nothing but a key."""
        return isinstance(lifted, exp.Column) and lifted.table == self.table and lifted.name.startswith("k")

    def key(self, node: exp.Expr) -> exp.Expr | None:
        """Find the column that stands for an expression, if that is a key."""
        bare = node.unnest()
        return own_column(self.table, f"k{self.listed.index(bare)}") if bare in self.listed else None

    def dependent(self, column: exp.Column) -> exp.Expr:
        """Take in a bare column that is no key: it depends on a grouped primary key, so it may serve as a key too.

        Raise NotDifferentiable where no column of its table is a key.
        """
        grouped = any(isinstance(key, exp.Column) and key.table == column.table for key in self.listed)
        if not (self.open and grouped):
            raise unknown_reference(column)
        self.listed.append(column.copy())
        return own_column(self.table, f"k{len(self.listed) - 1}")
