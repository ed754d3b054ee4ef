"""What a tick writes about stream tables that it did not refresh."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from sqlalchemy import bindparam, func, insert, select, update

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.catalog.tables import refresh_history, stream_tables
from pytrickle.database.statement import statement
from pytrickle.errors import ConfigError, Defect, PytrickleError, ServerExhausted, StreamTableDrifted
from pytrickle.refresh.values import AFTER_FAILURE

SUSPEND_AFTER = 10
LONGEST_WAIT = timedelta(minutes=5)

ROW = stream_tables.c
# Locked by nobody else, and neither refreshed nor altered since: what was decided in an older snapshot is still true.
KNOWN = statement(
    select(ROW.last_skip_reason, ROW.gated_since, ROW.last_error, ROW.reinitialize_reason, ROW.consecutive_failures)
    .where(
        ROW.pgt_id == bindparam("pgt_id"),
        ROW.frontier_version == bindparam("frontier_version"),
        ROW.view_stamp.is_not_distinct_from(bindparam("view_stamp")),
    )
    .with_for_update(skip_locked=True)
)
OWN = update(stream_tables).where(ROW.pgt_id == bindparam("pgt_id"))
SKIPPED = statement(OWN, ("last_skip_reason", "gated_since"))
FAILED = statement(
    OWN.values(retry_at=func.clock_timestamp() + bindparam("wait"), last_error_at=func.clock_timestamp()),
    ("last_error", "last_sqlstate", "status", "reinitialize_reason", "consecutive_failures", "planner_defect"),
)
BLOWN = statement(OWN.values(fuse_blown_at=func.coalesce(ROW.fuse_blown_at, func.clock_timestamp())))
HISTORY = statement(
    insert(refresh_history).values(finished_at=func.clock_timestamp()),
    ("pgt_id", "action", "status", "initiated_by", "reason", "started_at", "error", "sqlstate"),
)


@dataclass(frozen=True, slots=True)
class Known:
    """What the row of a stream table says at the time of writing, while it is locked."""

    last_skip_reason: str | None
    gated_since: datetime | None
    last_error: str | None
    reinitialize_reason: str | None
    consecutive_failures: int


def record_skip(
    connection: psycopg.Connection, table: StreamTable, reason: str, initiated_by: str, started: datetime
) -> None:
    """Write a skip to the history once per change of its reason, and since when the stream table is gated."""
    gated = table.decision.gated
    if (table.last_skip_reason, table.gated_since) == (reason, table.gated_since or started if gated else None):
        return
    with connection.transaction():
        known = _known(connection, table)
        if known is None:
            return
        since = known.gated_since or started if gated else None
        connection.execute(SKIPPED, {"pgt_id": table.pgt_id, "last_skip_reason": reason, "gated_since": since})
        if known.last_skip_reason != reason:
            entry = {"action": "SKIP", "status": "SKIPPED", "reason": reason, "error": None, "sqlstate": None}
            _remember(connection, table, initiated_by, started, entry)


def record_failure(
    connection: psycopg.Connection, table: StreamTable, error: PytrickleError, initiated_by: str, started: datetime
) -> None:
    """Write a failure to the history once per change of its sentence, and choose when and how the next is tried.

    Where another session refreshed or altered the stream table meanwhile, or holds its row, nothing is written: the
    failure is about a state that is no more.
    """
    with connection.transaction():
        known = _known(connection, table)
        if known is None:
            return
        _count(connection, table, error, known)
        if known.last_error != str(error):
            action = error.attempted or _likely_action(table)
            entry = {"action": action, "status": "FAILED", "reason": None, "error": str(error), "sqlstate": error.kind}
            _remember(connection, table, initiated_by, started, entry)


def _likely_action(table: StreamTable) -> str:
    """Say what was to be done by a refresh that failed before it was planned."""
    if table.reinitialize_reason:
        return "REINITIALIZE"
    whole = not table.populated or table.refresh_mode == "FULL" or table.output_mode == "complete"
    return "FULL" if whole else "DIFFERENTIAL"


def _known(connection: psycopg.Connection, table: StreamTable) -> Known | None:
    found = {"pgt_id": table.pgt_id, "frontier_version": table.frontier_version, "view_stamp": table.view_stamp}
    row = connection.execute(KNOWN, found).fetchone()
    return Known(*row) if row else None


def _count(connection: psycopg.Connection, table: StreamTable, error: PytrickleError, known: Known) -> None:
    failures = known.consecutive_failures + 1
    # What is wrong with the machine is not the stream table's fault.
    suspended = failures >= SUSPEND_AFTER and not error.retryable and not isinstance(error, ConfigError)
    came_meanwhile = known.reinitialize_reason != table.reinitialize_reason
    connection.execute(
        FAILED,
        {
            "pgt_id": table.pgt_id,
            "last_error": str(error),
            "last_sqlstate": error.kind,
            "status": "SUSPENDED" if suspended else "ERROR",
            "reinitialize_reason": known.reinitialize_reason if came_meanwhile else _next_attempt(table, error),
            "consecutive_failures": failures,
            "planner_defect": str(error) if isinstance(error, Defect) else table.planner_defect,
            "wait": wait_after(failures),
        },
    )


def wait_after(failures: int) -> timedelta:
    """Return how long a stream table is left alone after so many failures in a row: not at all after the first.

    >>> [wait_after(failures).total_seconds() for failures in (1, 2, 3, 11)]
    [0.0, 1.0, 2.0, 300.0]
    """
    return min(timedelta(seconds=2 ** (failures - 2)), LONGEST_WAIT) if failures > 1 else timedelta(0)


def record_blown_fuse(connection: psycopg.Connection, table: StreamTable) -> None:
    """Note since when a delta is held for a decision, unless another session let it pass meanwhile."""
    with connection.transaction():
        if _known(connection, table):
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
    # The whole may well need less of what the server lacks than the changes do.
    passing = error.retryable and not isinstance(error, ServerExhausted)
    if passing or not table.populated or (table.strict and known is None):
        return known
    if known is None:
        return f"{AFTER_FAILURE}{error.kind}"
    return None if known.startswith(AFTER_FAILURE) else known
