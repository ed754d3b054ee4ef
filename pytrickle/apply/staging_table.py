"""The staging table: where Spark writes what is too large to pass through this process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

import psycopg

from pytrickle.apply.staged_rows import create_kept
from pytrickle.errors import RefreshConflict
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import RefreshPlan, Stage, input_layout
from pytrickle.plan.sql.dialect import quote

STAGING_LOCK = 0x70677473
# Anybody may take an advisory lock: only one that is held by a role that may refresh counts.
HELD = """
SELECT EXISTS (
    SELECT FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)
    WHERE l.locktype = 'advisory' AND l.database = a.datid AND a.datname = current_database()
        AND (l.classid, l.objid) = (%s::oid, %s::oid) AND l.granted AND a.pid <> pg_backend_pid()
        AND pg_has_role(a.usesysid, pgtrickle.catalog_owner(), 'USAGE'))
"""


@contextmanager
def staging_table(connection: psycopg.Connection, plan: RefreshPlan, pgt_id: int) -> Iterator[str | None]:
    """Hold the staging table of a stream table, if its plan needs one, until the staged rows are applied.

    Raise RefreshConflict when another refresher holds it: it would find its own rows replaced by these.
    """
    if not plan.bulk:
        yield None
        return
    if not _take(connection, pgt_id):
        raise RefreshConflict("Another refresher is staging rows for the same stream table.")
    try:
        yield create_staging(connection, plan, pgt_id)
    finally:
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", (STAGING_LOCK, pgt_id))


def _take(connection: psycopg.Connection, pgt_id: int) -> bool:
    lock = (STAGING_LOCK, pgt_id)
    taken = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", lock).fetchone()
    held = connection.execute(HELD, lock).fetchone() if taken and not taken[0] else None
    return bool(taken and taken[0]) or bool(held and not held[0])


def create_staging(connection: psycopg.Connection, plan: RefreshPlan, pgt_id: int) -> str:
    """Create an empty, unlogged staging table for a stream table; drop those that failed refreshes left.

    Its columns are those that the plan stages, under their staged names. Its name is new each time: executors may
    outlive the refresher that started them, and must not write among the rows of another refresh.
    """
    connection.execute("SELECT pgtrickle.drop_staging(%s)", (pgt_id,))
    name = f"pgtrickle_changes.staging_{pgt_id}_{token_hex(8)}"
    create_kept(connection, name, _layout(plan), "UNLOGGED TABLE")
    return name


def _layout(plan: RefreshPlan) -> str:
    grouped = plan.shape.grouped
    match plan.stage:
        case Stage.INPUT:
            return input_layout(plan.shape)
        case Stage.STATE | Stage.INCREMENTS if grouped is not None:
            columns = ", ".join([*grouped.keys, *(column.name for column in grouped.merged)])
            return f"SELECT {columns} FROM (\n{grouped.layout(input_layout(plan.shape))}\n) AS s"
        case _:
            definition = plan.shape.definition
            items = [f"{quote(name)} AS r{i}" for i, (name, _) in enumerate(definition.columns)]
            weighted = bool(plan.join) or (plan.read is not None and plan.read.weighted)
            items += [f"CAST(NULL AS bigint) AS {WEIGHT}"] if weighted else []
            return f"SELECT {', '.join(items)} FROM {quote(definition.schema)}.{quote(definition.name)}"
