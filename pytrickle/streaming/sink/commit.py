"""Committing a batch: staged rows, the number of the batch and the watermark, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from decimal import Decimal
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from pytrickle.database import AGAIN_SAFE, USERS_PATH, connect, filled, translate_errors
from pytrickle.errors import PytrickleError, StagingFailed
from pytrickle.streaming.sink.stage import SCHEMA, Part, Target
from pytrickle.watermarks import Generator, Loading, PartitionedLoading, Tracker, load
from pytrickle.watermarks.arrays import numpy

_CLAIM = "SELECT pgtrickle.claim_sink_batch(%s::pg_catalog.regclass, %s, %s, %s, %s, %s)"
_DROP = "SELECT pgtrickle.drop_sink_staging(%s::pg_catalog.regclass, %s)"
_STAGED = "SELECT row_count, row_digest FROM pgtrickle.staged_rows(%s)"
_EVENT_TIME = "SELECT pgtrickle.staged_event_time(%s::pg_catalog.regclass, %s)"
_HAS_COLUMN = (
    "SELECT EXISTS (SELECT FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = %s::pg_catalog.regclass"
    " AND a.attname = %s AND NOT a.attisdropped)"
)
# PostgreSQL's own form of a timestamptz: microseconds since 2000, in eight bytes.
_MOMENT = ">i8"
_EPOCH = "2000-01-01"


def commit_batch(
    target: Target, batch_id: int, parts: Sequence[Part], generator: Generator | Tracker, event_time: str | None
) -> bool:
    """Load a batch and advance the watermark unless that was committed before; return whether it was done now.

    The generator, or the tracker of the target's partitions, sees the column `event_time` of the rows, if there is one,
    as the moments that the table's declared event time makes of it. Raises StagingFailed where staged rows were lost,
    InvalidArgument for a batch out of order, of another query, or one that comes again with other rows; then nothing
    was done, and the same batch may come again.
    """
    staged = [part for part in parts if part.rows]
    query = next((part.query for part in parts if part.query), None)
    with _session(target) as connection, translate_errors():
        with _load(connection, target, generator) as loading:
            digest = sum((_digest(connection, target, part) for part in staged), Decimal(0))
            rows = sum(part.rows for part in staged)
            claimed = _value(connection, _CLAIM, target.table, target.sink, query, batch_id, rows, digest)
            if claimed:
                if event_time is not None:
                    _show(connection, target, staged, event_time, loading)
                names = _names(connection, target)
                for part in staged:
                    _move(connection, target, part, names)
        # The batch is committed: Spark must hear of nothing else. The next batch clears up too.
        with suppress(PytrickleError), translate_errors():
            connection.execute(_DROP, (target.table, target.sink))
    return bool(claimed)


def drop_staged(target: Target) -> None:
    """Drop what was staged for a batch that will not be committed."""
    with _session(target) as connection, translate_errors():
        connection.execute(_DROP, (target.table, target.sink))


def _load(
    connection: psycopg.Connection, target: Target, generator: Generator | Tracker
) -> AbstractContextManager[Loading] | AbstractContextManager[PartitionedLoading]:
    if isinstance(generator, Tracker):
        assert target.partition is not None
        return load(connection, target.table, generator=generator, partition=target.partition)
    return load(connection, target.table, generator=generator)


def _show(
    connection: psycopg.Connection,
    target: Target,
    staged: Sequence[Part],
    event_time: str,
    loading: Loading | PartitionedLoading,
) -> None:
    """Show the event times of staged rows to the generator, or those of each partition to the tracker."""
    moment = _value(connection, _EVENT_TIME, target.table, event_time)
    for part in staged:
        for name, times in _event_times(connection, part, moment, target.partition):
            if isinstance(loading, PartitionedLoading):
                loading.observe_batch(name, times)
            else:
                loading.generator.observe_batch(times)


def _session(target: Target) -> psycopg.Connection:
    """Open a session that finds names as the loader does: its table, and what the triggers on that name."""
    connection = connect(target.dsn, role="sink")
    with translate_errors():
        connection.execute("SET search_path TO DEFAULT; SET TimeZone TO 'UTC'")
    return connection


def _digest(connection: psycopg.Connection, target: Target, part: Part) -> Decimal:
    """Return what tells the staged rows from others, whatever their order; raise StagingFailed if some are lost."""
    ((found, digest),) = connection.execute(_STAGED, (part.staging,)).fetchall()
    # PostgreSQL empties unlogged tables when it recovers from a crash.
    if found != part.rows:
        raise StagingFailed(f"Of {part.rows} staged rows for {target.table} {found} are left.")
    return Decimal(digest)


def _names(connection: psycopg.Connection, target: Target) -> sql.Composed:
    """Return the columns that the table has: of which partition a row is it may not keep."""
    kept = target.partition is None or _value(connection, _HAS_COLUMN, target.table, target.partition)
    columns = (name for name in target.columns if kept or name != target.partition)
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _move(connection: psycopg.Connection, target: Target, part: Part, names: sql.Composed) -> None:
    template = "INSERT INTO {table} ({names}) SELECT {names} FROM {staging}"
    table = _relation(connection, target)
    connection.execute(filled(template, table=table, names=names, staging=_staging(part)))


def _relation(connection: psycopg.Connection, target: Target) -> sql.SQL:
    """Return the table as PostgreSQL itself writes it, qualified and quoted as needed."""
    return sql.SQL(_value(connection, "SELECT %s::pg_catalog.regclass::pg_catalog.text", target.table))


def _staging(part: Part) -> sql.Identifier:
    return sql.Identifier(SCHEMA, part.staging or "")


def _event_times(
    connection: psycopg.Connection, part: Part, moment: str, partition: str | None
) -> Iterator[tuple[str, Any]]:
    """Yield each partition with the event times of its staged rows as a column, exactly as PostgreSQL has them.

    Without partitions all rows are of one. An event time that is NULL counts as infinite.

    What makes them moments finds names in PostgreSQL itself; the table's triggers come next, by the loader's path.
    """
    np = numpy()
    connection.execute(AGAIN_SAFE)
    # One value for all rows: what COPY sends arrives row by row, which takes far longer.
    template = (
        "SELECT {name}, string_agg(timestamptz_send(COALESCE({moment}, '-infinity')), '') FROM {staging} AS s"
        " GROUP BY 1"
    )
    query = filled(template, name=_name_of(partition), moment=moment, staging=_staging(part))
    found = connection.cursor(binary=True).execute(query).fetchall()
    connection.execute(USERS_PATH)
    for name, moments in found:
        rows = np.frombuffer(moments, dtype=_MOMENT).astype("int64")
        infinite = (rows == np.iinfo("int64").min) | (rows == np.iinfo("int64").max)
        times = np.datetime64(_EPOCH, "us") + np.where(infinite, 0, rows).astype("timedelta64[us]")
        yield name, np.where(infinite, np.datetime64("NaT", "us"), times)


def _name_of(partition: str | None) -> sql.Composable:
    """Write the name of the partition of a staged row `s`; rows without one make up a partition of their own."""
    if partition is None:
        return sql.SQL("''::text")
    return filled("COALESCE(s.{column}::text, '')", column=sql.Identifier(partition))


def _value(connection: psycopg.Connection, query: LiteralString, *parameters: object) -> Any:
    ((value,),) = connection.execute(query, parameters).fetchall()
    return value
