"""The staging table: where Spark writes what is too large to pass through this process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

import psycopg

from pytrickle.apply.statements import create_lasting
from pytrickle.errors import RefreshConflict
from pytrickle.plan.apply_plan import PART

STAGING_LOCK = 0x70677473
LAYOUT = "SELECT CAST(NULL AS integer) AS {part}, s.* FROM (\n{layout}\n) AS s"
# Anybody may take an advisory lock, so one counts only if a role that may refresh holds it.
HELD = """
SELECT EXISTS (
    SELECT FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
    WHERE l.locktype = 'advisory' AND l.database = a.datid AND a.datname = current_database()
        AND (l.classid, l.objid) = (%s::oid, %s::oid) AND l.granted AND a.pid <> pg_backend_pid()
        AND pg_has_role(a.usesysid, pgtrickle_private.catalog_owner(), 'USAGE'))
"""


@contextmanager
def staging_table(connection: psycopg.Connection, layout: str | None, pgt_id: int) -> Iterator[str | None]:
    """Hold the staging table of a stream table until the staged rows are applied; none without a layout.

    Raise RefreshConflict when another refresher holds it: it would find its own rows replaced by these.
    """
    if layout is None:
        yield None
        return
    if not _take(connection, pgt_id):
        raise RefreshConflict("Another refresher is staging rows for the same stream table.")
    try:
        yield create_staging(connection, layout, pgt_id)
    finally:
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", (STAGING_LOCK, pgt_id))


def _take(connection: psycopg.Connection, pgt_id: int) -> bool:
    lock = (STAGING_LOCK, pgt_id)
    taken = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", lock).fetchone()
    held = connection.execute(HELD, lock).fetchone() if taken and not taken[0] else None
    return bool(taken and taken[0]) or bool(held and not held[0])


def create_staging(connection: psycopg.Connection, layout: str, pgt_id: int) -> str:
    """Create an empty, unlogged staging table for a stream table; drop those that failed refreshes left.

    Its columns are those of the query `layout`, and PART. Its name is new each time: executors may outlive the
    refresher that started them, and must not write among the rows of another refresh.
    """
    connection.execute("SELECT pgtrickle_private.drop_staging(%s)", (pgt_id,))
    name = f"pgtrickle_changes.staging_{pgt_id}_{token_hex(8)}"
    create_lasting(connection, name, LAYOUT.format(part=PART, layout=layout), "UNLOGGED TABLE")
    return name
