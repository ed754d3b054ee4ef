"""How long is waited for a lock while refreshing: a moment; and how long a statement beside the refreshes may run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

import psycopg
from psycopg import sql

from pytrickle.database.errors import translate_errors
from pytrickle.database.trusted import filled, trusted
from pytrickle.errors import ConnectionLost, LockTimeout, StatementTimeout

# Well below deadlock_timeout, a second by default: a loader that waits for this refresh looks for a deadlock so long
# after it began to wait, and is ended if it finds one. It may have begun up to 0.4 s before the refresh.
PATIENCE = "600ms"


@contextmanager
def impatient(connection: psycopg.Connection) -> Iterator[None]:
    """Let nothing that the connection does within the block wait for a lock longer than a moment."""
    try:
        with translate_errors():
            wait_a_moment(connection)
    except ConnectionLost:
        # One that was lost within a pipeline may look open for ever; only when it is closed is another one opened.
        connection.close()
        raise
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.execute("RESET lock_timeout")


def wait_a_moment(connection: psycopg.Connection) -> None:
    """Let nothing from now on wait for a lock longer than a moment."""
    connection.execute(filled("SET lock_timeout = {patience}", patience=sql.Literal(PATIENCE)))


def unless_locked(
    connection: psycopg.Connection, statement: str, given: Mapping[str, object] | None = None
) -> psycopg.Cursor | None:
    """Run a statement that may as well be run later; return None where another session holds what it needs.

    Where it takes longer than the server lets a statement run, it would take so long whenever it is run, such as what
    deletes many rows: so it is run once more, for as long as it takes. The connection is in autocommit mode.
    """
    try:
        return _run(connection, statement, given)
    except LockTimeout:
        return None
    except StatementTimeout:
        connection.execute("SET statement_timeout = 0")
    try:
        return _run(connection, statement, given)
    except LockTimeout:
        return None
    finally:
        with suppress(psycopg.Error):
            connection.execute("RESET statement_timeout")


def _run(connection: psycopg.Connection, statement: str, given: Mapping[str, object] | None) -> psycopg.Cursor:
    with translate_errors():
        return connection.execute(trusted(statement), given)
