"""What a tick writes about stream tables that it did not refresh."""

from datetime import datetime, timedelta

import psycopg

from pytrickle.catalog.refresh import StreamTable
from pytrickle.errors import ConfigError, PytrickleError, StreamTableDrifted
from pytrickle.refresh import AFTER_FAILURE

SUSPEND_AFTER = 10
LONGEST_WAIT = timedelta(minutes=5)

HISTORY = (
    "INSERT INTO pgtrickle.pgt_refresh_history"
    " (pgt_id, action, status, initiated_by, reason, started_at, finished_at, error)"
    " VALUES (%s, %s, %s, %s, %s, %s, clock_timestamp(), %s)"
)


def record_skip(
    connection: psycopg.Connection, table: StreamTable, reason: str, initiated_by: str, started: datetime
) -> None:
    """Write a skip to the history once per change of its reason, and since when the stream table is gated."""
    gated_since = table.gated_since or started if table.decision.gated else None
    if (table.last_skip_reason, table.gated_since) == (reason, gated_since):
        return
    with connection.transaction():
        connection.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET last_skip_reason = %s, gated_since = %s WHERE pgt_id = %s",
            (reason, gated_since, table.pgt_id),
        )
        if table.last_skip_reason != reason:
            connection.execute(HISTORY, (table.pgt_id, "SKIP", "SKIPPED", initiated_by, reason, started, None))


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
            "UPDATE pgtrickle.pgt_stream_tables SET last_error = %s, status = %s, reinitialize_reason = %s,"
            " consecutive_failures = %s, retry_at = clock_timestamp() + %s WHERE pgt_id = %s",
            (
                message,
                "SUSPENDED" if suspended else "ERROR",
                _next_attempt(table, error),
                failures,
                wait_after(failures),
                table.pgt_id,
            ),
        )
        if table.last_error != message:
            action = "REINITIALIZE" if table.reinitialize_reason else "DIFFERENTIAL" if table.populated else "FULL"
            connection.execute(HISTORY, (table.pgt_id, action, "FAILED", initiated_by, None, started, message))


def wait_after(failures: int) -> timedelta:
    """Return how long a stream table is left alone after so many failures in a row: not at all after the first.

    >>> [wait_after(failures).total_seconds() for failures in (1, 2, 3, 11)]
    [0.0, 1.0, 2.0, 300.0]
    """
    return min(timedelta(seconds=2 ** (failures - 2)), LONGEST_WAIT) if failures > 1 else timedelta(0)


def record_blown_fuse(connection: psycopg.Connection, table: StreamTable) -> None:
    """Note since when a delta is held for a decision."""
    connection.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET fuse_blown_at = coalesce(fuse_blown_at, clock_timestamp())"
        " WHERE pgt_id = %s",
        (table.pgt_id,),
    )


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
        return f"{AFTER_FAILURE}{error}"
    return None if known.startswith(AFTER_FAILURE) else known
