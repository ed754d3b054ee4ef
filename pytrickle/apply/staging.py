"""Staging: the rows that Spark computed, loaded into typed temporary tables of the write transaction."""

import io

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

CHANGES = "pgt_changes"
CONTENT = "pgt_content"
INPUT = "pgt_input"
INCREMENTS = "pgt_increments"
KEYED = "pgt_keyed"


def create_like(connection: psycopg.Connection, name: str, query: str) -> None:
    """Create a temporary table with the columns, types and collations of a query, for this transaction only."""
    statement = sql.SQL("CREATE TEMP TABLE {} ON COMMIT DROP AS {} WITH NO DATA")
    connection.execute(statement.format(sql.Identifier(name), trusted(query)))


def copy_rows(connection: psycopg.Connection, name: str, rows: pa.Table) -> None:
    """Load an Arrow table of text into a temporary table, column by name; PostgreSQL parses the text."""
    buffer = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(rows, buffer, options)
    columns = sql.SQL(", ").join(sql.Identifier(column) for column in rows.column_names)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(sql.Identifier("pg_temp", name), columns)
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(buffer.getvalue())


def trusted(text: str) -> sql.SQL:
    """Pass on SQL that the planner or PostgreSQL itself wrote; it is never formatted again."""
    return sql.SQL(text)


def run(connection: psycopg.Connection, text: str) -> int:
    """Execute such SQL and return the number of rows it touched."""
    return connection.execute(trusted(text)).rowcount
