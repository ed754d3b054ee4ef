"""Staging: the rows that were computed, loaded into typed temporary tables of the write transaction."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from pytrickle.compute.staged import Copied
from pytrickle.database import trusted

BLOCK = 1024 * 1024


def create_like(connection: psycopg.Connection, name: str, query: str) -> None:
    """Create a temporary table with the columns, types and collations of a query, for this transaction only."""
    statement = sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS {} WITH NO DATA")
    connection.execute(statement.format(sql.Identifier(name), trusted(query)))


def create_kept(connection: psycopg.Connection, name: str, query: str, kind: str = "TABLE") -> None:
    """Create an empty table that outlives the transaction: it is the catalog owner's, whoever refreshes."""
    run(connection, f"CREATE {kind} {name} AS\n{query}\nWITH NO DATA")
    connection.execute("SELECT pgtrickle.hand_over(%s::regclass)", (name,))


def load_rows(
    connection: psycopg.Connection, name: str, rows: pa.Table | Copied | str, columns: Mapping[str, str]
) -> None:
    """Load staged rows into a temporary table, from Arrow, from a copy or from the staging table.

    `columns` maps the staged columns to those of the temporary table; others keep their names.
    """
    if isinstance(rows, str):
        _move_rows(connection, name, rows, columns)
    elif isinstance(rows, Copied):
        _copy_csv(connection, name, rows.data, [columns.get(column, column) for column in rows.columns])
    else:
        _copy_rows(connection, name, rows.rename_columns([columns.get(column, column) for column in rows.column_names]))


def _move_rows(connection: psycopg.Connection, name: str, staging: str, columns: Mapping[str, str]) -> None:
    found = connection.execute(f"SELECT * FROM {staging} LIMIT 0".encode()).description or ()
    staged = [column.name for column in found]
    targets = sql.SQL(", ").join(sql.Identifier(columns.get(column, column)) for column in staged)
    items = sql.SQL(", ").join(map(sql.Identifier, staged))
    statement = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
    table = sql.Identifier(*staging.split("."))
    connection.execute(statement.format(sql.Identifier("pg_temp", name), targets, items, table))
    connection.execute(sql.SQL("DROP TABLE {}").format(table))


def _copy_rows(connection: psycopg.Connection, name: str, rows: pa.Table) -> None:
    """Load an Arrow table of text, column by name; PostgreSQL parses the text."""
    buffer = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(rows, buffer, options)
    _copy_csv(connection, name, buffer, rows.column_names)


def _copy_csv(connection: psycopg.Connection, name: str, data: IO[bytes], columns: Sequence[str]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier("pg_temp", name), names)
    data.seek(0)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        while block := data.read(BLOCK):
            copy.write(block)


@contextmanager
def index_lookups(connection: psycopg.Connection) -> Iterator[None]:
    """Have joins follow the row hash's index, whatever a planner without statistics would guess.

    Before the first ANALYZE it takes an indexed expression for 200 values and prefers to read the whole table.
    """
    switches = ("enable_hashjoin", "enable_mergejoin", "enable_seqscan")
    for switch in switches:
        run(connection, f"SET LOCAL {switch} = off")
    yield
    for switch in switches:
        run(connection, f"SET LOCAL {switch} TO DEFAULT")


def run(connection: psycopg.Connection, text: str) -> int:
    """Execute such SQL and return the number of rows it touched."""
    return connection.execute(trusted(text)).rowcount
