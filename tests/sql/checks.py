"""What the SQL tests ask of a database: contents of change buffers, relations at a cut, refusals."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

Rows = list[tuple[Any, ...]]


def create(db: Database, query: str, name: str = "s", **options: object) -> int:
    """Create a stream table and return its number."""
    arguments = "".join(f", {option} => %s" for option in options)
    number = db.value(f"SELECT pgtrickle.create_stream_table(%s, %s{arguments})", name, query, *options.values())
    assert isinstance(number, int)
    return number


def buffer_of(db: Database, source: str) -> str:
    """Name of the change buffer of ``source``."""
    name = db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s::regclass", source)
    assert isinstance(name, str)
    return name


def logged(db: Database, source: str, columns: str) -> Rows:
    """Captured changes as (weight, columns ...), consolidated: what nets to zero is left out."""
    return db.execute(
        f"SELECT sum(pgt_weight)::int, {columns} FROM {buffer_of(db, source)} "
        f"GROUP BY {columns} HAVING sum(pgt_weight) <> 0 ORDER BY {columns}, 1"
    )


def remember(db: Database, source: str) -> None:
    """Keep the present contents of ``source`` for ``assert_replays``."""
    db.execute(f"CREATE TABLE remembered AS SELECT * FROM {source}")


def replay_difference(source: str, buffer: str, columns: str) -> str:
    """Query for what the remembered rows plus the captured changes have more or less than the present rows."""
    return (
        f"SELECT sum(w), {columns} FROM ("
        f"  SELECT 1 AS w, {columns} FROM remembered"
        f"  UNION ALL SELECT pgt_weight, {columns} FROM {buffer}"
        f"  UNION ALL SELECT -1, {columns} FROM {source}) AS z GROUP BY {columns} HAVING sum(w) <> 0"
    )


def assert_replays(db: Database, source: str, columns: str) -> None:
    """The remembered rows plus the captured changes are the present rows, as multisets."""
    assert db.execute(replay_difference(source, buffer_of(db, source), columns)) == []


def replays_each(db: Database, source: str, columns: str, changes: dict[str, str]) -> dict[str, Rows]:
    """Try each change by itself, rolled back; return the differences of those that do not replay."""
    query = replay_difference(source, buffer_of(db, source), columns)
    connection = db.connect(autocommit=False)
    wrong = {}
    for name, change in changes.items():
        connection.execute(change)
        difference = connection.execute(query).fetchall()
        connection.rollback()
        if difference:
            wrong[name] = difference
    return wrong


def at_cut(db: Database, source: str, columns: str, watermark: str) -> Rows:
    """Rows of ``source`` at the cut of a watermark: the present rows less the changes beyond the cut."""
    return db.execute(
        f"SELECT {columns} FROM ("
        f"  SELECT 1 AS w, {columns} FROM {source} UNION ALL"
        f"  SELECT -b.pgt_weight, {columns} FROM {buffer_of(db, source)} AS b, pgtrickle.pgt_watermark_history AS h"
        f"  WHERE h.source_relid = %s::regclass AND h.watermark = %s AND NOT "
        f"pgtrickle.covers(h.cut, b.pgt_xid, b.pgt_pos)"
        f") AS z GROUP BY {columns} HAVING sum(w) <> 0 ORDER BY {columns}",
        source,
        watermark,
    )


def decide(db: Database, name: str) -> dict[str, Any]:
    """The gating decision for a stream table, with the watermark that each cap belongs to in place of the cut."""
    keys = ("gating", "decision", "reason", "waiting_for", "effective_watermark", "caps")
    (row,) = db.execute(
        "SELECT g.gating, g.decision, g.reason, g.waiting_for, to_char(g.effective_watermark "
        "AT TIME ZONE 'UTC', 'HH24:MI'), g.caps "
        "FROM pgtrickle.pgt_stream_tables AS t, pgtrickle.gating_decision(t.pgt_id) AS g "
        "WHERE t.pgt_relid = %s::regclass",
        name,
    )
    decision = dict(zip(keys, row, strict=True))
    decision["caps"] = {
        db.value("SELECT %s::oid::regclass::text", source): db.value(
            "SELECT max(to_char(watermark AT TIME ZONE 'UTC', 'HH24:MI')) FROM pgtrickle.pgt_watermark_history "
            "WHERE source_relid = %s::oid AND to_jsonb(cut) = %s::text::jsonb",
            source,
            json.dumps(cap),
        )
        for source, cap in decision["caps"].items()
    }
    return decision


def pretend_refresh(db: Database, name: str) -> None:
    """Store what a refresh under the present gating decision would store, without moving any row."""
    db.execute(
        "WITH t AS (SELECT t.pgt_id, g.caps, g.effective_watermark, g.effective_batch "
        "  FROM pgtrickle.pgt_stream_tables AS t, pgtrickle.gating_decision(t.pgt_id) AS g "
        "  WHERE t.pgt_relid = %s::regclass), "
        "d AS (UPDATE pgtrickle.pgt_dependencies AS d SET frontier = CASE WHEN t.caps ? d.source_relid::oid::text "
        "  THEN jsonb_populate_record(NULL::pgtrickle.cut, t.caps -> "
        "d.source_relid::oid::text) ELSE pgtrickle.current_cut() END "
        "  FROM t WHERE t.pgt_id = d.pgt_id) "
        "UPDATE pgtrickle.pgt_stream_tables AS s SET status = 'ACTIVE', "
        "  effective_watermark = greatest(s.effective_watermark, t.effective_watermark), "
        "  effective_batch = greatest(s.effective_batch, t.effective_batch) FROM "
        "t WHERE t.pgt_id = s.pgt_id",
        name,
    )


@contextmanager
def refused(sqlstate: str, hint: str = "", constraint: str | None = None, message: str = "") -> Iterator[None]:
    """The block must raise this SQLSTATE with a hint; hint and message contain the given words."""
    with pytest.raises(psycopg.Error) as raised:
        yield
    diagnostics = raised.value.diag
    assert raised.value.sqlstate == sqlstate, raised.value
    assert diagnostics.message_hint, "an error without a hint"
    assert hint in diagnostics.message_hint
    assert message in (diagnostics.message_primary or "")
    if constraint is not None:
        assert diagnostics.constraint_name == constraint


def catalog_state(db: Database) -> Rows:
    """Everything a refused call must leave as it was: catalog rows, relations and triggers."""
    return [
        row
        for query in (
            "SELECT t::text FROM pgtrickle.pgt_stream_tables AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_dependencies AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_change_tracking AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_watermarks AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_watermark_history AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_watermark_groups AS t ORDER BY 1",
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_' ORDER BY 1",
            "SELECT tgrelid::regclass::text, tgname::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2",
        )
        for row in db.execute(query)
    ]
