"""Output mode append and frozen rows: what comes too late for closed windows, or for old rows, is recorded."""

from dataclasses import asdict, dataclass
from datetime import datetime

import psycopg

from pytrickle.apply.statements import index_lookups, run
from pytrickle.plan.apply_plan import WindowPlan


@dataclass(frozen=True, slots=True)
class Closing:
    """How far windows are closed: those to `before` were closed earlier, those to `through` are now.

    Those to `since` were emitted by an earlier query of the stream table, so they are not compared with what is
    computed now. Rows from before `frozen_before` are frozen.
    """

    before: datetime | None
    through: datetime | None
    since: datetime | None = None
    frozen_before: str | None = None


def withhold(connection: psycopg.Connection, plan: WindowPlan, closing: Closing) -> None:
    """Take what concerns closed windows out of staged changes and record it."""
    for statement in plan.withhold if closing.before is not None else ():
        _run(connection, statement, closing)


def withhold_whole(connection: psycopg.Connection, plan: WindowPlan, closing: Closing) -> None:
    """Take closed windows out of what was computed anew; record how they differ from what was emitted of them."""
    if plan.state_index:
        run(connection, plan.state_index)
    if closing.before is None:
        return
    _run(connection, plan.record_missed if closing.since is None else plan.record_missed_since, closing)
    _run(connection, plan.forget_closed, closing)


def close_windows(connection: psycopg.Connection, plan: WindowPlan, closing: Closing) -> int:
    """Move the rows of windows that are closed now to the stream table, drop their state, and return how many."""
    if closing.through is None:
        return 0
    closed = _run(connection, plan.close, closing)
    if plan.close_state and closing.through != closing.before:
        with index_lookups(connection):
            _run(connection, plan.close_state, closing)
    return closed


def withhold_frozen(connection: psycopg.Connection, statement: str, closing: Closing) -> None:
    """Take changes of frozen rows out of the staged ones, and record them."""
    if closing.frozen_before is not None:
        _run(connection, statement, closing)


def has_closing(connection: psycopg.Connection, question: str, through: datetime) -> bool:
    """Ask whether there is anything of windows that end by `through`."""
    row = connection.execute(question.encode(), {"through": through}, prepare=False).fetchone()
    return bool(row and row[0])


def _run(connection: psycopg.Connection, statement: str, closing: Closing) -> int:
    # Planned anew each time: a cached plan would not know how few rows lie beyond the end.
    return connection.execute(statement.encode(), asdict(closing), prepare=False).rowcount
