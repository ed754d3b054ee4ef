"""Few increments, merged into the aggregate state by one statement that takes them as parameters."""

from dataclasses import dataclass

from pytrickle.plan.apply_plan import FewGroups
from pytrickle.plan.postgres.aggregate import Merge, StateColumn
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.few_rows import difference, literal, rows_of
from pytrickle.plan.postgres.scales import first_scales
from pytrickle.plan.postgres.stored_rows import Storage

# All parts see the state as it was before the statement.
MERGE = """\
WITH i AS MATERIALIZED (
    SELECT * FROM {increments} AS i
), {keyed}merged AS (
    UPDATE {state} AS s SET {changes} FROM i{with_keyed} WHERE {same} RETURNING s.*
), added AS (
    INSERT INTO {state} ({columns})
    SELECT {items} FROM i{with_keyed}
    WHERE NOT EXISTS (SELECT FROM {state} AS s WHERE {same}) RETURNING *
), now AS MATERIALIZED (
    SELECT * FROM merged UNION ALL SELECT * FROM added
), changes AS MATERIALIZED (
{difference}
)
SELECT (SELECT count(*) FROM now WHERE pgt_rows < 0), (SELECT count(*) FROM now WHERE pgt_rows = 0),
    CAST(array_agg(ROW({shown})) AS text), CAST(array_agg({weight}) AS text)
FROM changes"""
RECOMPUTED = "k AS MATERIALIZED (\n    SELECT *, true AS pgt_found FROM {rows} AS k\n), "
WITH_RECOMPUTED = " LEFT JOIN k ON {same}"
ELSE_RECOMPUTED = "CASE WHEN k.pgt_found THEN k.{name} ELSE {value} END"
BEFORE = "(SELECT s.* FROM i JOIN {state} AS s ON {same}) AS s"
AFTER = "(SELECT * FROM now WHERE pgt_rows >= {least}) AS s"
DELETE_EMPTY = "DELETE FROM {state} AS s USING {increments} AS i WHERE s.pgt_rows = 0 AND {same}"


@dataclass(frozen=True, slots=True)
class FewChanges:
    """Writes the statements; `s` are rows of the state, `i` increments, `k` recomputed where some are `keyed`.

    With `replaces`, `i` are the groups' new states instead.
    """

    grouped: Grouped
    table: str
    storage: Storage
    keyed: bool
    replaces: bool = False

    def plan(self) -> FewGroups:
        """Write all of them."""
        grouped, columns = self.grouped, self.storage.columns
        after = grouped.final(AFTER.format(least=1 if grouped.aggregate.grouped else 0))
        before = grouped.final(BEFORE.format(state=self.table, same=grouped.match("s", "i")))
        matched = WITH_RECOMPUTED.format(same=grouped.match("i", "k")) if self.keyed else ""
        merge = MERGE.format(
            increments=self._rows(),
            keyed=RECOMPUTED.format(rows=rows_of(self.table, "keyed")) if self.keyed else "",
            state=self.table,
            changes=", ".join(f"{c.name} = {self._changed(c)}" for c in grouped.state if self._changes(c)),
            with_keyed=matched,
            same=grouped.match("s", "i"),
            columns=", ".join(grouped.columns),
            items=", ".join([*(f"i.{key}" for key in grouped.keys), *map(self._added, grouped.state)]),
            difference=literal(difference(after, before, columns)),
            shown=literal(", ".join(columns)),
            weight=WEIGHT,
        )
        return FewGroups(grouped.columns, merge, self._delete_empty() if grouped.aggregate.grouped else None)

    def _rows(self) -> str:
        return rows_of(self.table)

    def _changes(self, column: StateColumn) -> bool:
        """Whether an existing group may get a new value."""
        return column.merge is not Merge.RECOMPUTE or self.keyed

    def _changed(self, column: StateColumn) -> str:
        return f"i.{column.name}" if self.replaces else self._value(column, column.merged())

    def _value(self, column: StateColumn, merged: str) -> str:
        if self.keyed and column.value is not None:
            return ELSE_RECOMPUTED.format(name=column.name, value=merged)
        return merged

    def _added(self, column: StateColumn) -> str:
        scales = column.merge is Merge.SCALES
        value = first_scales(f"i.{column.name}") if scales else f"i.{column.name}"
        return self._value(column, value)

    def _delete_empty(self) -> str:
        same = self.grouped.match("s", "i")
        return DELETE_EMPTY.format(state=self.table, increments=self._rows(), same=same)
