"""Rows on their way: into typed temporary tables, from there into the aggregate state, and into the stream table."""

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from pytrickle.compute.staged import Copied
from pytrickle.database import filled, settle, trusted
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.apply_plan import AFTER, BEFORE, Body, Replacement, StatePlan, Target

BLOCK = 1024 * 1024
Text = str | sql.Composed
STAGED = "INSERT INTO pg_temp.{table}\n{rows}"


def create_like(connection: psycopg.Connection, name: str, query: Text) -> None:
    """Create a temporary table with the columns, types and collations of a query, for this transaction only."""
    template = "CREATE TEMP TABLE {name} ON COMMIT DROP AS {query} WITH NO DATA"
    run(connection, filled(template, name=sql.Identifier(name), query=query))


def create_kept(connection: psycopg.Connection, name: str, query: str, kind: str = "TABLE") -> None:
    """Create an empty table that outlives the transaction: it is the catalog owner's, whoever refreshes."""
    run(connection, filled("CREATE {kind} {name} AS\n{query}\nWITH NO DATA", kind=kind, name=name, query=query))
    connection.execute("SELECT pgtrickle_private.hand_over(%s::regclass)", (name,))


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
    source = sql.Identifier(*staging.split("."))
    found = connection.execute(filled("SELECT * FROM {source} LIMIT 0", source=source)).description or ()
    staged = [column.name for column in found]
    targets = sql.SQL(", ").join(sql.Identifier(columns.get(column, column)) for column in staged)
    items = sql.SQL(", ").join(map(sql.Identifier, staged))
    template = "INSERT INTO {table} ({targets}) SELECT {items} FROM {source}"
    table = sql.Identifier("pg_temp", name)
    run(connection, filled(template, table=table, targets=targets, items=items, source=source))
    run(connection, filled("DROP TABLE {source}", source=source))


def _copy_rows(connection: psycopg.Connection, name: str, rows: pa.Table) -> None:
    """Load an Arrow table of text, column by name; PostgreSQL parses the text."""
    buffer = io.BytesIO()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(rows, buffer, options)
    _copy_csv(connection, name, buffer, rows.column_names)


def _copy_csv(connection: psycopg.Connection, name: str, data: IO[bytes], columns: Sequence[str]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    template = "COPY {table} ({names}) FROM STDIN (FORMAT csv)"
    statement = filled(template, table=sql.Identifier("pg_temp", name), names=names)
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
    settle(connection, (f"SET LOCAL {switch} = off" for switch in switches))
    yield
    settle(connection, (f"SET LOCAL {switch} TO DEFAULT" for switch in switches))


def run(connection: psycopg.Connection, text: Text) -> int:
    """Execute SQL that we wrote and return the number of rows it touched."""
    return connection.execute(trusted(text) if isinstance(text, str) else text).rowcount


def create_body(connection: psycopg.Connection, body: Body) -> None:
    """Create the empty hidden table of which the stream table shows a part, and its index."""
    run(connection, filled("DROP TABLE IF EXISTS {body}", body=body.table))
    create_kept(connection, body.table, body.layout)
    if body.index:
        run(connection, body.index)


def create_state(connection: psycopg.Connection, state: StatePlan) -> None:
    """Create the empty table of the aggregate state, and its index."""
    run(connection, filled("DROP TABLE IF EXISTS {state}", state=state.table))
    create_kept(connection, state.table, state.layout)
    if state.index:
        run(connection, state.index)


def stage_like_state(connection: psycopg.Connection, state: StatePlan, name: str) -> None:
    """Create an empty temporary table with the columns of the state."""
    create_like(connection, name, filled("SELECT * FROM {state}", state=state.table))


def fill_state(connection: psycopg.Connection, state: StatePlan) -> None:
    """Fill a fresh state from the staged increments."""
    run(connection, state.insert_new)
    _finish(connection, state)


def accumulate(connection: psycopg.Connection, state: StatePlan) -> None:
    """Merge the staged increments into the state and stage the difference of the touched groups' final rows."""
    create_like(connection, BEFORE, state.touched)
    create_like(connection, AFTER, state.touched)
    with index_lookups(connection):
        run(connection, filled(STAGED, table=BEFORE, rows=state.touched))
        run(connection, state.merge)
        run(connection, state.insert_new)
        _finish(connection, state)
        run(connection, filled(STAGED, table=AFTER, rows=state.touched))
    run(connection, state.stage_differences)


def _finish(connection: psycopg.Connection, state: StatePlan) -> None:
    """Take in the values that were computed anew, and drop groups without rows."""
    if state.take_recomputed:
        run(connection, state.take_recomputed)
    if negative := _number(connection, state.count_negative):
        raise StreamTableDrifted(f"The aggregate state {state.table} counts fewer rows than none in {negative} groups.")
    if state.delete_empty:
        run(connection, state.delete_empty)


def stage_replacement(connection: psycopg.Connection, target: Target, replacement: Replacement) -> None:
    """Stage what turns the stored rows into those computed anew; an empty table needs no comparison."""
    row = connection.execute(trusted(target.has_rows)).fetchone()
    run(connection, replacement.stage_differences if row and row[0] else replacement.stage_all)


def apply_changes(connection: psycopg.Connection, target: Target) -> tuple[int, int]:
    """Apply the staged changes and return (rows inserted, rows deleted).

    Raise StreamTableDrifted when a row to delete is not there: then the stream table is not what the last refresh
    left, and nothing may be built on it.
    """
    expected = _number(connection, target.count_deleted)
    with index_lookups(connection):
        deleted = run(connection, target.delete) if expected else 0
    if deleted != expected:
        raise StreamTableDrifted(
            f"{target.name} lacks {expected - deleted} of the {expected} rows that should be deleted."
        )
    return run(connection, target.insert), deleted


def _number(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(trusted(query)).fetchone()
    return int(row[0]) if row else 0
