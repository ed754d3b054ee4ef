"""A change buffer has an index only while few changes are looked for among many, and little is read to find few."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pytrickle
from pytrickle.catalog.definition import ChangeRange, Source
from pytrickle.cut import Cut
from pytrickle.plan.algebra.relation import Version
from pytrickle.plan.postgres.buffer import changes_query
from tests.conftest import Database

MANY = 60_000
INDEXES = "SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass"
PAGES = "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int"
LEAST_INDEXED = 256


@pytest.fixture
def client(db: Database) -> Iterator[pytrickle.Client]:
    """Two stream tables over one table, filled."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL)")
    db.execute("INSERT INTO t SELECT n, n FROM generate_series(1, 100) AS n")
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("prompt", "SELECT id, v FROM t")
        client.create_stream_table("late", "SELECT v, count(*) AS n FROM t GROUP BY v")
        client.tick()
        yield client


def buffer_of(db: Database) -> str:
    return str(db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking"))


def assert_equal(db: Database) -> None:
    assert db.value("SELECT count(*) FROM (TABLE t EXCEPT ALL TABLE prompt) AS d") == 0
    assert db.value("SELECT count(*) FROM prompt") == db.value("SELECT count(*) FROM t")
    counts = db.execute("SELECT v, count(*) FROM t GROUP BY v ORDER BY v")
    assert db.execute("SELECT v, n FROM late ORDER BY v") == counts


def test_what_waits_for_another_reader_is_indexed_until_then(client: pytrickle.Client, db: Database) -> None:
    buffer = buffer_of(db)
    db.execute(f"INSERT INTO t SELECT n, n FROM generate_series(101, {MANY}) AS n")
    client.refresh("prompt")
    assert db.value(INDEXES, buffer) == 0
    db.execute("UPDATE t SET v = v + 1 WHERE id <= 3")
    client.refresh("prompt")
    assert (db.value(INDEXES, buffer), db.value(PAGES, buffer) > LEAST_INDEXED) == (1, True)
    db.execute("DELETE FROM t WHERE id <= 2")
    client.tick()
    assert_equal(db)
    db.execute(f"VACUUM {buffer}")
    db.execute("DELETE FROM t WHERE id = 3")
    client.tick()
    assert db.value(INDEXES, buffer) == 0
    assert_equal(db)


def test_a_first_load_looks_for_no_changes(client: pytrickle.Client, db: Database) -> None:
    db.execute(f"INSERT INTO t SELECT n, n FROM generate_series(101, {MANY}) AS n")
    client.create_stream_table("further", "SELECT count(*) AS n FROM t")
    client.refresh("further")
    assert db.value(INDEXES, buffer_of(db)) == 0
    client.tick()
    assert_equal(db)


def test_what_all_have_read_is_given_back_before_autovacuum_comes(client: pytrickle.Client, db: Database) -> None:
    buffer = buffer_of(db)
    db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
    db.execute(f"INSERT INTO t SELECT n, n FROM generate_series(101, {MANY}) AS n")
    assert db.value(PAGES, buffer) > LEAST_INDEXED
    client.tick()
    assert db.value(PAGES, buffer) == 0
    for _ in range(30):
        db.execute("UPDATE t SET v = v + 1 WHERE id <= 500")
        client.tick()
    assert 0 < db.value(PAGES, buffer) < LEAST_INDEXED
    assert db.value(INDEXES, buffer) == 0
    assert_equal(db)


def test_dead_rows_that_an_older_snapshot_keeps_are_passed_over(client: pytrickle.Client, db: Database) -> None:
    buffer = buffer_of(db)
    older = db.connect(autocommit=False)
    older.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    older.execute("SELECT count(*) FROM t")
    db.execute(f"INSERT INTO t SELECT n, n FROM generate_series(101, {MANY}) AS n")
    client.tick()
    for _ in range(2):
        db.execute("UPDATE t SET v = v + 1 WHERE id <= 3")
        client.tick()
    assert db.value(INDEXES, buffer) == 1
    older.rollback()
    assert_equal(db)


def test_a_buffer_without_an_index_is_read_where_scans_are_forbidden(client: pytrickle.Client, db: Database) -> None:
    db.execute("UPDATE t SET v = v + 1")
    source = Source(0, "public", "t", "r", (), ("id",), buffer_of(db), frozenset(), pages=1, estimated_rows=100)
    read = changes_query(source, Version.DELTA, ChangeRange(0, Cut("3:3:", None, None, None), None))
    assert db.value(f"SELECT count(*) FROM ({read}) AS read") == 200
    for setting, read_by in (("off", "Tid Range Scan"), ("on", "Seq Scan")):
        db.execute(f"SET enable_seqscan = {setting}")
        assert read_by in db.execute(f"EXPLAIN {read}")[0][0]
