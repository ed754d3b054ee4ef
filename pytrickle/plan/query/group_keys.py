"""The keys of a GROUP BY, and the columns that depend on them."""

from dataclasses import dataclass

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import own_column


@dataclass(slots=True)
class GroupKeys:
    """The keys of a grouped SELECT; above the grouping each stands as k<i> of `table`. `open` ones take in more."""

    table: str
    listed: list[exp.Expr]
    open: bool

    def key(self, node: exp.Expr) -> exp.Expr | None:
        """Find the column that stands for an expression, if that is a key."""
        bare = node.unnest()
        return own_column(self.table, f"k{self.listed.index(bare)}") if bare in self.listed else None

    def dependent(self, column: exp.Column) -> exp.Expr:
        """Take in a bare column that is no key: it depends on a grouped primary key, so it may serve as a key too."""
        if not self.open:
            raise NotDifferentiable(f"the reference {column.sql()}")
        self.listed.append(column.copy())
        return own_column(self.table, f"k{len(self.listed) - 1}")
