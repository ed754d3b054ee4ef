"""What is undone at once, without losing the statements that are prepared on a connection."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus

SAVEPOINT = "SAVEPOINT pgt_undone"
UNDO = b"ROLLBACK TO SAVEPOINT pgt_undone"
RELEASE = b"RELEASE SAVEPOINT pgt_undone"


@contextmanager
def undone(connection: psycopg.Connection) -> Iterator[None]:
    """Undo at the end of the block what was done within it, settings too, in a transaction that goes on.

    The client drops all prepared statements after a rollback that it knows of, and the server would have to plan those
    of every stream table anew; so it is not told of this one. Nothing within the block may create or drop anything, and
    it cannot be within a pipeline.
    """
    connection.execute(SAVEPOINT)
    try:
        yield
    except BaseException:
        with suppress(psycopg.Error):
            _undo(connection)
        raise
    _undo(connection)


def _undo(connection: psycopg.Connection) -> None:
    """Roll back to the savepoint, for a second time where that was cancelled by a limit set within the block."""
    if connection.pgconn.exec_(UNDO).status != ExecStatus.COMMAND_OK:
        _run(connection, UNDO)
    _run(connection, RELEASE)


def _run(connection: psycopg.Connection, command: bytes) -> None:
    result = connection.pgconn.exec_(command)
    if result.status != ExecStatus.COMMAND_OK:
        raise error_from_result(result)
