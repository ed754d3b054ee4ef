"""Reading a plan without Spark: PostgreSQL computes it wholly, and few rows are copied faster than a job starts."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO

import psycopg

from pytrickle.compute.staged import Copied, Staged
from pytrickle.database import filled, settle, undone
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan

COPIED = "COPY (\n{query}\n) TO STDOUT (FORMAT csv)"
# Within the write transaction too: what a query calls could leave deferred triggers, which run as the refresher.
READ_ONLY = "SET TRANSACTION READ ONLY"
IN_MEMORY = 64 * 1024 * 1024


def read_directly(connection: psycopg.Connection, plan: RefreshPlan, settings: tuple[str, ...]) -> Staged:
    """Compute the rows that a plan stages within the connection's transaction, which is left as it was.

    The plan must be one that PostgreSQL computes wholly. Raises psycopg's errors.
    """

    def read(postgres_query: PostgresQuery) -> Copied:
        with undone(connection):
            settle(connection, (READ_ONLY, *settings, *plan.time_limit, *postgres_query.settings))
            return copied(connection, postgres_query)

    return _staged(plan, read)


def read_within(connection: psycopg.Connection, plan: RefreshPlan) -> Staged:
    """Compute the rows within the transaction that applies them.

    The settings of the stream table, and those of the plan, must have been made. Raises psycopg's errors.
    """
    return _staged(plan, lambda postgres_query: copied(connection, postgres_query))


def reset(settings: Iterable[str]) -> tuple[str, ...]:
    """Write statements that undo settings.

    >>> reset(["SET LOCAL jit = off"])
    ('SET LOCAL jit TO DEFAULT',)
    """
    names = dict.fromkeys(setting.split()[2] for setting in settings)
    return tuple(f"SET LOCAL {name} TO DEFAULT" for name in names)


def _staged(plan: RefreshPlan, read: Callable[[PostgresQuery], Copied]) -> Staged:
    if plan.read is None:
        raise TypeError("a plan whose joins are Spark's cannot be read directly")
    with ExitStack() as unless_complete:
        rows = unless_complete.enter_context(read(plan.read))
        keyed = unless_complete.enter_context(read(plan.keyed)) if plan.keyed else None
        kept = tuple(unless_complete.enter_context(read(each.read)) for each in plan.kept)
        unless_complete.pop_all()
        return Staged(rows, keyed, kept)


def copied(connection: psycopg.Connection, postgres_query: PostgresQuery) -> Copied:
    """Copy what a query returns."""
    data: IO[bytes] = SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 - closed once its rows are staged
    try:
        with (
            connection.cursor() as cursor,
            cursor.copy(filled(COPIED, query=postgres_query.consolidated)) as copy,
        ):
            for block in copy:
                data.write(block)
    except BaseException:
        data.close()
        raise
    return Copied((*postgres_query.columns, WEIGHT) if postgres_query.weighted else postgres_query.columns, data)
