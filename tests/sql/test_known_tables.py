"""A refresher that knows the stream tables notices whatever is altered of them, and reads only that again."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from pytrickle.catalog import known_tables
from pytrickle.catalog.known_tables import KnownTables
from pytrickle.catalog.stream_table import StreamTable, stream_tables
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

POLL = timedelta(seconds=1)
NAMES = ("first", "second", "third")
# What is done, and whose rows it alters.
ALTERATIONS = {
    "INSERT INTO t VALUES (1)": set(),
    "SELECT pgtrickle.pause_stream_table('first')": {"first"},
    "SELECT pgtrickle.resume_stream_table('first')": {"first"},
    "ALTER TABLE second RENAME TO renamed": {"renamed"},
    "ALTER TABLE renamed RENAME TO second": {"second"},
    "CREATE SCHEMA s; ALTER TABLE third SET SCHEMA s": {"third"},
    "ALTER SCHEMA s RENAME TO s2": {"third"},
    "UPDATE pgtrickle.pgt_dependencies SET frontier = frontier WHERE pgt_id = 2": {"second"},
    "SELECT pgtrickle.reinitialize_stream_table('second')": {"second"},
    "SELECT pgtrickle.drain(0)": {"first", "second", "third"},
    "SELECT pgtrickle.resume_after_drain()": {"first", "second", "third"},
    "SELECT pgtrickle.drop_stream_table('first')": set(),
    "SELECT pgtrickle.create_stream_table('first', 'SELECT id + 7 AS id FROM t')": {"first"},
    "SELECT pgtrickle.alter_stream_table('first', schedule => '1 hour')": {"first"},
    # The clock decides about it from now on.
    "SELECT 1": {"first"},
    "SELECT pgtrickle.create_watermark_group('both', ARRAY['t', 'u'])": {"first", "second", "third"},
    "SELECT 2": {"first", "second", "third"},
    "SELECT pgtrickle.drop_watermark_group('both')": {"first", "second", "third"},
    "SELECT pgtrickle.create_watermark_group('other', ARRAY['u'])": {"first"},
    "SELECT pgtrickle.gate_source('u', 'bulk load')": {"first"},
    "SELECT pgtrickle.create_stream_table('base', 'SELECT id FROM t')": {"first", "base"},
    "SELECT pgtrickle.create_stream_table('above', 'SELECT b.id FROM base AS b JOIN u USING (id)')": {"first", "above"},
    "SELECT 3": {"first", "above"},
    "SELECT pgtrickle.gate_source('t', 'bulk load')": {"first", "second", "third", "base", "above"},
    "SELECT pgtrickle.ungate_source('t')": {"first", "second", "third", "base", "above"},
    "SELECT pgtrickle.create_stream_table('top', 'SELECT id FROM above')": {"first", "above", "top"},
    "SELECT 4": {"first", "above", "top"},
    "SELECT pgtrickle.set_source_limits('u', stale_after => '1 hour')": {"first", "above", "top"},
}


def test_whatever_is_altered_is_noticed_and_nothing_else_is_read(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute("CREATE TABLE t (id int)")
    db.execute("CREATE TABLE u (id int)")
    with local_client(db.dsn) as (client, _):
        for number, name in enumerate(NAMES):
            client.create_stream_table(name, f"SELECT id + {number} AS id FROM t")
        client.tick()
    read: list[str] = []

    def noted(*arguments: object) -> tuple[StreamTable, ...]:
        found = stream_tables(*arguments)  # type: ignore[arg-type]
        read.extend(table.name.rpartition(".")[2] for table in found)
        return found

    monkeypatch.setattr(known_tables, "stream_tables", noted)
    known, connection = KnownTables(), db.connect()
    assert _read(known, connection) == stream_tables(connection) and sorted(read) == sorted(NAMES)
    for statement, altered in ALTERATIONS.items():
        read.clear()
        db.execute(statement)
        assert _read(known, connection) == stream_tables(connection), statement
        assert set(read) == altered, statement
    assert _read(known, connection) == stream_tables(connection)


def test_another_connection_reads_everything_anew(db: Database) -> None:
    db.execute("CREATE TABLE t (id int)")
    db.execute("SELECT pgtrickle.create_stream_table('first', 'SELECT id FROM t')")
    known, connection = KnownTables(), db.connect()
    before = _read(known, connection)
    assert _read(known, connection) is before
    again = _read(known, db.connect())
    assert again == before and again is not before


def _read(known: KnownTables, connection: psycopg.Connection) -> tuple[StreamTable, ...]:
    return known.read(connection, connection, POLL, None)


def test_how_far_frozen_rows_are_complete_is_never_taken_from_before(db: Database) -> None:
    db.execute("CREATE TABLE t (id int, at timestamptz)")
    db.execute("SELECT pgtrickle.set_event_time('t', 'at')")
    db.execute("SELECT pgtrickle.create_stream_table('first', 'SELECT id, at FROM t', frozen_after => '1 day')")
    known, connection = KnownTables(), db.connect()
    _read(known, connection)
    for watermark in ("2026-01-01", "2026-01-02"):
        db.execute("SELECT pgtrickle.advance_watermark('t', %s::timestamptz)", watermark)
        (table,) = _read(known, connection)
        assert (table,) == stream_tables(connection)
        assert f"{table.decision.effective_watermark:%F}" == watermark
