"""What stream tables of a cycle gained so far, in temporary tables that their queries read in place of them."""

from dataclasses import dataclass, replace

import psycopg

from pytrickle.apply.rows import create_like, index_lookups, run
from pytrickle.catalog.definition import Source
from pytrickle.database import trusted
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.cycle.growth import Growth
from pytrickle.plan.postgres.aggregate_state import row_hash
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.postgres.stored_rows import Storage
from pytrickle.plan.sql.dialect import quote


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
        create_like(connection, grown._step, f"SELECT {columns}, CAST(NULL AS bigint) AS {WEIGHT} FROM {stored}")
        numbered = f"CAST(NULL AS bigint) AS {WEIGHT}, CAST(NULL AS xid8) AS pgt_xid, CAST(NULL AS bigint) AS pgt_pos"
        create_like(connection, grown._rows, f"SELECT {columns}, {numbered} FROM {stored}")
        if grown.storage.hashed:
            run(connection, f"CREATE INDEX ON pg_temp.{grown._rows} ({row_hash('', grown.storage.hashed)})")
        for column in sorted(indexed) if beside else ():
            run(connection, f"CREATE INDEX ON pg_temp.{grown._rows} ({quote(column)})")
        if beside:
            both = f"SELECT {columns} FROM {stored} UNION ALL SELECT {columns} FROM pg_temp.{grown._rows}"
            run(connection, f"CREATE TEMP VIEW {grown._seen} AS {both}")
        return grown

    def standing_in_for(self, source: Source) -> Source:
        """Return what queries read in place of the stream table, with its gains as the change buffer."""
        name = self._seen if self.beside else self._rows
        indexed = source.indexed if self.beside else frozenset()
        return replace(source, schema="pg_temp", name=name, buffer=f"pg_temp.{self._rows}", indexed=indexed)

    def add(self, connection: psycopg.Connection, growth: Growth, xid: str, step: int) -> int:
        """Add what one step gains, and return how many rows that are."""
        for setting in growth.settings:
            run(connection, setting)
        run(connection, f"INSERT INTO pg_temp.{self._step}\n{growth.query}")
        for setting in growth.settings:
            run(connection, f"SET LOCAL {setting.split()[2]} TO DEFAULT")
        with index_lookups(connection):
            added = run(connection, self._addition(xid, step))
        run(connection, f"TRUNCATE pg_temp.{self._step}")
        return added

    def stored_rows(self, connection: psycopg.Connection) -> int:
        """Count the rows of the stream table itself."""
        row = connection.execute(trusted(f"SELECT count(*) FROM {self.storage.table}")).fetchone()
        return int(row[0]) if row else 0

    def drop(self, connection: psycopg.Connection) -> None:
        """Drop the tables, where more follows in the same transaction."""
        if self.beside:
            run(connection, f"DROP VIEW pg_temp.{self._seen}")
        run(connection, f"DROP TABLE pg_temp.{self._rows}, pg_temp.{self._step}")

    def _addition(self, xid: str, step: int) -> str:
        columns = self.storage.column_list()
        known = [f"pg_temp.{self._rows}", *([self.storage.table] if self.beside else [])]
        absent = (f"NOT EXISTS (SELECT FROM {table} AS t WHERE {self.storage.same('t', 'c')})" for table in known)
        where = f"\nWHERE {' AND '.join(absent)}" if self.distinct else ""
        return (
            f"INSERT INTO pg_temp.{self._rows} ({columns}, {WEIGHT}, pgt_xid, pgt_pos)\n"
            f"SELECT {self.storage.column_list('c')}, 1, '{xid}', {step} "
            f"FROM pg_temp.{self._step} AS c, generate_series(1, c.{WEIGHT}) AS e (pgt_n){where}"
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
