"""Staged rows on their way into a table: from Arrow, from a copy, or from the staging table that Spark filled."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import IO, TYPE_CHECKING

import psycopg
from psycopg import sql

from pytrickle.apply.statements import run
from pytrickle.compute.staged import Copied
from pytrickle.database import filled
from pytrickle.plan.apply_plan import PART

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1024 * 1024
# Spark may run a task again that had committed, or two of a kind at once: one transaction counts for each part.
WRITERS = "SELECT min(xmin::text) FROM {source} GROUP BY {part}"
# A task that Spark has given up may still write to it, or the server vacuum it: what cannot be dropped at once, the
# next refresh that stages rows drops.
DISCARD = """
DO $pgt$
BEGIN
    LOCK TABLE {source} IN ACCESS EXCLUSIVE MODE NOWAIT;
    DROP TABLE {source};
EXCEPTION WHEN lock_not_available THEN NULL;
END
$pgt$
"""


def load_rows(
    connection: psycopg.Connection, table: str, rows: pa.Table | Copied | str, columns: Mapping[str, str]
) -> int:
    """Load staged rows into a table, from Arrow, from a copy or from the staging table; return how many they are.

    `table` is its quoted name. `columns` maps the staged columns to those of the table; others keep their names.
    """
    if isinstance(rows, str):
        return _move_rows(connection, table, rows, columns)
    if isinstance(rows, Copied):
        return _copy_csv(connection, table, rows.data, [columns.get(column, column) for column in rows.columns])
    renamed = rows.rename_columns([columns.get(column, column) for column in rows.column_names])
    return _copy_rows(connection, table, renamed)


def _move_rows(connection: psycopg.Connection, table: str, staging: str, columns: Mapping[str, str]) -> int:
    source = sql.Identifier(*staging.split("."))
    # A plan that is kept would be of the columns that a table of this name once had.
    found = connection.execute(filled("SELECT * FROM {source} LIMIT 0", source=source), prepare=False).description or ()
    staged = [column.name for column in found if column.name != PART]
    targets = sql.SQL(", ").join(sql.Identifier(columns.get(column, column)) for column in staged)
    items = sql.SQL(", ").join(map(sql.Identifier, staged))
    writers = sql.Literal([writer for (writer,) in connection.execute(filled(WRITERS, part=PART, source=source))])
    template = "INSERT INTO {table} ({targets}) SELECT {items} FROM {source} WHERE xmin = ANY ({writers}::xid[])"
    moved = run(connection, filled(template, table=table, targets=targets, items=items, source=source, writers=writers))
    run(connection, filled(DISCARD, source=source))
    return moved


def _copy_rows(connection: psycopg.Connection, table: str, rows: pa.Table) -> int:
    """Load an Arrow table of text, column by name; PostgreSQL parses the text."""
    # Imported where it is needed: without Spark there are no such tables, and every process would wait for it.
    from pyarrow import csv

    buffer = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(rows, buffer, options)
    return _copy_csv(connection, table, buffer, rows.column_names)


def _copy_csv(connection: psycopg.Connection, table: str, data: IO[bytes], columns: Sequence[str]) -> int:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    template = "COPY {table} ({names}) FROM STDIN (FORMAT csv)"
    statement = filled(template, table=table, names=names)
    data.seek(0)
    with connection.cursor() as cursor:
        with cursor.copy(statement) as copy:
            while block := data.read(BLOCK):
                copy.write(block)
        return cursor.rowcount
