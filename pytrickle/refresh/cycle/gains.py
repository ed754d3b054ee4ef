"""What stream tables of a cycle gained so far, in temporary tables that their queries read in place of them."""

from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from pytrickle.apply.statements import create_like, index_lookups, run
from pytrickle.catalog.definition import Source
from pytrickle.database import filled, settle
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.cycle.growth import Growth
from pytrickle.plan.postgres.aggregate_state import row_hash
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.stored_rows import Storage
from pytrickle.plan.sql.dialect import quote

STEP = "SELECT {columns}, CAST(NULL AS bigint) AS {weight} FROM {stored}"
ROWS = """
SELECT {columns}, CAST(NULL AS bigint) AS {weight}, CAST(NULL AS xid8) AS pgt_xid, CAST(NULL AS bigint) AS pgt_pos
FROM {stored}
"""
BOTH = """
CREATE TEMP VIEW {seen} AS
SELECT {columns} FROM {stored} UNION ALL SELECT {columns} FROM pg_temp.{rows}
"""
ABSENT = "NOT EXISTS (SELECT FROM {table} AS t WHERE {same})"
ADDED = """
INSERT INTO pg_temp.{rows} ({columns}, {weight}, pgt_xid, pgt_pos)
SELECT {items}, 1, {xid}, {step}
FROM pg_temp.{staged} AS c, generate_series(1, c.{weight}) AS e (pgt_n)
WHERE {absent}
"""


@dataclass(frozen=True, slots=True)
class Grown:
    """The rows that a stream table gains, numbered by the step in which it did.

    With `beside` they are added to those it stores, otherwise it starts from nothing.
    """

    pgt_id: int
    storage: Storage
    beside: bool
    distinct: bool

    @classmethod
    def create(cls, connection: psycopg.Connection, shape: Analysis, indexed: frozenset[str], beside: bool) -> "Grown":
        """Create the empty tables; `indexed` are columns by which queries look rows up."""
        grown = cls(
            shape.definition.pgt_id, Storage.of(shape.definition, shape.hashed), beside, shape.grouped is not None
        )
        columns, stored = grown.storage.column_list(), grown.storage.table
        create_like(connection, grown._step, filled(STEP, columns=columns, weight=WEIGHT, stored=stored))
        create_like(connection, grown._rows, filled(ROWS, columns=columns, weight=WEIGHT, stored=stored))
        hashed = [row_hash("", grown.storage.hashed)] if grown.storage.hashed else []
        for item in [*hashed, *(map(quote, sorted(indexed)) if beside else ())]:
            run(connection, filled("CREATE INDEX ON pg_temp.{rows} ({item})", rows=grown._rows, item=item))
        if beside:
            run(connection, filled(BOTH, seen=grown._seen, columns=columns, stored=stored, rows=grown._rows))
        return grown

    def standing_in_for(self, source: Source) -> Source:
        """Return what queries read in place of the stream table, with its gains as the change buffer."""
        name = self._seen if self.beside else self._rows
        indexed = source.indexed if self.beside else frozenset()
        return replace(source, schema="pg_temp", name=name, buffer=f"pg_temp.{self._rows}", indexed=indexed)

    def add(self, connection: psycopg.Connection, growth: Growth, xid: str, step: int) -> int:
        """Add what one step gains, and return how many rows that are."""
        settle(connection, growth.settings)
        run(connection, filled("INSERT INTO pg_temp.{step}\n{query}", step=self._step, query=growth.query))
        settle(connection, (f"SET LOCAL {setting.split()[2]} TO DEFAULT" for setting in growth.settings))
        with index_lookups(connection):
            added = run(connection, self._addition(xid, step))
        run(connection, filled("TRUNCATE pg_temp.{step}", step=self._step))
        return added

    def stored_rows(self, connection: psycopg.Connection) -> int:
        """Count the rows of the stream table itself."""
        row = connection.execute(filled("SELECT count(*) FROM {stored}", stored=self.storage.table)).fetchone()
        return int(row[0]) if row else 0

    def drop(self, connection: psycopg.Connection) -> None:
        """Drop the tables, where more follows in the same transaction."""
        if self.beside:
            run(connection, filled("DROP VIEW pg_temp.{seen}", seen=self._seen))
        run(connection, filled("DROP TABLE pg_temp.{rows}, pg_temp.{step}", rows=self._rows, step=self._step))

    def _addition(self, xid: str, step: int) -> sql.Composed:
        known = [f"pg_temp.{self._rows}", *([self.storage.table] if self.beside else [])]
        same = self.storage.same("t", "c")
        absent = [filled(ABSENT, table=table, same=same) for table in known if self.distinct]
        return filled(
            ADDED,
            rows=self._rows,
            columns=self.storage.column_list(),
            weight=WEIGHT,
            items=self.storage.column_list("c"),
            xid=sql.Literal(xid),
            step=sql.Literal(step),
            staged=self._step,
            absent=sql.SQL(" AND ").join(absent) if absent else "true",
        )

    @property
    def _rows(self) -> str:
        return f"pgt_grown_{self.pgt_id}"

    @property
    def _step(self) -> str:
        return f"pgt_step_{self.pgt_id}"

    @property
    def _seen(self) -> str:
        return f"pgt_seen_{self.pgt_id}"
