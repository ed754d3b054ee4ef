"""The keys of a GROUP BY, and the columns that depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pytrickle.plan.query.block import Block, own_column
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.rows_of_groups import RowsOfGroups
from pytrickle.plan.query.scope import unknown_reference


@dataclass(slots=True)
class GroupKeys:
    """The keys of a grouped SELECT; above the grouping each stands as k<i> of `table`. `open` ones take in more.

    So they do with what is computed from `rows` of which each group has one.
    """

    table: str
    listed: list[exp.Expr]
    open: bool
    rows: RowsOfGroups | None = None

    @classmethod
    def of(cls, facts: Facts, select: exp.Select, blocks: tuple[Block, ...], table: str) -> GroupKeys:
        """Take the keys of a SELECT with one grouping set; without GROUP BY there are none, and none come in."""
        group = select.args.get("group")
        if group is None:
            return cls(table, [], open=False)
        keys = [key.unnest() for key in group.expressions]
        return cls(table, keys, open=True, rows=RowsOfGroups.of(facts, select, keys, blocks))

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
        if not (self.open and self._has_key_of(column.table)):
            raise unknown_reference(column)
        return self._take(column)

    def take_in(self, column: exp.Column, alone: bool) -> None:
        """Take in a column of the query, as a subquery reads it, unless it is a key or depends on none.

        Keys of a table that stands `alone` may be printed without its alias, which a subquery's references have.
        """
        bare = exp.Column(this=column.this.copy())
        listed = bare if alone and self._has_key_of("") else column
        if self.open and self._has_key_of(listed.table) and listed not in self.listed:
            self._take(listed)

    def _has_key_of(self, table: str) -> bool:
        return any(isinstance(key, exp.Column) and key.table == table for key in self.listed)

    def settled(self, node: exp.Expr) -> exp.Expr | None:
        """Take in an expression that depends on grouped unique keys, if values that it reads are equal to others."""
        return self._take(node) if self.open and self.rows is not None and self.rows.settles(node) else None

    def _take(self, node: exp.Expr) -> exp.Expr:
        self.listed.append(node.copy())
        return own_column(self.table, f"k{len(self.listed) - 1}")
