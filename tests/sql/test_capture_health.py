"""Whatever may have let changes slip by is noticed; repairing it has every reader reinitialized."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import Database
from tests.repeats import on_both_servers
from tests.sql.checks import buffer_of, logged
from tests.waiting import wait_until_blocked


@pytest.fixture
def t(db: Database) -> Database:
    db.execute("CREATE TABLE t (a integer, b text, c integer, d integer GENERATED ALWAYS AS (a + c) STORED)")
    db.execute("SELECT pgtrickle.create_stream_table('s1', 'SELECT a, d FROM t')")
    db.execute("SELECT pgtrickle.create_stream_table('s2', 'SELECT a, b FROM t')")
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET status = 'ACTIVE'")
    return db


def capture_trigger(db: Database, event: str) -> str:
    name = db.value("SELECT 'pgtrickle_' || %s || '_' || 't'::regclass::oid", event)
    assert isinstance(name, str)
    return name


def test_healthy_capture_has_no_problem(t: Database) -> None:
    t.execute("INSERT INTO t VALUES (1)")
    t.execute("ALTER TABLE t ADD COLUMN e integer")
    t.execute("VACUUM FULL t")
    t.execute("ALTER TABLE t RENAME TO renamed")
    t.execute("TRUNCATE renamed")
    assert t.value("SELECT pgtrickle.capture_problem('renamed')") is None


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("ALTER TABLE t DISABLE TRIGGER {insert}", "was disabled"),
        ("ALTER TABLE t DISABLE TRIGGER ALL; ALTER TABLE t ENABLE TRIGGER ALL", "was disabled"),
        ("DROP TRIGGER {truncate} ON t", "is missing"),
        ("ALTER TABLE t RENAME COLUMN a TO z", "was dropped, renamed or has another type"),
        ("DROP TABLE {buffer}", "is missing"),
        ("ALTER TABLE {buffer} SET UNLOGGED", "is unlogged, a crash may have emptied it"),
        ("ALTER TABLE t SET UNLOGGED", "is unlogged"),
        (
            (
                "CREATE OR REPLACE FUNCTION pgtrickle_changes.capture_{oid}() RETURNS trigger "
                "LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'"
            ),
            "was changed",
        ),
    ],
)
def test_damage_is_noticed_and_repaired(t: Database, damage: str, problem: str) -> None:
    t.execute("INSERT INTO t VALUES (1)")
    names = {event: capture_trigger(t, event) for event in ("insert", "truncate")}
    t.execute(damage.format(**names, buffer=buffer_of(t, "t"), oid=t.value("SELECT 't'::regclass::oid")))
    assert problem in t.value("SELECT pgtrickle.capture_problem('t')")
    if damage == "ALTER TABLE t SET UNLOGGED":
        return
    t.execute("SELECT pgtrickle.repair_capture('t')")
    assert t.value("SELECT pgtrickle.capture_problem('t')") is None
    assert t.value(f"SELECT count(*) FROM {buffer_of(t, 't')}") == 0
    reasons = [reason for (reason,) in t.execute("SELECT reinitialize_reason FROM pgtrickle.pgt_stream_tables")]
    assert all("changes of public.t may have been missed" in reason and problem in reason for reason in reasons)
    t.execute("INSERT INTO t VALUES (2)")
    assert logged(t, "t", "d") == [(1, None)]


@on_both_servers
def test_a_column_generated_otherwise_is_noticed(t: Database) -> None:
    if t.version < 17:
        pytest.skip("SET EXPRESSION came with PostgreSQL 17")
    t.execute("ALTER TABLE t ALTER COLUMN d SET EXPRESSION AS (a * c)")
    assert "was changed" in t.value("SELECT pgtrickle.capture_problem('t')")


def test_repair_makes_older_cuts_unreadable(t: Database) -> None:
    t.execute("SELECT pgtrickle.advance_watermark('t', '2026-01-01')")
    readable = (
        "SELECT bool_and(pgtrickle_private.cut_is_readable(w.cut, d.captured_xid, d.captured_pos, k.cleaned_through)) "
        "FROM pgtrickle.pgt_watermarks AS w "
        "JOIN pgtrickle.pgt_dependencies AS d USING (source_relid) JOIN "
        "pgtrickle.pgt_change_tracking AS k USING (source_relid)"
    )
    assert t.value(readable) is True
    t.execute("SELECT pgtrickle.repair_capture('t')")
    assert t.value(readable) is False


def test_repair_follows_a_renamed_column(t: Database) -> None:
    t.execute("ALTER TABLE t RENAME COLUMN a TO z")
    t.execute("SELECT pgtrickle.repair_capture('t')")
    assert t.execute("SELECT columns_used FROM pgtrickle.pgt_dependencies ORDER BY pgt_id") == [
        (["z", "d"],),
        (["z", "b"],),
    ]


def test_a_column_nobody_reads_any_more_can_be_dropped_under_writers(t: Database) -> None:
    t.execute("SELECT pgtrickle.drop_stream_table('s2')")
    assert t.value("SELECT captured_columns ? 'b' FROM pgtrickle.pgt_change_tracking") is False
    t.execute("ALTER TABLE t DROP COLUMN b")
    t.execute("INSERT INTO t VALUES (1, 1)")
    assert logged(t, "t", "a, d") == [(1, 1, 2)]
    assert t.value("SELECT pgtrickle.capture_problem('t')") is None


def test_a_dropped_source_is_reported(t: Database) -> None:
    oid = t.value("SELECT 't'::regclass::oid")
    t.execute("DROP TABLE t CASCADE")
    assert t.value("SELECT pgtrickle.capture_problem(%s::oid::regclass)", oid) == "it no longer exists"
    t.execute("SELECT pgtrickle.drop_stream_table('s1')")
    t.execute("SELECT pgtrickle.drop_stream_table('s2')")
    assert t.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking") == []


def test_a_restored_database_starts_over(t: Database) -> None:
    t.execute("SELECT pgtrickle.advance_watermark('t', '2026-01-01')")
    assert t.value("SELECT pgtrickle.adopt_cluster()") == 0
    t.execute("UPDATE pgtrickle.pgt_stream_tables SET system_identifier = 1")
    t.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = pgtrickle.current_cut()")
    t.execute("INSERT INTO t VALUES (1)")
    assert t.value("SELECT pgtrickle.adopt_cluster()") == 2
    assert t.value("SELECT pgtrickle.adopt_cluster()") == 0
    assert t.value(f"SELECT count(*) FROM {buffer_of(t, 't')}") == 0
    assert t.execute("SELECT DISTINCT frontier::text FROM pgtrickle.pgt_dependencies") == [(None,)]
    assert t.execute("SELECT DISTINCT reinitialize_reason FROM pgtrickle.pgt_stream_tables") == [
        ("the database was restored or copied from another cluster",)
    ]
    assert t.value("SELECT count(*) FROM pgtrickle.pgt_watermark_history") == 0
    assert t.value("SELECT pgtrickle.covers(cut, '999', 0) FROM pgtrickle.pgt_watermarks") is False
    t.execute("INSERT INTO t VALUES (2)")
    assert logged(t, "t", "a") == [(1, 2)]


def test_watermarks_of_another_cluster_are_known_as_such_without_a_stream_table(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer)")
    db.execute("SELECT pgtrickle.advance_watermark('t', '2026-01-01Z'::timestamptz)")
    assert db.value("SELECT pgtrickle.adopt_cluster()") == 0
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_watermark_history") == 1
    # The other cluster had seen more transactions: its cuts cover all that is written here.
    ahead = "ROW('9000000:9000000:', NULL, NULL, NULL)::pgtrickle.cut"
    db.execute(f"UPDATE pgtrickle.pgt_watermark_history SET cut = {ahead}")
    db.execute("UPDATE pgtrickle.pgt_clusters SET system_identifier = 1")
    db.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t')")
    db.execute("SELECT pgtrickle.adopt_cluster()")
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_watermark_history") == 0
    assert db.value("SELECT pgtrickle_private.restored()") is None


def test_a_session_that_quotes_all_names_gives_none_another_name(db: Database) -> None:
    quoting = db.connect(options="-c quote_all_identifiers=on")
    quoting.execute("CREATE TABLE orders (id integer)")
    quoting.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM orders')")
    quoting.execute("SELECT pgtrickle.create_feed('f', 'orders')")
    quoting.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['orders'])")
    quoting.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01')")
    assert db.value("SELECT pgtrickle.capture_problem('orders')") is None
    stored = "TABLE pgtrickle.pgt_change_tracking", "TABLE pgtrickle.pgt_feeds", "TABLE pgtrickle.pgt_watermarks"
    assert [db.value(f"SELECT source_name FROM ({table}) AS t") for table in stored] == ["public.orders"] * 3
    assert db.value("SELECT source_names FROM pgtrickle.pgt_watermark_groups") == ["public.orders"]
    found = "SELECT view_relid::text, session_settings ->> 'search_path' FROM pgtrickle.pgt_stream_tables"
    assert db.execute(found) == [('pgtrickle_state."stream table public.s"', "pg_catalog, public")]


def test_a_session_that_quotes_all_names_sees_and_leaves_everything_in_order(db: Database) -> None:
    db.execute("ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO PUBLIC")
    quoting = db.connect(options="-c quote_all_identifiers=on")
    quoting.execute("CREATE TABLE events (id integer, day date, label text)")
    query = "SELECT id, 'now'::text::date - day AS age FROM events"
    quoting.execute("SELECT pgtrickle.create_stream_table('s', %s)", (query,))
    quoting.execute("SELECT pgtrickle.create_feed('f', 'events')")
    quoting.execute("SELECT pgtrickle.set_event_time('events', 'day', '1 day', 'UTC')")
    for session in (quoting, db.connect()):
        assert session.execute("SELECT pgtrickle.capture_problem('events')").fetchone() == (None,)
        assert session.execute("SELECT pgtrickle_private.feed_problem('events')").fetchone() == (None,)
        damage = "SELECT pgtrickle_private.event_time_problem(e), pgtrickle_private.event_time_damage(e)"
        assert session.execute(f"{damage} FROM pgtrickle.pgt_event_times AS e").fetchall() == [(None, None)]
        clock = session.execute("SELECT pgtrickle_private.clock_cast(view_relid) FROM pgtrickle.pgt_stream_tables")
        assert clock.fetchall() == [("the cast of 'now'::text",)]
    granted = "SELECT has_table_privilege('public', %s, 'SELECT')"
    assert db.value(granted, buffer_of(db, "events")) is False


@pytest.mark.parametrize("gone", ["SELECT 'the buffers alone'", "DROP TABLE t", "DROP SCHEMA public CASCADE"])
def test_a_repair_that_waits_for_locks_goes_on_without_what_was_dropped_meanwhile(t: Database, gone: str) -> None:
    """As a refresher does while somebody drops the stream tables that read a source, or replaces the source."""
    oid = t.value("SELECT 't'::regclass::oid")
    with t.connect(autocommit=False) as other, t.connect() as session, ThreadPoolExecutor(1) as pool:
        other.execute("LOCK TABLE t IN ROW EXCLUSIVE MODE")
        repair = pool.submit(session.execute, f"SELECT pgtrickle.repair_capture({oid}::oid::regclass)")
        wait_until_blocked(t, "repair_capture", lambda: not repair.done())
        for name in ("s1", "s2"):
            other.execute("SELECT pgtrickle.drop_stream_table(%s)", (name,))
        other.execute(gone)
        other.commit()
        repair.result(timeout=60)
    assert t.execute("SELECT source_name FROM pgtrickle.pgt_change_tracking") == []


def test_a_change_buffer_that_was_given_many_columns_is_made_anew(db: Database) -> None:
    columns = [f"c{i}" for i in range(260)]
    db.execute(f"CREATE TABLE wide (id integer, {', '.join(f'{name} integer' for name in columns)})")
    db.execute("SELECT pgtrickle.create_stream_table('stays', 'SELECT id FROM wide')")
    for problem in (None, "public.wide has a change buffer that is full of dropped columns"):
        query = f"SELECT id, {', '.join(columns)} FROM wide"
        db.execute("SELECT pgtrickle.create_stream_table('goes', %s)", query)
        db.execute("SELECT pgtrickle.drop_stream_table('goes')")
        assert db.value("SELECT pgtrickle.capture_problem('wide')") == problem
    db.execute("SELECT pgtrickle.repair_capture('wide')")
    dropped = "SELECT count(*) FROM pg_attribute WHERE attrelid = %s::regclass AND attisdropped"
    assert db.value(dropped, buffer_of(db, "wide")) == 0
    assert db.value("SELECT pgtrickle.capture_problem('wide')") is None
