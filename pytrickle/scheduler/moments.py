"""When cron schedules are due next: worked out by the database's clock, and stored."""

import psycopg

from pytrickle.errors import ConfigError
from pytrickle.scheduler.cron import nth_moment

AWAITED = "SELECT pgt_id, schedule, schedule_timezone, tier, expression, after, nth FROM pgtrickle.awaited_moments()"
# Not while somebody alters it: the next tick will find it again, and a moment that was served is not due twice.
ROW = (
    "(SELECT pgt_id FROM pgtrickle.pgt_stream_tables"
    " WHERE (pgt_id, schedule, schedule_timezone, tier) = (%s, %s, %s, %s) FOR UPDATE SKIP LOCKED)"
)
STORE = (
    f"UPDATE pgtrickle.pgt_stream_tables SET next_due_at = %s WHERE next_due_at IS DISTINCT FROM %s AND pgt_id = {ROW}"
)
FAIL = f"UPDATE pgtrickle.pgt_stream_tables SET last_error = %s WHERE last_error IS DISTINCT FROM %s AND pgt_id = {ROW}"


def work_out_moments(connection: psycopg.Connection) -> None:
    """Store the next moment of every cron schedule that is new, altered, or whose last moment was served.

    A schedule in a time zone that this machine does not know is never due; its stream table says so as its error.
    """
    for *schedule, expression, after, nth in connection.execute(AWAITED).fetchall():
        try:
            moment = nth_moment(expression, schedule[2], after, nth)
        except ConfigError as error:
            message = f"{error} {error.hint}"
            connection.execute(FAIL.encode(), (message, message, *schedule))
        else:
            connection.execute(STORE.encode(), (moment, moment, *schedule))
