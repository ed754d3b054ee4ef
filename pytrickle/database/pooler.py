"""Whether a pooler stands before the server, and hands a session on as soon as a transaction ends."""

from __future__ import annotations

from select import select
from time import monotonic

import psycopg
from psycopg import pq
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn

from pytrickle.database.errors import translate_errors
from pytrickle.errors import ConfigError

# Schemas are written out, for the session has whatever search_path its role or database has.
_BACKEND = "SELECT pg_catalog.pg_backend_pid()"
# A pooler that keeps a session for each client may have none left for a second one.
_PATIENCE = 2.0
_ROUNDS = 3
_REFUSED = "refused"


def refuse_shared_session(connection: psycopg.Connection, dsn: str) -> None:
    """Raise ConfigError where another client gets the server's session that the connection has between transactions.

    Whatever a session sets would stay in it, and be gone from ours. PgBouncer calls that the pool modes transaction and
    statement. It hands out the session that was given back last, or the one that was given back first: so a second
    client gets the one that we just had, or in the next round we get another one. The connection is in autocommit mode.
    """
    with translate_errors():
        ours = _backend(connection)
        other = pq.PGconn.connect(dsn.encode())
        try:
            shared = any(_gets(other, connection, ours) for _ in range(_ROUNDS))
        finally:
            other.finish()
    if shared:
        raise ConfigError(
            "A pooler before the server gives sessions to others between transactions.",
            "Connect to the server itself, or through a pool of another mode: in PgBouncer, pool_mode = session.",
        )


def _backend(connection: psycopg.Connection) -> int:
    row = connection.execute(_BACKEND).fetchone()
    return int(row[0]) if row else 0


def _gets(other: PGconn, connection: psycopg.Connection, ours: int) -> bool:
    """Say whether another client's transaction begins in our session of the server, or we get another one meanwhile."""
    begun = _answer(other, f"BEGIN; {_BACKEND}")
    return begun in (_REFUSED, str(ours)) or _backend(connection) != ours or _answer(other, "COMMIT") == _REFUSED


def _answer(other: PGconn, statement: str) -> str | None:
    """Return the last value that a statement answers, _REFUSED if the mode forbids it; None without a session."""
    if other.is_busy():
        return None
    other.send_query(statement.encode())
    until = monotonic() + _PATIENCE
    while other.is_busy():
        if not select([other.socket], [], [], max(0.0, until - monotonic()))[0]:
            return None
        other.consume_input()
    value: str | None = None
    while result := other.get_result():
        if result.status == ExecStatus.FATAL_ERROR:
            # Else it has no session left, or the server none, which does not concern the one that we have.
            return _REFUSED if b"pooling mode" in result.error_message else None
        value = (result.get_value(0, 0) or b"").decode() if result.status == ExecStatus.TUPLES_OK else value
    return value
