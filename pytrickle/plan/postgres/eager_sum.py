"""The change of an operation of one row, such as an average, that rows are only compared with.

It is the old row and the new one, and most rows compare with both alike: what these come to is summed before anything
else is joined, sum over d of w(d) * (c(l, d) and rest(l)) = (sum over d of w(d) * c(l, d)) * rest(l).
"""

from dataclasses import dataclass, replace

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.constructs.single import Single
from pytrickle.plan.algebra.relation import Column, Derived, Function, Join, Predicate, Project, Version, leaves
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.moved_value import OTHERWISE, MovedValue, column_types, compare_otherwise
from pytrickle.plan.sql.dialect import quote

OF_ONE_ROW = (Group, Exists, Single)
TOTAL = "(SELECT sum({alias}.{weight}) FROM {changes} AS {alias} WHERE {conditions})"
VALUE = "(SELECT d.{column} FROM {changes} AS d WHERE d.{weight} {sign} 0)"


@dataclass(frozen=True, slots=True)
class Compared:
    """A changed leaf of one row, and the conditions that are all there is of it in a join."""

    leaf: Derived
    predicates: tuple[Predicate, ...]

    @classmethod
    def of(cls, block: Project, join: Join) -> "Compared | None":
        """Find one, if something else of the join remains."""
        functions = {alias for leaf in leaves(join) if isinstance(leaf, Function) for alias in leaf.tables}
        shown = {alias for _, expr in block.columns for alias in expr.tables} | functions
        for leaf in leaves(join):
            if isinstance(leaf, Derived) and leaf.version is Version.DELTA and leaf.alias not in shown:
                found = tuple(each for each in join.predicates if leaf.alias in each.expr.tables)
                single = not leaf.operation.keys and isinstance(leaf.operation.construct, OF_ONE_ROW)
                # An equality finds the few rows by itself.
                if single and found and not any(each.equality for each in found):
                    return cls(leaf, found)
        return None

    @property
    def beside(self) -> frozenset[str]:
        """The aliases that are compared with it."""
        return frozenset(alias for each in self.predicates for alias in each.expr.tables) - {self.leaf.alias}

    @property
    def moved(self) -> tuple[MovedValue, ...]:
        """The conditions, each taken apart into what is of the leaf and what is not; none where one cannot be."""
        found = [MovedValue.of(each, self.leaf.alias) for each in self.predicates]
        known = tuple(each for each in found if each)
        return known if len(known) == len(found) else ()

    def without(self, join: Join) -> Join:
        """Leave it out of a join."""
        others = tuple(each for each in join.inputs if each != self.leaf)
        return replace(join, inputs=others, predicates=tuple(p for p in join.predicates if p not in self.predicates))

    def test(self, changes: str, join: Join, definition: Definition) -> str:
        """Write what holds of the rows of a join for which the `changes` come to something.

        The sum is asked for each row, which takes longer than all that is done for it otherwise. It is zero wherever
        the conditions hold of the old row and of the new one, or of neither. An aggregate always has both.
        """
        if moved := self.moved:
            return compare_otherwise(moved, changes, column_types(join, definition))
        conditions = " AND ".join(f"({each.expr.sql})" for each in self.predicates)
        new, old = (self._with_values(conditions, changes, sign) for sign in "><")
        if isinstance(self.leaf.operation.construct, Group) and new and old:
            return OTHERWISE.format(new=new, old=old)
        return f"{self.total(changes)} <> 0"

    def narrowing(self, join: Join, definition: Definition) -> frozenset[Column]:
        """Return the columns of one leaf by which an index finds all rows that are concerned."""
        types = column_types(join, definition)
        columns = [each.beside.column for each in self.moved if each.narrowed("", types)]
        found = frozenset(column for column in columns if column)
        one_leaf = len({alias for alias, _ in found}) == 1
        return found if one_leaf and len(columns) == len(self.moved) else frozenset()

    def _with_values(self, conditions: str, changes: str, sign: str) -> str | None:
        """Write the conditions with the values of one row of the changes; None where a name may be a part of a text."""
        alias = quote(self.leaf.alias)
        for column in self.leaf.operation.columns:
            value = VALUE.format(column=quote(column), changes=changes, weight=WEIGHT, sign=sign)
            conditions = conditions.replace(f"{alias}.{quote(column)}", value)
        return None if "'" in conditions or f"{alias}." in conditions else conditions

    def total(self, changes: str) -> str:
        """Write what the `changes` come to for a row."""
        conditions = " AND ".join(f"({each.expr.sql})" for each in self.predicates)
        return TOTAL.format(alias=quote(self.leaf.alias), weight=WEIGHT, changes=changes, conditions=conditions)
