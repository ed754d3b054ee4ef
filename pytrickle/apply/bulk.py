"""The staging table: where Spark writes what is too large to pass through this process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from secrets import token_hex

import psycopg

from pytrickle.apply.staging import run
from pytrickle.errors import RefreshConflict
from pytrickle.plan.dialect import quote
from pytrickle.plan.refresh_plan import RefreshPlan, Stage, input_layout
from pytrickle.plan.zset import WEIGHT

STAGING_LOCK = 0x70677473


@contextmanager
def staging_table(connection: psycopg.Connection, plan: RefreshPlan, pgt_id: int) -> Iterator[str | None]:
    """Hold the staging table of a stream table, if its plan needs one, until the staged rows are applied.

    Raise RefreshConflict when another refresher holds it: it would find its own rows replaced by these.
    """
    if not plan.bulk:
        yield None
        return
    row = connection.execute("SELECT pg_try_advisory_lock(%s, %s)", (STAGING_LOCK, pgt_id)).fetchone()
    if row is None or not row[0]:
        raise RefreshConflict("Another refresher is staging rows for the same stream table.")
    try:
        yield create_staging(connection, plan, pgt_id)
    finally:
        with suppress(psycopg.OperationalError):
            connection.execute("SELECT pg_advisory_unlock(%s, %s)", (STAGING_LOCK, pgt_id))


def create_staging(connection: psycopg.Connection, plan: RefreshPlan, pgt_id: int) -> str:
    """Create an empty, unlogged staging table for a stream table; drop those that failed refreshes left.

    Its columns are those that the plan stages, under their staged names. Its name is new each time: executors may
    outlive the refresher that started them, and must not write among the rows of another refresh.
    """
    connection.execute("SELECT pgtrickle.drop_staging(%s)", (pgt_id,))
    name = f"pgtrickle_changes.staging_{pgt_id}_{token_hex(8)}"
    run(connection, f"CREATE UNLOGGED TABLE {name} AS\n{_layout(plan)}\nWITH NO DATA")
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
