"""The write transaction of a refresh: lock, compare frontiers, apply the rows, store frontiers and history, commit."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

import psycopg
from sqlalchemy import bindparam, case, func, insert

from pytrickle.apply.closed_windows import Closing
from pytrickle.apply.commitment import Commitment, Committed
from pytrickle.apply.few_rows import FewRows, applied, ask_to_apply, few_rows
from pytrickle.apply.frontiers import frontier_for_people, frontiers_reached
from pytrickle.apply.kept_groups import KeptRows, ask_to_take_in, check_taken_in, copied_rows
from pytrickle.apply.measures import APPLY, measured
from pytrickle.apply.rewritten import refuse_rewritten
from pytrickle.apply.rows import apply_many, apply_rows
from pytrickle.apply.statements import AS_WRITTEN, LOOK_UP, index_lookups
from pytrickle.apply.stream_table_row import ADVANCE, CLOSED
from pytrickle.catalog.tables import refresh_history
from pytrickle.compute.postgres import READ_ONLY, read_within, reset
from pytrickle.compute.staged import Staged
from pytrickle.database import pipelined, settle
from pytrickle.database.statement import statement
from pytrickle.errors import RefreshConflict
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.tracing import phase

OUTRUN = (
    "Another refresh of the same stream table committed first, or it was altered or renamed.",
    "Nothing needs to be done.",
)
# Compiling the statements of a merge takes longer than running them, and texts of rows are read as they were written.
APPLYING = ("SET LOCAL jit = off", *(f"SET LOCAL {name} = '{value}'" for name, value in AS_WRITTEN.items()))
REPEATABLE = "BEGIN ISOLATION LEVEL REPEATABLE READ"
# The savepoint is released, for after a rollback the client would have its prepared statements dropped.
READING, READ = ("SAVEPOINT pgt_reading", READ_ONLY), "RELEASE SAVEPOINT pgt_reading"
THROUGH_OTHERS = func.pgtrickle_private.came_through(bindparam("pgt_id"))
HISTORY = statement(
    insert(refresh_history).values(
        status="COMPLETED",
        started_at=func.clock_timestamp() - bindparam("took"),
        finished_at=func.clock_timestamp(),
        refresh_xid=func.pg_current_xact_id(),
        # What a stream table among the sources wrote came into a base table before.
        oldest_change_at=func.least(bindparam("oldest_change_at"), case((bindparam("chained"), THROUGH_OTHERS))),
    ),
    [
        *("pgt_id", "action", "initiated_by", "reason", "delta_rows", "rows_inserted", "rows_deleted"),
        *("effective_watermark", "effective_batch", "data_timestamp", "fixpoint_iteration", "engine"),
        *("phases", "staged_bytes", "newest_change_at", "change_clock", "gave_up_ms"),
    ],
)
FRONTIERS_AND_HISTORY = f"""
WITH frontiers AS (
    UPDATE pgtrickle.pgt_dependencies AS d
    SET frontier = ROW(n.snapshot::pg_snapshot, n.xid::xid8, n.pos, n.lsn::pg_lsn)::pgtrickle.cut,
        changed_at = CASE WHEN n.changed THEN clock_timestamp() ELSE d.changed_at END
    FROM jsonb_to_recordset(%(frontiers)s)
        AS n (relid oid, snapshot text, xid text, pos bigint, lsn text, changed boolean)
    WHERE d.pgt_id = %(pgt_id)s AND d.source_relid = n.relid
)
{HISTORY}"""


@phase("write")
def commit(connection: psycopg.Connection, plan: RefreshPlan, staged: Staged, what: Commitment) -> Committed:
    """Apply a computed refresh in one transaction: everything, or nothing.

    Raise RefreshConflict when another refresh moved the frontier meanwhile, StreamTableDrifted when the stored rows
    are not what the last refresh left.
    """
    what.measures.enter(APPLY)
    what.measures.staged_bytes = staged.size
    with connection.transaction():
        settle(connection, (*what.settings, *APPLYING))
        kept = copied_rows(plan, staged.kept)
        return _write(connection, plan, what, partial(apply_rows, connection, plan.apply, staged), kept)


def commit_within(connection: psycopg.Connection, plan: RefreshPlan, what: Commitment, snapshot: str) -> Committed:
    """Compute a refresh in the transaction that applies it, which stands at an exported snapshot.

    Raise as `commit` does, and RefreshConflict also when the stream table was altered since the snapshot.
    """
    with transaction(connection, reading_at(snapshot, (*what.settings, *plan.settings))):
        return read_and_commit(connection, plan, what)


def reading_at(snapshot: str | None, settings: Iterable[str]) -> tuple[str, ...]:
    """Write the statements that begin a write transaction at a snapshot, its own if none is named, to read first."""
    imported = (f"SET TRANSACTION SNAPSHOT '{snapshot}'",) if snapshot else ()
    return (REPEATABLE, *imported, *READING, *settings)


@phase("compute and write")
def read_and_commit(connection: psycopg.Connection, plan: RefreshPlan, what: Commitment) -> Committed:
    """Compute a refresh in a transaction that was begun to read, under the settings of the plan; apply and commit.

    Raise as `commit_within` does.
    """
    if plan.time_limit:
        settle(connection, plan.time_limit)
    with read_within(connection, plan) as staged:
        if plan.time_limit:
            settle(connection, what.settings)
        what.measures.enter(APPLY)
        what.measures.staged_bytes = staged.size
        kept = copied_rows(plan, staged.kept)
        if few := few_rows(plan.apply, staged):
            return write_few(connection, plan, what, few, kept)
        settle(connection, (READ, *reset(plan.settings), *APPLYING))
        done = _write(connection, plan, what, partial(apply_many, connection, plan.apply, staged), kept)
        connection.commit()
        return done


@contextmanager
def transaction(connection: psycopg.Connection, begin: Iterable[str]) -> Iterator[None]:
    """Commit what is done within the block; the statements that begin the transaction are one message."""
    try:
        settle(connection, begin)
        yield
    except BaseException:
        with suppress(psycopg.OperationalError):
            connection.rollback()
        raise
    connection.commit()


def write_few(
    connection: psycopg.Connection, plan: RefreshPlan, what: Commitment, few: FewRows, kept: KeptRows | None = None
) -> Committed:
    """Write by lookups; what was set for the planner while the rows were read does no harm to these statements.

    Raise as `commit_within` does.
    """
    with pipelined(connection) as together:
        connection.execute(READ)
        connection.execute(LOOK_UP)
        advance = _ask_to_advance(connection, plan, what, kept)
        done = None if together else _advanced(advance)
        # An answer that came early is seen as soon as the next statement is sent.
        with conflicts(), _outrun():
            asked = ask_to_apply(connection, plan.apply, few, what.frozen_before)
            taken_in = ask_to_take_in(connection, kept)
            xid, _ = done or _advanced(advance)
        check_taken_in(taken_in)
        rows = applied(connection, plan.apply, few, asked, what.frozen_before)
        with conflicts():
            record(connection, plan, what, rows)
            # An error in what was sent before it ends the pipeline, so that the COMMIT is not even tried.
            connection.commit()
    return Committed(*rows, xid)


def _write(
    connection: psycopg.Connection,
    plan: RefreshPlan,
    what: Commitment,
    apply: Callable[[Closing], tuple[int, int]],
    kept: KeptRows | None = None,
) -> Committed:
    closed, earlier_query = closed_through(connection, what) if plan.apply.windows else (None, None)
    xid, through = _advanced(_ask_to_advance(connection, plan, what, kept))
    if kept:
        with index_lookups(connection):
            check_taken_in(ask_to_take_in(connection, kept))
    rows = apply(Closing(closed, through, earlier_query, what.frozen_before))
    record(connection, plan, what, rows)
    return Committed(*rows, xid)


@contextmanager
def _outrun() -> Iterator[None]:
    """Raise RefreshConflict where the rows are refused, sent before it is known whether the frontier was advanced."""
    try:
        yield
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        if error.diag.constraint_name != "stream_table_read_only":
            raise
        raise RefreshConflict(*OUTRUN) from error


@contextmanager
def conflicts() -> Iterator[None]:
    """Raise RefreshConflict where another transaction has changed, or holds, the row of the stream table.

    A transaction at REPEATABLE READ, as an atomic unit needs it, cannot see what another refresh left in the row: its
    compare-and-set fails as a serialization failure instead.
    """
    try:
        yield
    except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected, psycopg.errors.LockNotAvailable) as e:
        if e.diag.constraint_name:
            raise
        raise RefreshConflict(
            "Another session refreshes or alters the same stream table, or cleans up what it has read.",
            "Nothing needs to be done.",
        ) from e


@conflicts()
def closed_through(connection: psycopg.Connection, what: Commitment) -> tuple[datetime | None, datetime | None]:
    """Lock the stream table and return its effective watermark: windows to there were closed by earlier refreshes.

    Return beside it through when an earlier query of the stream table closed them.
    """
    row = connection.execute(CLOSED, {"pgt_id": what.pgt_id}).fetchone()
    return (row[0], row[1]) if row else (None, None)


def advance_frontier(
    connection: psycopg.Connection, plan: RefreshPlan, what: Commitment
) -> tuple[str, datetime | None]:
    """Let this transaction write the stream table, if nobody moved its frontier; return xid and effective watermark.

    Raise RefreshConflict if somebody did, or altered the query, or which rows are frozen, or rewrote what this
    transaction has read.
    """
    return _advanced(_ask_to_advance(connection, plan, what))


@conflicts()
def _ask_to_advance(
    connection: psycopg.Connection, plan: RefreshPlan, what: Commitment, kept: KeptRows | None = None
) -> psycopg.Cursor:
    return connection.execute(
        ADVANCE,
        {
            "pgt_id": what.pgt_id,
            "frontier_version": what.frontier_version,
            "view_stamp": what.view_stamp,
            "written_as": plan.apply.shown.table,
            "frozen_by": what.frozen_by,
            "frozen_before": what.frozen_before,
            "moment": what.data_timestamp,
            "watermark": what.effective.watermark,
            "batch": what.effective.batch,
            "let_through": what.let_through,
            "known_reason": what.known_reason,
            "next_reason": what.next_reason,
            "planner_defect": what.planner_defect,
            "frontier": frontier_for_people(plan, what),
            "mode": "FULL" if plan.action is Action.REINITIALIZE else plan.action,
            "reason": plan.told,
            "rounds": plan.rounds,
            "kept_groups": kept.stamp(what.frontier_version + 1) if kept else None,
        },
    )


@conflicts()
def _advanced(asked: psycopg.Cursor) -> tuple[str, datetime | None]:
    row = asked.fetchone()
    if row is None:
        raise RefreshConflict(*OUTRUN)
    refuse_rewritten(row[2])
    return str(row[0]), row[1]


@conflicts()
def record(connection: psycopg.Connection, plan: RefreshPlan, what: Commitment, rows: tuple[int, int]) -> None:
    """Store the frontiers, and the history by the server's clock alone.

    Durations, from which AUTO learns, must not mix two clocks.
    """
    connection.execute(
        FRONTIERS_AND_HISTORY,
        {
            "frontiers": frontiers_reached(plan, what),
            "pgt_id": what.pgt_id,
            "action": plan.action,
            "initiated_by": what.initiated_by,
            "reason": plan.told,
            "took": timedelta(seconds=monotonic() - what.since),
            "delta_rows": plan.delta_rows,
            "rows_inserted": rows[0],
            "rows_deleted": rows[1],
            "effective_watermark": what.effective.watermark,
            "effective_batch": what.effective.batch,
            "data_timestamp": what.data_timestamp,
            "fixpoint_iteration": plan.rounds,
            "engine": plan.placement.engine.value,
            **measured(what.measures, plan),
        },
    )
