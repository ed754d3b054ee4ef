"""What a tick writes about stream tables that it did not refresh."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import psycopg
from sqlalchemy import bindparam, func, insert, update

from pytrickle.catalog.refresh import StreamTable
from pytrickle.catalog.tables import refresh_history, stream_tables
from pytrickle.db import statement
from pytrickle.errors import ConfigError, PytrickleError, StreamTableDrifted
from pytrickle.refresh import AFTER_FAILURE

SUSPEND_AFTER = 10
LONGEST_WAIT = timedelta(minutes=5)

ROW = update(stream_tables).where(stream_tables.c.pgt_id == bindparam("pgt_id"))
SKIPPED = statement(ROW, ("last_skip_reason", "gated_since"))
FAILED = statement(
    ROW.values(retry_at=func.clock_timestamp() + bindparam("wait")),
    ("last_error", "last_sqlstate", "status", "reinitialize_reason", "consecutive_failures"),
)
BLOWN = statement(ROW.values(fuse_blown_at=func.coalesce(stream_tables.c.fuse_blown_at, func.clock_timestamp())))
HISTORY = statement(
    insert(refresh_history).values(finished_at=func.clock_timestamp()),
    ("pgt_id", "action", "status", "initiated_by", "reason", "started_at", "error", "sqlstate"),
)


def record_skip(
    connection: psycopg.Connection, table: StreamTable, reason: str, initiated_by: str, started: datetime
) -> None:
    """Write a skip to the history once per change of its reason, and since when the stream table is gated."""
    gated_since = table.gated_since or started if table.decision.gated else None
    if (table.last_skip_reason, table.gated_since) == (reason, gated_since):
        return
    with connection.transaction():
        connection.execute(SKIPPED, {"pgt_id": table.pgt_id, "last_skip_reason": reason, "gated_since": gated_since})
        if table.last_skip_reason != reason:
            entry = {"action": "SKIP", "status": "SKIPPED", "reason": reason, "error": None, "sqlstate": None}
            _remember(connection, table, initiated_by, started, entry)


def record_failure(
    connection: psycopg.Connection, table: StreamTable, error: PytrickleError, initiated_by: str, started: datetime
) -> None:
    """Write a failure to the history once per change of its sentence, and choose when and how the next is tried."""
    message = str(error)
    failures = table.consecutive_failures + 1
    # What is wrong with the machine is not the stream table's fault.
    suspended = failures >= SUSPEND_AFTER and not error.retryable and not isinstance(error, ConfigError)
    with connection.transaction():
        connection.execute(
            FAILED,
            {
                "pgt_id": table.pgt_id,
                "last_error": message,
                "last_sqlstate": error.kind,
                "status": "SUSPENDED" if suspended else "ERROR",
                "reinitialize_reason": _next_attempt(table, error),
                "consecutive_failures": failures,
                "wait": wait_after(failures),
            },
        )
        if table.last_error != message:
            action = "REINITIALIZE" if table.reinitialize_reason else "DIFFERENTIAL" if table.populated else "FULL"
            entry = {"action": action, "status": "FAILED", "reason": None, "error": message, "sqlstate": error.kind}
            _remember(connection, table, initiated_by, started, entry)


def wait_after(failures: int) -> timedelta:
    """Return how long a stream table is left alone after so many failures in a row: not at all after the first.

    >>> [wait_after(failures).total_seconds() for failures in (1, 2, 3, 11)]
    [0.0, 1.0, 2.0, 300.0]
    """
    return min(timedelta(seconds=2 ** (failures - 2)), LONGEST_WAIT) if failures > 1 else timedelta(0)


def record_blown_fuse(connection: psycopg.Connection, table: StreamTable) -> None:
    """Note since when a delta is held for a decision."""
    connection.execute(BLOWN, {"pgt_id": table.pgt_id})


def _remember(
    connection: psycopg.Connection,
    table: StreamTable,
    initiated_by: str,
    started: datetime,
    entry: Mapping[str, str | None],
) -> None:
    connection.execute(HISTORY, {"pgt_id": table.pgt_id, "initiated_by": initiated_by, "started_at": started, **entry})


def _next_attempt(table: StreamTable, error: PytrickleError) -> str | None:
    """Why the next refresh must reinitialize, if it must.

    A delta evaluates rows that came and went meanwhile; where one of them fails, the whole query may well succeed. So
    differential and whole attempts alternate, but a reason that makes the frontiers void stays until it is mended.
    """
    known = table.reinitialize_reason
    if isinstance(error, StreamTableDrifted):
        return known or str(error)
    if error.retryable or not table.populated:
        return known
    if known is None:
        return f"{AFTER_FAILURE}{error.kind}"
    return None if known.startswith(AFTER_FAILURE) else known
