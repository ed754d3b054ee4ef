"""ORDER BY ... LIMIT: the body below it is maintained in a hidden table, the stream table shows its first rows."""

import psycopg

from pytrickle.apply.rows import Storage, apply_changes, difference, stage_changes
from pytrickle.apply.staged_rows import CHANGES, create_kept, run
from pytrickle.plan.algebra.relation import Top
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.query.first_rows import shown_rows
from pytrickle.plan.sql.types import is_short


def body_table(pgt_id: int) -> str:
    """Name the table of all rows of which LIMIT shows the first."""
    return f"pgtrickle_state.body_{pgt_id}"


def create_body(connection: psycopg.Connection, shape: Analysis, body: Storage) -> None:
    """Create the empty body like the stream table, with an index in its order where one can be had."""
    shown = Storage.of(shape)
    run(connection, f"DROP TABLE IF EXISTS {body.table}")
    create_kept(connection, body.table, f"SELECT {shown.column_list()} FROM {shown.table}")
    top = shape.query.top if shape.query else None
    if top and top.indexed and all(is_short(type_name) for _, type_name in shape.definition.columns):
        run(connection, f"CREATE INDEX ON {body.table} ({', '.join(top.indexed)})")


def show_top(connection: psycopg.Connection, shape: Analysis, top: Top, body: Storage) -> tuple[int, int]:
    """Bring the shown rows in line with the body and return (rows inserted, rows deleted)."""
    shown = Storage.of(shape)
    run(connection, f"TRUNCATE pg_temp.{CHANGES}")
    after = shown_rows(top, body.table, shown.columns)
    stage_changes(connection, shown, difference(shown, after, f"SELECT {shown.column_list()} FROM {shown.table}"))
    return apply_changes(connection, shown)
