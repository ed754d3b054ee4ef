"""Merging staged rows: into the aggregate state where there is one, then as changes into the stream table."""

import psycopg

from pytrickle.apply.staged_rows import create_kept, create_like, index_lookups, run
from pytrickle.database import trusted
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.apply_plan import AFTER, BEFORE, Body, Replacement, StatePlan, Target


def create_body(connection: psycopg.Connection, body: Body) -> None:
    """Create the empty hidden table of which the stream table shows a part, and its index."""
    run(connection, f"DROP TABLE IF EXISTS {body.table}")
    create_kept(connection, body.table, body.layout)
    if body.index:
        run(connection, body.index)


def create_state(connection: psycopg.Connection, state: StatePlan) -> None:
    """Create the empty table of the aggregate state, and its indexes."""
    run(connection, f"DROP TABLE IF EXISTS {state.table}")
    create_kept(connection, state.table, state.layout)
    for index in state.indexes:
        run(connection, index)


def stage_like_state(connection: psycopg.Connection, state: StatePlan, name: str) -> None:
    """Create an empty temporary table with the columns of the state."""
    create_like(connection, name, f"SELECT * FROM {state.table}")


def fill_state(connection: psycopg.Connection, state: StatePlan) -> None:
    """Fill a fresh state from the staged increments."""
    run(connection, state.insert_new)
    _finish(connection, state)


def accumulate(connection: psycopg.Connection, state: StatePlan) -> None:
    """Merge the staged increments into the state and stage the difference of the touched groups' final rows."""
    create_like(connection, BEFORE, state.touched)
    create_like(connection, AFTER, state.touched)
    with index_lookups(connection):
        run(connection, f"INSERT INTO pg_temp.{BEFORE}\n{state.touched}")
        run(connection, state.merge)
        run(connection, state.insert_new)
        _finish(connection, state)
        run(connection, f"INSERT INTO pg_temp.{AFTER}\n{state.touched}")
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
