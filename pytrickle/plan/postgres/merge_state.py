"""Accumulation: the statements that add staged increments to the aggregate state of a stream table."""

from dataclasses import dataclass, replace

from pytrickle.plan.apply_plan import AFTER, BEFORE, INCREMENTS, INPUT, KEYED, StatePlan
from pytrickle.plan.postgres.aggregate import Merge
from pytrickle.plan.postgres.aggregate_state import Grouped, row_hash
from pytrickle.plan.postgres.stored_rows import Storage
from pytrickle.plan.sql.dialect import quote


def state_table(pgt_id: int) -> str:
    """Name the state table of a stream table.

    >>> state_table(7)
    'pgtrickle_state.state_7'
    """
    return f"pgtrickle_state.state_{pgt_id}"


@dataclass(frozen=True, slots=True)
class MergeState:
    """Writes how the state of an aggregate is created and merged; `s` are its rows, `i` increments, `k` recomputed."""

    grouped: Grouped
    pgt_id: int

    def plan(self, storage: Storage, keyed: bool) -> StatePlan:
        """Write all statements for staged increments; with `keyed` some groups were computed anew."""
        after, before = f"SELECT * FROM pg_temp.{AFTER}", f"SELECT * FROM pg_temp.{BEFORE}"
        negative = f"SELECT count(*) {self._touched} WHERE s.pgt_rows < 0"
        return StatePlan(
            self.table,
            self._insert_new(),
            self._merge(),
            self._take_recomputed() if keyed else None,
            negative,
            self._delete_empty() if self.grouped.aggregate.grouped else None,
            self.grouped.final(f"(SELECT s.* {self._touched}) AS s"),
            storage.stage(storage.difference(after, before)),
        )

    def created(self, plan: StatePlan, rows: str) -> StatePlan:
        """Add how the state is created; `rows` compiles the rows below the aggregate."""
        grouped = self.grouped
        by_key = f"CREATE INDEX {quote(f'state_{self.pgt_id}_key')} ON {self.table}"
        index = f"{by_key} ({row_hash('', grouped.hashed)})" if grouped.hashed else None
        return replace(plan, layout=grouped.layout(rows), index=index)

    def from_input(self, plan: StatePlan, rows: str) -> StatePlan:
        """Add how increments are computed from staged rows; `rows` compiles rows below the aggregate."""
        columns = ", ".join([*self.grouped.keys, *(column.name for column in self.grouped.merged)])
        increments = self.grouped.increments(f"SELECT * FROM pg_temp.{INPUT}")
        filled = f"INSERT INTO pg_temp.{INCREMENTS} ({columns})\n{increments}"
        return replace(plan, input_layout=rows, fill_increments=filled)

    def staged(self, rows: str) -> str:
        """Write a query with the columns of increments, for a staging table."""
        columns = ", ".join([*self.grouped.keys, *(column.name for column in self.grouped.merged)])
        return f"SELECT {columns} FROM (\n{self.grouped.layout(rows)}\n) AS s"

    @property
    def table(self) -> str:
        """The state table."""
        return state_table(self.pgt_id)

    @property
    def _touched(self) -> str:
        return f"FROM pg_temp.{INCREMENTS} AS i JOIN {self.table} AS s ON {self.grouped.match('s', 'i')}"

    def _merge(self) -> str:
        changes = ", ".join(f"{column.name} = {column.merged()}" for column in self.grouped.merged)
        return (
            f"UPDATE {self.table} AS s SET {changes} FROM pg_temp.{INCREMENTS} AS i "
            f"WHERE {self.grouped.match('s', 'i')}"
        )

    def _insert_new(self) -> str:
        grouped = self.grouped
        items = ", ".join(
            f"pgtrickle_private.add_scales(NULL, i.{column.name})"
            if column.merge is Merge.SCALES
            else f"i.{column.name}"
            for column in grouped.state
        )
        keys = "".join(f"i.{key}, " for key in grouped.keys)
        return (
            f"INSERT INTO {self.table} ({', '.join(grouped.columns)})\n"
            f"SELECT {keys}{items} FROM pg_temp.{INCREMENTS} AS i "
            f"WHERE NOT EXISTS (SELECT FROM {self.table} AS s WHERE {grouped.match('s', 'i')})"
        )

    def _take_recomputed(self) -> str:
        values = ", ".join(f"{column.name} = k.{column.name}" for column in self.grouped.values)
        return f"UPDATE {self.table} AS s SET {values} FROM pg_temp.{KEYED} AS k WHERE {self.grouped.match('s', 'k')}"

    def _delete_empty(self) -> str:
        return (
            f"DELETE FROM {self.table} AS s USING pg_temp.{INCREMENTS} AS i "
            f"WHERE s.pgt_rows = 0 AND {self.grouped.match('s', 'i')}"
        )
