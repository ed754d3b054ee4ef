"""What a tick writes about stream tables that it did not refresh."""

from datetime import datetime

import psycopg

from pytrickle.catalog.refresh import StreamTable
from pytrickle.errors import PytrickleError, StreamTableDrifted

HISTORY = (
    "INSERT INTO pgtrickle.pgt_refresh_history"
    " (pgt_id, action, status, initiated_by, reason, started_at, finished_at, error)"
    " VALUES (%s, %s, %s, %s, %s, %s, clock_timestamp(), %s)"
)


def record_skip(
    connection: psycopg.Connection, table: StreamTable, reason: str, initiated_by: str, started: datetime
) -> None:
    """Write a skip to the history once per change of its reason."""
    if table.last_skip_reason == reason:
        return
    with connection.transaction():
        connection.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET last_skip_reason = %s WHERE pgt_id = %s", (reason, table.pgt_id)
        )
        connection.execute(HISTORY, (table.pgt_id, "SKIP", "SKIPPED", initiated_by, reason, started, None))


def record_failure(
    connection: psycopg.Connection, table: StreamTable, error: PytrickleError, initiated_by: str, started: datetime
) -> None:
    """Write a failure to the history once per change of its sentence; a drifted table is to be reinitialized."""
    message = str(error)
    repair = message if isinstance(error, StreamTableDrifted) else None
    if table.last_error == message and repair is None:
        return
    with connection.transaction():
        connection.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET last_error = %s, status = 'ERROR',"
            " reinitialize_reason = coalesce(%s, reinitialize_reason) WHERE pgt_id = %s",
            (message, repair, table.pgt_id),
        )
        action = "REINITIALIZE" if table.reinitialize_reason else "DIFFERENTIAL" if table.populated else "FULL"
        connection.execute(HISTORY, (table.pgt_id, action, "FAILED", initiated_by, None, started, message))
