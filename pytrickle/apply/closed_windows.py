"""Output mode append: a row is shown once its window is closed, and what comes too late for that is recorded.

The rows of open windows are maintained in a hidden table, as the body below a LIMIT is. A window is closed once its end
is not after the effective watermark; then its rows move to the stream table and its state is dropped.
"""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from pytrickle.apply.aggregate_state import state_table
from pytrickle.apply.limit import body_table
from pytrickle.apply.rows import Storage, difference
from pytrickle.apply.staged_rows import CHANGES, CONTENT, INCREMENTS, KEYED, create_kept, index_lookups, run, trusted
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.append_mode import end_key, shown_by_keys
from pytrickle.plan.postgres.aggregate_state import Grouped
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import RefreshPlan, Stage
from pytrickle.plan.sql.dialect import quote

LATE = "pgtrickle.pgt_late_changes"


@dataclass(frozen=True, slots=True)
class EventWindows:
    """The windows of one refresh: `column` ends them, those to `before` were closed earlier, to `through` are now.

    Those to `earlier_query` were emitted by a query that the stream table had before: what is computed now is no
    standard for them.
    """

    pgt_id: int
    column: str
    before: datetime | None
    through: datetime | None
    earlier_query: datetime | None = None


def create_open(connection: psycopg.Connection, shape: Analysis, body: Storage, windows: EventWindows) -> None:
    """Create the empty table of the rows of open windows."""
    shown = Storage.of(shape)
    run(connection, f"DROP TABLE IF EXISTS {body.table}")
    create_kept(connection, body.table, f"SELECT {shown.column_list()} FROM {shown.table}")
    run(connection, f"CREATE INDEX ON {body.table} ({quote(windows.column)})")


def index_ends(connection: psycopg.Connection, shape: Analysis, windows: EventWindows) -> None:
    """Have the aggregate state of closed windows found by an index, where a key of their groups is the end."""
    key = end_key(shape, windows.column)
    if key is not None:
        run(connection, f"CREATE INDEX ON {state_table(windows.pgt_id)} ({key})")


def withhold(
    connection: psycopg.Connection, shape: Analysis, name: str, windows: EventWindows, keyed: bool = False
) -> None:
    """Take what concerns closed windows out of staged changes and record it, but for increments without effect.

    `keyed` says that some groups are also recomputed, which `name` may be the table of: those are only taken out.
    """
    if windows.before is None:
        return
    before = _literal(connection, windows.before)
    end, staged = _end_of(shape, name, windows.column), f"pg_temp.{name}"
    if name == KEYED:
        run(connection, f"DELETE FROM {staged} AS g WHERE {end} <= {before}")
        return
    weight = WEIGHT if shape.grouped is None else "pgt_rows"
    effect = "true" if shape.grouped is None else _has_effect(shape.grouped, keyed)
    run(
        connection,
        f"WITH late AS (DELETE FROM {staged} AS g WHERE {end} <= {before} RETURNING {end} AS window_end,"
        f" g.{weight} AS weight, {_change(shape, name)} AS change, {effect} AS counts)"
        f" INSERT INTO {LATE} (pgt_id, window_end, closed_through, weight, change)"
        f" SELECT {windows.pgt_id}, window_end, {before}, weight, change FROM late WHERE counts",
    )


def withhold_whole(connection: psycopg.Connection, plan: RefreshPlan, after: str, windows: EventWindows) -> None:
    """Take closed windows out of what was computed anew; record how they differ from what was emitted of them.

    `after` is the query for all rows of the stream table, over the staged content or the new aggregate state.
    """
    if windows.before is None:
        return
    before, shape = _literal(connection, windows.before), plan.shape
    run(connection, _missed(connection, shape, after, windows))
    name, table = (CONTENT, f"pg_temp.{CONTENT}")
    if plan.stage is Stage.STATE:
        name, table = (INCREMENTS, state_table(windows.pgt_id))
    run(connection, f"DELETE FROM {table} AS g WHERE {_end_of(shape, name, windows.column)} <= {before}")


def close_windows(connection: psycopg.Connection, plan: RefreshPlan, body: Storage, windows: EventWindows) -> int:
    """Move the rows of windows that are closed now to the stream table, drop their state, and return how many."""
    if windows.through is None:
        return 0
    shown, through = Storage.of(plan.shape), _literal(connection, windows.through)
    closed = run(
        connection,
        f"WITH closed AS (DELETE FROM {body.table} WHERE {quote(windows.column)} <= {through}"
        f" RETURNING {body.column_list()})"
        f" INSERT INTO {shown.table} ({shown.column_list()}) SELECT {shown.column_list()} FROM closed",
    )
    # A refresh that keeps no state is followed by one that computes it anew.
    if plan.shape.grouped is not None and plan.stage is not Stage.CONTENT and windows.through != windows.before:
        end = _end_of(plan.shape, INCREMENTS, windows.column)
        with index_lookups(connection):
            run(connection, f"DELETE FROM {state_table(windows.pgt_id)} AS g WHERE {end} <= {through}")
    return closed


def has_closing(connection: psycopg.Connection, shape: Analysis, pgt_id: int, column: str, through: datetime) -> bool:
    """Whether there are rows, or the state of groups that HAVING hides, of windows that end by `through`."""
    limit = _literal(connection, through)
    found = [f"EXISTS (SELECT FROM {body_table(pgt_id)} AS g WHERE g.{quote(column)} <= {limit})"]
    if shape.grouped is not None:
        end = _end_of(shape, INCREMENTS, column)
        found.append(f"EXISTS (SELECT FROM {state_table(pgt_id)} AS g WHERE {end} <= {limit})")
    row = connection.execute(trusted(f"SELECT {' OR '.join(found)}")).fetchone()
    return bool(row and row[0])


def _missed(connection: psycopg.Connection, shape: Analysis, after: str, windows: EventWindows) -> str:
    """Write the statement that records what emitted windows differ in, without what the ledger has already.

    Of a row the ledger knows how many came and went; of a group only that its row is not what it was.
    """
    shown, before = Storage.of(shape), _literal(connection, windows.before)
    closed = f"{quote(windows.column)} <= {before}"
    known = f"l.pgt_id = {windows.pgt_id} AND l.window_end <= {before}"
    if windows.earlier_query is not None:
        since = _literal(connection, windows.earlier_query)
        closed, known = (f"{closed} AND {quote(windows.column)} > {since}", f"{known} AND l.window_end > {since}")
    now, emitted = (
        f"SELECT {shown.column_list()} FROM {rows} AS q WHERE {closed}" for rows in (f"(\n{after}\n)", shown.table)
    )
    found = (
        f"SELECT g.{quote(windows.column)} AS window_end, g.{WEIGHT} AS weight, {_change(shape, CONTENT)} AS change"
        f" FROM (\n{difference(shown, now, emitted)}\n) AS g"
    )
    if shape.grouped is None:
        found += f"\nUNION ALL SELECT l.window_end, -l.weight, l.change FROM {LATE} AS l WHERE {known}"
        fresh = "sum(d.weight) <> 0"
    else:
        fresh = f"(d.window_end, d.change) NOT IN (SELECT l.window_end, l.change FROM {LATE} AS l WHERE {known})"
    return (
        f"INSERT INTO {LATE} (pgt_id, window_end, closed_through, weight, change)\n"
        f"SELECT {windows.pgt_id}, d.window_end, {before}, sum(d.weight), d.change FROM (\n{found}\n) AS d"
        f" GROUP BY d.window_end, d.change HAVING {fresh}"
    )


def _has_effect(grouped: Grouped, keyed: bool) -> str:
    """Write whether the increments `g` of a group come to anything; those with extrema are of rows that do."""
    if grouped.extrema:
        return "true"
    tests = [column.moves("g") for column in grouped.merged]
    if keyed:
        tests.append(f"EXISTS (SELECT FROM pg_temp.{KEYED} AS k WHERE {grouped.match('k', 'g')})")
    return f"coalesce({' OR '.join(tests)}, false)"


def _change(shape: Analysis, name: str) -> str:
    """Write as JSON what the ledger tells of a row: the row itself, or what the keys of its group alone show."""
    if shape.grouped is None:
        return f"to_jsonb(g) - '{WEIGHT}'"
    shown = shown_by_keys(shape).items()
    of_row = name in {CHANGES, CONTENT}
    items = (f"{sql.Literal(key).as_string()}, {f'g.{quote(key)}' if of_row else text}" for key, text in shown)
    return f"jsonb_build_object({', '.join(items)})"


def _literal(connection: psycopg.Connection, value: datetime | None) -> str:
    # As a parameter it would have every percent sign of a query taken for a placeholder.
    return f"CAST({sql.Literal(value).as_string(connection)} AS timestamptz)"


def _end_of(shape: Analysis, name: str, column: str) -> str:
    """Write where a staged table has the end of the window: as a column, or computed from the keys of groups."""
    if name in {CHANGES, CONTENT}:
        return f"g.{quote(column)}"
    return shown_by_keys(shape)[column]
