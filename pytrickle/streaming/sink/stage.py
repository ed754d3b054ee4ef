"""Staging: each task of a batch copies its rows into an unlogged table of its own.

An attempt that Spark gives up leaves a table that nobody reads, so a second attempt adds nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import psycopg
import pyarrow as pa
from psycopg import sql
from pyspark import TaskContext

from pytrickle.streaming.sink.text import written

SCHEMA = "pgtrickle_sinks"
_QUERY = "sql.streaming.queryId"
_CREATE = "SELECT pgtrickle.create_sink_staging(%s::pg_catalog.regclass, %s, %s, %s)"


@dataclass(frozen=True, slots=True)
class Target:
    """Where a sink writes: the table, and the name under which its batches are counted there.

    The column `partition` says of which partition a row is; the table need not have it.
    """

    dsn: str = field(repr=False)
    table: str
    sink: str
    columns: tuple[str, ...]
    partition: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """What one task staged: the table, none for no rows, its rows, and the query that runs it, where Spark tells."""

    staging: str | None
    rows: int
    query: str | None


def stage(target: Target, batches: Iterable[pa.RecordBatch]) -> Part:
    """Copy record batches of the target's columns into a new staging table; raise psycopg's errors."""
    context = TaskContext.get()
    query = context.getLocalProperty(_QUERY) if context else None
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return Part(None, 0, query)
    with session(target.dsn) as connection, connection.cursor() as cursor:
        asked = (target.table, target.sink, list(target.columns), target.partition)
        ((staging,),) = cursor.execute(_CREATE, asked).fetchall()
        rows = first.num_rows
        statement = sql.SQL("COPY {table} FROM STDIN (FORMAT csv)").format(table=sql.Identifier(SCHEMA, staging))
        with cursor.copy(statement) as copy:
            copy.write(written(first))
            for batch in filled:
                copy.write(written(batch))
                rows += batch.num_rows
    return Part(staging, rows, query)


def session(dsn: str) -> psycopg.Connection:
    """Open an autocommit connection in which moments without a zone are in UTC."""
    connection = psycopg.connect(dsn, autocommit=True, application_name="pytrickle/sink", client_encoding="utf8")
    connection.execute("SET TimeZone TO 'UTC'; SET DateStyle TO 'ISO, YMD'")
    return connection
