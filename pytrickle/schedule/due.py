"""When cron schedules are due next: worked out by the database's clock, and stored."""

from typing import Any

import psycopg
from sqlalchemy import BindParameter, ColumnElement, bindparam, select, update

from pytrickle.catalog.tables import stream_tables
from pytrickle.database.statement import statement
from pytrickle.errors import ConfigError
from pytrickle.schedule.cron import nth_moment

AWAITED = (
    "SELECT pgt_id, schedule, schedule_timezone, tier, expression, after, nth FROM pgtrickle_private.awaited_moments()"
)
ASKED = ("pgt_id", "schedule", "schedule_timezone", "tier")


def _storing(column: ColumnElement[Any]) -> str:
    """Return the statement that stores a value in a column of the stream table asked for, if it is a new one."""
    found = stream_tables.alias("found")
    value: BindParameter[Any] = bindparam("value")
    # Not while somebody alters it: the next tick will find it again, and a moment that was served is not due twice.
    row = select(found.c.pgt_id).where(*(found.c[name] == bindparam(name) for name in ASKED))
    unlocked = row.with_for_update(skip_locked=True).scalar_subquery()
    changed = column.is_distinct_from(value)
    return statement(update(stream_tables).where(changed, stream_tables.c.pgt_id == unlocked).values({column: value}))


STORE = _storing(stream_tables.c.next_due_at)
FAIL = _storing(stream_tables.c.last_error)


def work_out_moments(connection: psycopg.Connection) -> None:
    """Store the next moment of every cron schedule that is new, altered, or whose last moment was served.

    A schedule in a time zone that this machine does not know is never due; its stream table says so as its error.
    """
    for *schedule, expression, after, nth in connection.execute(AWAITED).fetchall():
        asked = dict(zip(ASKED, schedule, strict=True))
        try:
            moment = nth_moment(expression, asked["schedule_timezone"], after, nth)
        except ConfigError as error:
            message = f"{error} {error.hint}"
            connection.execute(FAIL, {**asked, "value": message})
        else:
            connection.execute(STORE, {**asked, "value": moment})
