"""What a tick writes about stream tables that it did not refresh."""

from datetime import datetime

import psycopg

from pytrickle.catalog.refresh import StreamTable
from pytrickle.errors import PytrickleError, StreamTableDrifted
from pytrickle.refresh import AFTER_FAILURE

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
    """Write a failure to the history once per change of its sentence, and choose how the next refresh is tried."""
    message = str(error)
    with connection.transaction():
        connection.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET last_error = %s, status = 'ERROR', reinitialize_reason = %s"
            " WHERE pgt_id = %s",
            (message, _next_attempt(table, error), table.pgt_id),
        )
        if table.last_error != message:
            action = "REINITIALIZE" if table.reinitialize_reason else "DIFFERENTIAL" if table.populated else "FULL"
            connection.execute(HISTORY, (table.pgt_id, action, "FAILED", initiated_by, None, started, message))


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
