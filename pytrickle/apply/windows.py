"""Output mode append: a row is shown once its window is closed, and what comes too late for that is recorded.

The rows of open windows are maintained in a hidden table, as the body below a LIMIT is. A window is closed once its end
is not after the effective watermark; then its rows move to the stream table and its state is dropped.
"""

from dataclasses import dataclass
from datetime import datetime

import psycopg
from psycopg import sql

from pytrickle.apply.accumulate import state_table
from pytrickle.apply.staging import CHANGES, CONTENT, INCREMENTS, KEYED, run
from pytrickle.apply.zset import Storage
from pytrickle.plan.dialect import quote
from pytrickle.plan.refresh_plan import RefreshPlan, Stage
from pytrickle.plan.shape import Shape
from pytrickle.plan.window_end import shown_by_keys
from pytrickle.plan.zset import WEIGHT

RECORD = sql.SQL(
    "WITH late AS (DELETE FROM pg_temp.{table} AS g WHERE {end} <= %(before)s"
    " RETURNING {end} AS window_end, g.{weight} AS weight, {change} AS change)"
    " INSERT INTO pgtrickle.pgt_late_changes (pgt_id, window_end, closed_through, weight, change)"
    " SELECT %(pgt_id)s, window_end, %(before)s, weight, change FROM late"
)


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of one refresh: `column` ends them, those to `before` were closed earlier, to `through` are now."""

    pgt_id: int
    column: str
    before: datetime | None
    through: datetime | None


def create_open(connection: psycopg.Connection, shape: Shape, body: Storage, windows: Windows) -> None:
    """Create the empty table of the rows of open windows."""
    shown = Storage.of(shape)
    run(connection, f"DROP TABLE IF EXISTS {body.table}")
    run(connection, f"CREATE TABLE {body.table} AS SELECT {shown.column_list()} FROM {shown.table} WITH NO DATA")
    run(connection, f"CREATE INDEX ON {body.table} ({quote(windows.column)})")


def withhold(connection: psycopg.Connection, plan: RefreshPlan, name: str, windows: Windows) -> None:
    """Take what concerns closed windows out of a staged table; record it unless everything is computed anew."""
    if windows.before is None:
        return
    end, table = sql.SQL(_end_of(plan.shape, name, windows.column)), sql.Identifier(name)
    if name == KEYED or plan.stage in {Stage.CONTENT, Stage.STATE}:
        statement = sql.SQL("DELETE FROM pg_temp.{} AS g WHERE {} <= %s").format(table, end)
        connection.execute(statement, (windows.before,))
        return
    grouped = plan.shape.grouped
    change = sql.SQL(f"to_jsonb(g) - '{WEIGHT}'" if grouped is None else _key_of_group(plan.shape))
    weight = sql.SQL(WEIGHT if grouped is None else "pgt_rows")
    statement = RECORD.format(table=table, end=end, weight=weight, change=change)
    connection.execute(statement, {"pgt_id": windows.pgt_id, "before": windows.before})


def close_windows(connection: psycopg.Connection, shape: Shape, body: Storage, windows: Windows) -> int:
    """Move the rows of windows that are closed now to the stream table, drop their state, and return how many."""
    if windows.through is None:
        return 0
    shown = Storage.of(shape)
    moved = sql.SQL(
        f"WITH closed AS (DELETE FROM {body.table} WHERE {quote(windows.column)} <= %s RETURNING {body.column_list()})"
        f" INSERT INTO {shown.table} ({shown.column_list()}) SELECT {shown.column_list()} FROM closed"
    )
    closed = connection.execute(moved, (windows.through,)).rowcount
    if shape.grouped is not None and closed:
        end = _end_of(shape, INCREMENTS, windows.column)
        drop = sql.SQL(f"DELETE FROM {state_table(windows.pgt_id)} AS g WHERE {end} <= %s")
        connection.execute(drop, (windows.through,))
    return closed


def _key_of_group(shape: Shape) -> str:
    """Write as JSON what the keys of a group alone show in the stream table."""
    items = ", ".join(f"{sql.Literal(name).as_string()}, {text}" for name, text in shown_by_keys(shape).items())
    return f"jsonb_build_object({items})"


def _end_of(shape: Shape, name: str, column: str) -> str:
    """Write where a staged table has the end of the window: as a column, or computed from the keys of groups."""
    if name in {CHANGES, CONTENT}:
        return f"g.{quote(column)}"
    return shown_by_keys(shape)[column]
