"""An exported snapshot: one moment of the database that many connections can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Self

import psycopg
from psycopg import sql

from pytrickle.cut import Cut
from pytrickle.database.connect import connect
from pytrickle.database.errors import translate_errors
from pytrickle.database.lock_timeout import wait_a_moment
from pytrickle.database.trusted import filled
from pytrickle.errors import DatabaseError

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
EXPORT = """
SELECT pg_export_snapshot(), c.snapshot::text, c.xid::text, c.pos, c.lsn::text FROM pgtrickle.current_cut() AS c
"""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment held open: ``connection`` reads it, others join it by ``SET TRANSACTION SNAPSHOT '<name>'``.

    ``cut`` is the frontier that a reader of this snapshot reaches; ``taken`` is the monotonic clock just before it.
    """

    connection: psycopg.Connection
    name: str
    cut: Cut
    taken: float


@contextmanager
def exported_snapshot(dsn: str = "") -> Iterator[Snapshot]:
    """Hold a read-only snapshot on its own connection until the block ends.

    Raises NotInstalled when the database has no catalog. Statements on ``connection`` inside the block raise
    psycopg's errors unless they are wrapped in ``translate_errors``.
    """
    with Snapshots(dsn) as snapshots, snapshots.export() as snapshot:
        yield snapshot


@dataclass(slots=True)
class Snapshots:
    """Exports snapshots on connections that are kept: a fresh one starts with cold catalog caches.

    Readers may SET LOCAL only, which ends with their snapshot.
    """

    dsn: str = field(repr=False)
    idle: list[psycopg.Connection] = field(default_factory=list)

    @contextmanager
    def export(self) -> Iterator[Snapshot]:
        """Hold a read-only snapshot, as ``exported_snapshot`` does, on a connection of its own meanwhile."""
        taken = monotonic()
        connection = self._take()
        try:
            with translate_errors():
                snapshot = _export(connection, taken)
            yield snapshot
        finally:
            self._give_back(connection)

    @contextmanager
    def join(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Read the same moment on another connection; the snapshot must be held open meanwhile."""
        connection = self._take()
        try:
            with translate_errors():
                connection.execute(filled("SET TRANSACTION SNAPSHOT {name}", name=sql.Literal(snapshot.name)))
            yield replace(snapshot, connection=connection)
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the idle connections."""
        while self.idle:
            self.idle.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _take(self) -> psycopg.Connection:
        """Return a connection that is not in use, in a transaction that has no snapshot yet."""
        # Several threads take and give back, so that the last may be gone before it is popped.
        with suppress(IndexError):
            while connection := self.idle.pop():
                with suppress(psycopg.Error):
                    connection.execute(BEGIN)
                    return connection
                connection.close()
        connection = connect(self.dsn, role="snapshot")
        with translate_errors():
            wait_a_moment(connection)
            keep_open(connection)
            connection.execute(BEGIN)
        return connection

    def _give_back(self, connection: psycopg.Connection) -> None:
        try:
            # Nothing was written. After a rollback the client would also have its prepared statements dropped.
            connection.commit()
            self.idle.append(connection)
        except psycopg.Error:
            connection.close()


def _export(connection: psycopg.Connection, taken: float) -> Snapshot:
    row = connection.execute(EXPORT).fetchone()
    if row is None:
        raise DatabaseError("The server exported no snapshot.")
    name, *cut = row
    return Snapshot(connection, name, Cut(*cut), taken)


def keep_open(connection: psycopg.Connection) -> None:
    """Switch off what would end the transaction or session while it idles, for Spark computes meanwhile."""
    connection.execute(
        "SELECT set_config(name, '0', false) FROM pg_settings"
        " WHERE name IN ('idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"
    )
