"""An exported snapshot: one moment of the database that many connections can read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import monotonic
from typing import Any, Self

import psycopg
from psycopg import sql

from pytrickle.cut import Cut
from pytrickle.database.connect import connect
from pytrickle.database.errors import translate_errors
from pytrickle.database.lock_timeout import wait_a_moment
from pytrickle.database.pipeline import pipelined
from pytrickle.database.trusted import filled, trusted
from pytrickle.errors import ConnectionLost, DatabaseError

BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Two servers with the same history, as after a failover, were not started in the same microsecond.
SERVER = "extract(epoch FROM pg_postmaster_start_time())::text"
EXPORT = f"""
SELECT {SERVER}, transaction_timestamp(), pg_export_snapshot(), c.snapshot::text, c.xid::text, c.pos, c.lsn::text
FROM pgtrickle.current_cut() AS c
"""

Statement = sql.SQL | sql.Composed
Answer = tuple[Any, ...] | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment held open: ``connection`` reads it, others join it by ``SET TRANSACTION SNAPSHOT '<name>'``.

    ``cut`` is the frontier that a reader of this snapshot reaches; ``taken`` is the monotonic clock just before it,
    ``moment`` the time by the server's clock.
    """

    connection: psycopg.Connection
    name: str
    cut: Cut
    taken: float
    moment: datetime


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

    Readers may SET LOCAL only, which ends with their snapshot. Who writes what is read says by `written_by` on which
    `server`: where an address leads to another one since, a connection that was kept may still lead to the old one.
    """

    dsn: str = field(repr=False)
    idle: list[psycopg.Connection] = field(default_factory=list)
    server: str | None = None

    @contextmanager
    def export(self) -> Iterator[Snapshot]:
        """Hold a read-only snapshot, as ``exported_snapshot`` does, on a connection of its own meanwhile."""
        taken = monotonic()
        connection, answer = self._take(trusted(EXPORT))
        try:
            if answer is None:
                raise DatabaseError("The server exported no snapshot.")
            server, moment, name, *cut = answer
            self.refuse_another(server, connection)
            yield Snapshot(connection, name, Cut(*cut), taken, moment)
        finally:
            self._give_back(connection)

    @contextmanager
    def join(self, snapshot: Snapshot) -> Iterator[Snapshot]:
        """Read the same moment on another connection; the snapshot must be held open meanwhile."""
        connection, _ = self._take(filled("SET TRANSACTION SNAPSHOT {name}", name=sql.Literal(snapshot.name)))
        try:
            yield replace(snapshot, connection=connection)
        finally:
            self._give_back(connection)

    def written_by(self, connection: psycopg.Connection) -> None:
        """Read on the server that a connection leads to, and on no other one."""
        self.close()
        with translate_errors():
            self.server = server_of(connection)

    def refuse_another(self, server: str, connection: psycopg.Connection) -> None:
        """Close a connection to another server than that on which what is read is written; raise ConnectionLost.

        Which one to go on with is found out anew.
        """
        if self.server not in (None, server):
            self.server = None
            connection.close()
            raise ConnectionLost(
                "One connection leads to another server than the others, as after a failover.",
                "Nothing was changed. All are opened anew; see to it that the old server takes no connections.",
            )

    def close(self) -> None:
        """Close the idle connections."""
        # Other threads may take some meanwhile.
        with suppress(IndexError):
            while connection := self.idle.pop():
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _take(self, first: Statement) -> tuple[psycopg.Connection, Answer]:
        """Return a connection that is not in use, in a transaction that began with a statement, and its answer."""
        # Several threads take and give back, so that the last may be gone before it is popped.
        with suppress(IndexError):
            while connection := self.idle.pop():
                with suppress(psycopg.Error):
                    return connection, _begin(connection, first)
                connection.close()
        connection = connect(self.dsn, role="snapshot")
        try:
            with translate_errors():
                wait_a_moment(connection)
                keep_open(connection)
                return connection, _begin(connection, first)
        except BaseException:
            connection.close()
            raise

    def _give_back(self, connection: psycopg.Connection) -> None:
        try:
            # Nothing was written. After a rollback the client would also have its prepared statements dropped.
            connection.commit()
            self.idle.append(connection)
        except psycopg.Error:
            connection.close()


def server_of(connection: psycopg.Connection) -> str:
    """Return what tells the server apart that a connection leads to."""
    row = connection.execute(trusted(f"SELECT {SERVER}")).fetchone()
    return str(row[0]) if row else ""


def _begin(connection: psycopg.Connection, first: Statement) -> Answer:
    """Begin a transaction by a statement, and return the row that it answers, if it answers any."""
    with pipelined(connection):
        connection.execute(BEGIN)
        cursor = connection.execute(first)
    return cursor.fetchone() if cursor.description else None


def keep_open(connection: psycopg.Connection) -> None:
    """Switch off what would end the transaction or session while it idles, for Spark computes meanwhile."""
    connection.execute(
        "SELECT set_config(name, '0', false) FROM pg_settings"
        " WHERE name IN ('idle_in_transaction_session_timeout', 'idle_session_timeout', 'transaction_timeout')"
    )
