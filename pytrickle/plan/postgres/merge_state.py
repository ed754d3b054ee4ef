"""Accumulation: the statements that add staged increments to the aggregate state of a stream table."""

from dataclasses import dataclass, replace

from pytrickle.plan.apply_plan import AFTER, BEFORE, INCREMENTS, INPUT, KEYED, NewState, StatePlan
from pytrickle.plan.postgres.aggregate import Merge
from pytrickle.plan.postgres.aggregate_state import Grouped, row_hash
from pytrickle.plan.postgres.merge_few import FewChanges
from pytrickle.plan.postgres.scales import first_scales
from pytrickle.plan.postgres.stored_rows import Storage
from pytrickle.plan.sql.dialect import quote

MERGE = "UPDATE {state} AS s SET {changes} FROM pg_temp.{staged} AS i WHERE {same}"
FILL = "INSERT INTO {state} ({columns})\nSELECT {items} FROM pg_temp.{staged} AS i"
INSERT_NEW = """\
{fill}
WHERE NOT EXISTS (SELECT FROM {state} AS s WHERE {same})"""
TAKE_RECOMPUTED = "UPDATE {state} AS s SET {values} FROM pg_temp.{keyed} AS k WHERE {same}"
TOUCHED = "FROM pg_temp.{staged} AS i JOIN {state} AS s ON {same}"
# PostgreSQL expects hardly any empty group, and would look for each of them among all that is staged.
DELETE_EMPTY = """\
DELETE FROM {state} WHERE ctid = ANY (ARRAY(
    SELECT n.row FROM (SELECT s.ctid AS row, s.pgt_rows {touched} OFFSET 0) AS n WHERE n.pgt_rows = 0
))"""
FILL_INCREMENTS = "INSERT INTO pg_temp.{staged} ({columns})\n{increments}"
COUNT_NEGATIVE = "SELECT count(*) FROM (SELECT s.pgt_rows {touched} OFFSET 0) AS n WHERE n.pgt_rows < 0"
NEW_NEGATIVE = "SELECT count(*) FROM {state} WHERE pgt_rows < 0"
NEW_EMPTY = "DELETE FROM {state} WHERE pgt_rows = 0"
INDEX = "CREATE INDEX {name} ON {state} ({key})"


def state_table(pgt_id: int) -> str:
    """Name the state table of a stream table.

    >>> state_table(7)
    'pgtrickle_state.state_7'
    """
    return f"pgtrickle_state.state_{pgt_id}"


@dataclass(frozen=True, slots=True)
class MergeState:
    """Writes how the state of an aggregate is created and merged; `s` are its rows, `i` increments, `k` recomputed.

    With `replaces`, `i` are the groups' new states instead.
    """

    grouped: Grouped
    pgt_id: int
    replaces: bool = False

    def plan(self, storage: Storage, keyed: bool) -> StatePlan:
        """Write all statements for staged increments; with `keyed` some groups were computed anew."""
        after, before = f"SELECT * FROM pg_temp.{AFTER}", f"SELECT * FROM pg_temp.{BEFORE}"
        return StatePlan(
            self.table,
            self._insert_new(),
            self._merge(),
            self._take_recomputed() if keyed else None,
            COUNT_NEGATIVE.format(touched=self._touched),
            self._delete_empty() if self.grouped.aggregate.grouped else None,
            self.grouped.final(f"(SELECT s.* {self._touched} OFFSET 0) AS s"),
            storage.stage(storage.difference(after, before)),
            FewChanges(self.grouped, self.table, storage, keyed, self.replaces).plan(),
        )

    def created(self, plan: StatePlan, rows: str) -> StatePlan:
        """Add how the state is created; `rows` compiles the rows below the aggregate."""
        grouped = self.grouped
        name, key = quote(f"state_{self.pgt_id}_key"), row_hash("", grouped.hashed)
        new = NewState(
            grouped.layout(rows),
            self._fill(),
            NEW_NEGATIVE.format(state=self.table),
            NEW_EMPTY.format(state=self.table) if grouped.aggregate.grouped else None,
            INDEX.format(name=name, state=self.table, key=key) if grouped.hashed else None,
        )
        return replace(plan, new=new)

    def from_input(self, plan: StatePlan, rows: str) -> StatePlan:
        """Add how increments are computed from staged rows; `rows` compiles rows below the aggregate."""
        increments = self.grouped.increments(f"SELECT * FROM pg_temp.{INPUT}")
        return replace(plan, input_layout=rows, fill_increments=self._filled(increments))

    def from_parts(self, plan: StatePlan, rows: str) -> StatePlan:
        """Add how increments are put together from staged parts; `rows` compiles rows below the aggregate."""
        combined = self.grouped.combined(f"SELECT * FROM pg_temp.{INPUT}")
        return replace(plan, input_layout=self.grouped.parts(rows), fill_increments=self._filled(combined))

    def _filled(self, increments: str) -> str:
        return FILL_INCREMENTS.format(staged=INCREMENTS, columns=self._merged_columns, increments=increments)

    def staged(self, rows: str) -> str:
        """Write a query with the columns of increments, for a staging table."""
        return f"SELECT {self._merged_columns} FROM (\n{self.grouped.layout(rows)}\n) AS s"

    @property
    def table(self) -> str:
        """The state table."""
        return state_table(self.pgt_id)

    @property
    def _touched(self) -> str:
        return TOUCHED.format(staged=INCREMENTS, state=self.table, same=self.grouped.match("s", "i"))

    @property
    def _merged_columns(self) -> str:
        return ", ".join([*self.grouped.keys, *(column.name for column in self.grouped.merged)])

    def _merge(self) -> str:
        merged = ((c.name, f"i.{c.name}" if self.replaces else c.merged()) for c in self.grouped.merged)
        changes = ", ".join(f"{name} = {value}" for name, value in merged)
        return MERGE.format(staged=INCREMENTS, state=self.table, changes=changes, same=self.grouped.match("s", "i"))

    def _insert_new(self) -> str:
        same = self.grouped.match("s", "i")
        return INSERT_NEW.format(fill=self._fill(), state=self.table, same=same)

    def _fill(self) -> str:
        grouped = self.grouped
        values = (
            first_scales(f"i.{column.name}") if column.merge is Merge.SCALES else f"i.{column.name}"
            for column in grouped.state
        )
        items = ", ".join([*(f"i.{key}" for key in grouped.keys), *values])
        return FILL.format(staged=INCREMENTS, state=self.table, columns=", ".join(grouped.columns), items=items)

    def _take_recomputed(self) -> str:
        values = ", ".join(f"{column.name} = k.{column.name}" for column in self.grouped.values)
        return TAKE_RECOMPUTED.format(keyed=KEYED, state=self.table, values=values, same=self.grouped.match("s", "k"))

    def _delete_empty(self) -> str:
        return DELETE_EMPTY.format(state=self.table, touched=self._touched)
