"""Accumulation: increments are added to the aggregate state; touched groups' final rows become changes."""

import psycopg

from pytrickle.apply.rows import Storage, difference, stage_changes
from pytrickle.apply.staged_rows import INCREMENTS, KEYED, create_kept, create_like, index_lookups, run
from pytrickle.errors import StreamTableDrifted
from pytrickle.plan.postgres.aggregate import Merge
from pytrickle.plan.postgres.aggregate_state import Grouped, row_hash
from pytrickle.plan.sql.dialect import quote

BEFORE = "pgt_before"
AFTER = "pgt_after"


def state_table(pgt_id: int) -> str:
    """Name the state table of a stream table."""
    return f"pgtrickle_state.state_{pgt_id}"


def create_state(connection: psycopg.Connection, pgt_id: int, grouped: Grouped, rows: str) -> None:
    """Create the empty state table; `rows` compiles the rows below the aggregate, for their types."""
    state = state_table(pgt_id)
    run(connection, f"DROP TABLE IF EXISTS {state}")
    create_kept(connection, state, grouped.layout(rows))
    if grouped.hashed:
        run(connection, f"CREATE INDEX {quote(f'state_{pgt_id}_key')} ON {state} ({row_hash('', grouped.hashed)})")


def stage_like_state(connection: psycopg.Connection, pgt_id: int, name: str) -> None:
    """Create an empty temporary table with the columns of the state."""
    create_like(connection, name, f"SELECT * FROM {state_table(pgt_id)}")


def fill_state(connection: psycopg.Connection, pgt_id: int, grouped: Grouped, keyed: bool) -> str:
    """Fill a fresh state from the staged increments and return the query for the whole final content."""
    _insert_new(connection, pgt_id, grouped)
    if keyed:
        run(connection, _take_recomputed(pgt_id, grouped))
    _drop_empty(connection, pgt_id, grouped)
    return grouped.final(state_table(pgt_id))


def accumulate(connection: psycopg.Connection, pgt_id: int, grouped: Grouped, storage: Storage, keyed: bool) -> None:
    """Merge the staged increments into the state and stage the difference of the touched groups' final rows."""
    touched = (
        f"(SELECT s.* FROM pg_temp.{INCREMENTS} AS i JOIN {state_table(pgt_id)} AS s ON {grouped.match('s', 'i')}) AS s"
    )
    final = grouped.final(touched)
    create_like(connection, BEFORE, final)
    create_like(connection, AFTER, final)
    with index_lookups(connection):
        run(connection, f"INSERT INTO pg_temp.{BEFORE}\n{final}")
        _merge(connection, pgt_id, grouped)
        _insert_new(connection, pgt_id, grouped)
        if keyed:
            run(connection, _take_recomputed(pgt_id, grouped))
        _drop_empty(connection, pgt_id, grouped)
        run(connection, f"INSERT INTO pg_temp.{AFTER}\n{final}")
    both = (f"SELECT * FROM pg_temp.{AFTER}", f"SELECT * FROM pg_temp.{BEFORE}")
    stage_changes(connection, storage, difference(storage, *both))


def _merge(connection: psycopg.Connection, pgt_id: int, grouped: Grouped) -> None:
    changes = ", ".join(f"{column.name} = {column.merged()}" for column in grouped.merged)
    run(
        connection,
        f"UPDATE {state_table(pgt_id)} AS s SET {changes} FROM pg_temp.{INCREMENTS} AS i "
        f"WHERE {grouped.match('s', 'i')}",
    )


def _insert_new(connection: psycopg.Connection, pgt_id: int, grouped: Grouped) -> None:
    state, columns = state_table(pgt_id), ", ".join(grouped.columns)
    items = ", ".join(
        f"pgtrickle.add_scales(NULL, i.{column.name})" if column.merge is Merge.SCALES else f"i.{column.name}"
        for column in grouped.state
    )
    keys = "".join(f"i.{key}, " for key in grouped.keys)
    run(
        connection,
        f"INSERT INTO {state} ({columns})\nSELECT {keys}{items} FROM pg_temp.{INCREMENTS} AS i "
        f"WHERE NOT EXISTS (SELECT FROM {state} AS s WHERE {grouped.match('s', 'i')})",
    )


def _take_recomputed(pgt_id: int, grouped: Grouped) -> str:
    values = ", ".join(f"{column.name} = k.{column.name}" for column in grouped.values)
    return f"UPDATE {state_table(pgt_id)} AS s SET {values} FROM pg_temp.{KEYED} AS k WHERE {grouped.match('s', 'k')}"


def _drop_empty(connection: psycopg.Connection, pgt_id: int, grouped: Grouped) -> None:
    state = state_table(pgt_id)
    touched = f"FROM pg_temp.{INCREMENTS} AS i JOIN {state} AS s ON {grouped.match('s', 'i')}"
    negative = connection.execute(f"SELECT count(*) {touched} WHERE s.pgt_rows < 0").fetchone()
    if negative and negative[0]:
        raise StreamTableDrifted(f"The aggregate state {state} counts fewer rows than none in {negative[0]} groups.")
    if grouped.aggregate.grouped:
        run(
            connection,
            f"DELETE FROM {state} AS s USING pg_temp.{INCREMENTS} AS i "
            f"WHERE s.pgt_rows = 0 AND {grouped.match('s', 'i')}",
        )
