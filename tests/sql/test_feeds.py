"""Feeds keep the changes that somebody follows, say how far they were read, and end where they would grow for ever."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Database
from tests.sql.checks import buffer_of, create, refused

VERSIONS = "SELECT version FROM pgtrickle.versions('t') WHERE readable ORDER BY version"
CHANGES = "SELECT _change_type, (changed).a FROM pgtrickle.changes_of_versions(NULL::t, %s, %s)"
CLEAN = "SELECT pgtrickle.clean_change_buffers()"


def advance(db: Database, day: int) -> None:
    db.execute("SELECT pgtrickle.advance_watermark('t', %s::date)", f"2026-01-{day:02}")


def feed(db: Database, column: str) -> Any:
    return db.value(f"SELECT {column} FROM pgtrickle.feeds()")


@pytest.mark.parametrize("limit", ["max_age => '0'", "max_age => '-1 day'", "max_rows => 0"])
def test_a_limit_that_leaves_no_room_is_refused_with_a_hint(db: Database, limit: str) -> None:
    db.execute("CREATE TABLE t (a integer)")
    with refused("22023", hint="NULL for no limit", constraint="invalid_argument"):
        db.execute(f"SELECT pgtrickle.create_feed('f', 't', {limit})")
    assert db.execute("SELECT * FROM pgtrickle.feeds()") == []


def test_only_what_the_feed_has_read_is_deleted(followed: Database) -> None:
    assert followed.value(CLEAN) == 0
    followed.execute("SELECT pgtrickle.advance_feed('f', 2)")
    assert followed.value(CLEAN) == 1
    assert followed.execute(VERSIONS) == [(2,), (3,)]
    assert followed.execute(CHANGES, 2, 3) == [("insert", 2)]
    assert feed(followed, "(read_version, newest_version, versions_behind)::text") == "(2,3,1)"
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)


def test_a_stream_table_keeps_its_changes_beside_the_feed(followed: Database) -> None:
    create(followed, "SELECT a FROM t")
    followed.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = pgtrickle.current_cut()")
    assert followed.value(CLEAN) == 0
    followed.execute("SELECT pgtrickle.drop_stream_table('s')")
    assert followed.execute(CHANGES, 1, 3) == [("insert", 1), ("insert", 2)]


def test_dropping_the_feed_ends_the_capture_that_nobody_else_needs(followed: Database) -> None:
    followed.execute("SELECT pgtrickle.drop_feed('f')")
    assert followed.execute("SELECT FROM pgtrickle.pgt_change_tracking") == []
    assert followed.execute("SELECT FROM pg_trigger WHERE tgrelid = 't'::regclass") == []
    assert followed.execute("SELECT FROM pg_class WHERE relname LIKE 'pgt\\_changes\\_%%'") == []
    with refused("55000", "create_feed", "not_retained"):
        followed.execute(CHANGES, 1, 3)


def test_a_feed_tells_that_its_table_was_dropped(followed: Database) -> None:
    assert feed(followed, "cut_off_reason") is None
    followed.execute("DROP TABLE t")
    assert feed(followed, "cut_off_reason") == "public.t was dropped"
    with refused("42P01", "drop_feed('f')", "unknown_table", "public.t, which feed 'f' follows, was dropped"):
        followed.execute("SELECT pgtrickle.advance_feed('f', 2)")
    followed.execute("SELECT pgtrickle.drop_feed('f')")
    assert followed.execute("SELECT FROM pgtrickle.feeds()") == []


def test_a_feed_grants_nothing_that_the_doctor_would_take_back(followed: Database) -> None:
    assert followed.execute("SELECT pgtrickle_private.foreign_grants()") == []


def test_a_feed_with_too_many_unread_changes_is_cut_off_and_its_buffer_shrinks(followed: Database) -> None:
    followed.execute("UPDATE pgtrickle.pgt_feeds SET max_rows = 1000")
    followed.execute("INSERT INTO t SELECT generate_series(10, 1005)")
    assert followed.value(CLEAN) == 0
    followed.execute("INSERT INTO t VALUES (2000), (2001)")
    assert followed.value(CLEAN) == 1001
    assert feed(followed, "cut_off_reason") == "more than 1000 changes waited to be read"
    assert followed.value(f"SELECT count(*) FROM {buffer_of(followed, 't')}") == 0
    assert "cut off" in followed.value("SELECT sentence FROM pgtrickle.alerts() WHERE kind = 'feed'")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute("SELECT pgtrickle.advance_feed('f', 3)")


def test_half_way_to_a_limit_an_alert_is_raised_until_the_feed_is_read(followed: Database) -> None:
    lag = "SELECT sentence, closed_at IS NULL FROM pgtrickle.pgt_alerts WHERE kind = 'feed_lag' ORDER BY alert_id"
    followed.execute("UPDATE pgtrickle.pgt_feeds SET max_rows = 1000")
    followed.execute(CLEAN)
    assert followed.execute(lag) == []
    followed.execute("INSERT INTO t SELECT generate_series(10, 600)")
    for _ in range(2):
        followed.execute(CLEAN)
        assert followed.execute(lag) == [
            ("feed f is half way to being cut off: more than 500 changes waited to be read", True)
        ]
    advance(followed, 4)
    followed.execute("SELECT pgtrickle.advance_feed('f', 4)")
    followed.execute(CLEAN)
    assert [is_open for _, is_open in followed.execute(lag)] == [False]


def test_a_feed_that_is_not_read_for_too_long_is_cut_off(followed: Database) -> None:
    followed.execute("UPDATE pgtrickle.pgt_watermark_history SET advanced_at = now() - interval '8 days'")
    followed.execute("SELECT pgtrickle.advance_feed('f', 3)")
    followed.execute(CLEAN)
    assert feed(followed, "cut_off_reason") is None
    followed.execute("UPDATE pgtrickle.pgt_feeds SET read_version = 1, frontier = h.cut"
                     " FROM pgtrickle.pgt_watermark_history AS h WHERE h.history_id = 1")  # fmt: skip
    followed.execute(CLEAN)
    assert feed(followed, "cut_off_reason") == "a version waited longer than 7 d to be read"


def test_changes_that_may_have_been_missed_are_not_passed_over(followed: Database) -> None:
    followed.execute("ALTER TABLE t DISABLE TRIGGER ALL")
    followed.execute("INSERT INTO t VALUES (9)")
    followed.execute("ALTER TABLE t ENABLE TRIGGER ALL")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)
    followed.execute("SELECT pgtrickle.repair_capture('t'::regclass)")
    assert feed(followed, "cut_off_reason") == "its changes may have been missed, or it was dropped"
    followed.execute("SELECT pgtrickle.drop_feed('f')")
    followed.execute("SELECT pgtrickle.create_feed('f', 't')")
    advance(followed, 4)
    assert followed.execute(VERSIONS) == [(4,)]


def test_a_column_that_is_added_later_is_not_left_out_silently(followed: Database) -> None:
    followed.execute("ALTER TABLE t ADD COLUMN b integer")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)


def test_a_buffer_that_was_made_anew_is_not_read_for_an_old_snapshot(followed: Database) -> None:
    """The old snapshot sees the new table of the same name, but none of the rows that the old one had."""
    reader = followed.connect(autocommit=False)
    reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    reader.execute("SELECT 1")
    followed.execute("SELECT pgtrickle.drop_feed('f')")
    followed.execute("SELECT pgtrickle.create_feed('f', 't')")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        reader.execute(CHANGES, (1, 3))


def test_a_watermark_that_is_not_reached_yet_is_refused(followed: Database) -> None:
    with refused("55000", "Ask again later", "not_fresh"):
        followed.execute("SELECT * FROM pgtrickle.changes(NULL::t, '2026-01-01Z', '2026-01-04Z')")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute("SELECT * FROM pgtrickle.changes(NULL::t, '2025-12-31Z')")


def test_who_has_no_version_yet_is_told_from_when_on_there_are_some(followed: Database) -> None:
    followed.execute("CREATE TABLE u (a integer)")
    followed.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM u')")
    for relation, remedy in (("u", "advance_watermark"), ("s", "create_feed")):
        with refused("55000", remedy, "not_fresh"):
            followed.execute(f"SELECT * FROM pgtrickle.changes(NULL::{relation}, '2026-01-01Z')")


def test_updates_are_paired_by_the_key_and_refused_without_one(followed: Database) -> None:
    followed.execute("ALTER TABLE t DROP CONSTRAINT t_pkey")
    with refused("22023", "primary key"):
        followed.execute("SELECT * FROM pgtrickle.changes_of_versions(NULL::t, 1, 3, compute_updates => true)")


def test_only_who_may_read_every_row_follows_and_only_the_owner_advances(followed: Database) -> None:
    stranger = followed.connect(user=followed.create_role("stranger"))
    reader = followed.connect(user=followed.create_role("reader"))
    followed.execute("GRANT SELECT ON t TO reader")
    assert stranger.execute(f"SELECT * FROM pgtrickle.pgt_changes_{oid(followed)}").fetchall() == []
    with refused("42501"):
        stranger.execute(CHANGES, (1, 3))
    assert reader.execute(CHANGES, (1, 3)).fetchall() == [("insert", 1), ("insert", 2)]
    with refused("42501", "create_feed"):
        reader.execute("SELECT pgtrickle.advance_feed('f', 3)")
    followed.execute("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    followed.execute("CREATE POLICY one ON t USING (a = 1)")
    with refused("42501"):
        reader.execute(CHANGES, (1, 3))


def oid(db: Database) -> int:
    return int(db.value("SELECT 't'::regclass::oid::bigint"))


def test_the_changes_of_a_few_versions_are_found_by_the_index(followed: Database) -> None:
    followed.execute("INSERT INTO t SELECT generate_series(10, 40000)")
    assert followed.value(CLEAN) == 0, "but a buffer that long is indexed"
    followed.execute(f"ANALYZE {buffer_of(followed, 't')}")
    query = followed.value("SELECT pgtrickle_private.changes_query('t')")
    plan = followed.execute(f"EXPLAIN {query.replace('$1', '1').replace('$2', '3')}")
    assert any("Index" in line for (line,) in plan), plan


def test_after_a_restore_into_another_cluster_everything_is_read_again(followed: Database) -> None:
    followed.execute("UPDATE pgtrickle.pgt_feeds SET system_identifier = 1")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 1, 3)
    followed.execute("SELECT pgtrickle.adopt_cluster()")
    assert feed(followed, "cut_off_reason") is not None
    followed.execute("SELECT pgtrickle.drop_feed('f')")
    followed.execute("SELECT pgtrickle.create_feed('f', 't')")
    assert followed.execute(VERSIONS) == []


def test_a_version_that_the_dump_did_not_have_is_never_given_to_another(followed: Database) -> None:
    followed.execute("DELETE FROM pgtrickle.pgt_watermark_history WHERE history_id > 1")
    followed.execute("ALTER TABLE pgtrickle.pgt_watermark_history ALTER history_id RESTART WITH 2")
    followed.execute("UPDATE pgtrickle.pgt_feeds SET system_identifier = 1")
    followed.execute("SELECT pgtrickle.adopt_cluster()")
    followed.execute("SELECT pgtrickle.drop_feed('f')")
    followed.execute("SELECT pgtrickle.create_feed('f', 't')")
    for day in (4, 5, 6):
        advance(followed, day)
    newest = followed.value("SELECT max(version) FROM pgtrickle.versions('t')")
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 3, newest)


def test_a_group_is_read_only_where_its_sources_agree(followed: Database) -> None:
    followed.execute("CREATE TABLE u (a integer)")
    followed.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['t', 'u'], '1 hour')")
    check = "SELECT pgtrickle_private.check_group_at(%s::regclass, 'g', ROW(%s::timestamptz, NULL)::pgtrickle.progress)"
    with refused("55000", "begin with its first watermark", "not_fresh"):
        followed.execute(check, "t", "2026-01-02Z")
    for at in ("2026-01-01 12:00Z", "2026-01-03Z"):
        followed.execute("SELECT pgtrickle.advance_watermark('u', %s)", at)
    followed.execute(check, "t", "2026-01-03Z")
    with refused("55000", "at which they agree", "not_fresh"):
        followed.execute(check, "t", "2026-01-02Z")
    with refused("42704", "watermark_groups"):
        followed.execute(check, "pgtrickle.pgt_feeds", "2026-01-02Z")


def test_columns_that_are_named_as_our_queries_name_tables_are_read_back(followed: Database) -> None:
    followed.execute(
        "CREATE TABLE u (c integer PRIMARY KEY, n text, s text, k text, r text, pgt_row text, changed text)"
    )
    followed.execute("SELECT pgtrickle.create_feed('u', 'u')")
    followed.execute("SELECT pgtrickle.advance_watermark('u', '2026-01-01Z')")
    followed.execute("INSERT INTO u VALUES (1, 'n', 's', 'k', 'r', 'row', 'changed')")
    followed.execute("SELECT pgtrickle.advance_watermark('u', '2026-01-02Z')")
    first, last = followed.value("SELECT array_agg(version ORDER BY version) FROM pgtrickle.versions('u')")
    rows = "SELECT * FROM pgtrickle.as_of_version(NULL::u, %s, 2, 0) UNION ALL"
    rows += " SELECT * FROM pgtrickle.as_of_version(NULL::u, %s, 2, 1)"
    assert followed.execute(rows, first, first) == []
    assert followed.execute(rows, last, last) == followed.execute("SELECT * FROM u") != []
    changed = "SELECT (changed).* FROM pgtrickle.changes_of_versions(NULL::u, %s, compute_updates => true)"
    assert followed.execute(changed, first) == followed.execute("SELECT * FROM u")


def test_a_partitioned_table_is_followed_and_read_back(db: Database) -> None:
    db.execute("CREATE TABLE p (a integer PRIMARY KEY) PARTITION BY RANGE (a)")
    for low in (0, 10):
        db.execute(f"CREATE TABLE p{low} PARTITION OF p FOR VALUES FROM ({low}) TO ({low + 10})")
    db.execute("SELECT pgtrickle.create_feed('f', 'p')")
    for batch in (1, 2):
        db.execute("SELECT pgtrickle.advance_batch('p', %s)", batch)
        db.execute("INSERT INTO p VALUES (%s)", batch)
        db.execute("UPDATE p SET a = a + 10 WHERE a = %s", batch)
    db.execute("TRUNCATE p10")
    changes = db.execute("SELECT _change_type, (changed).a FROM pgtrickle.changes_of_versions(NULL::p, 1)")
    assert changes == [("insert", 1), ("delete", 1), ("insert", 11)]
    assert db.execute("SELECT a FROM pgtrickle.as_of_version(NULL::p, 2)") == [(11,)]


def test_a_version_that_another_timeline_gave_is_never_given_again(followed: Database) -> None:
    followed.execute("SELECT setval('pgtrickle.pgt_timeline', 7)")
    followed.execute("DELETE FROM pgtrickle.pgt_watermark_history WHERE history_id > 1")
    followed.execute("ALTER TABLE pgtrickle.pgt_watermark_history ALTER history_id RESTART WITH 2")
    first, second = followed.connect(), followed.connect()
    first.autocommit = False
    followed.execute("CREATE TABLE u (a integer)")
    first.execute("SELECT pgtrickle.advance_watermark('u', '2026-01-01')")
    second.execute("SET statement_timeout = '5s'")
    second.execute("SELECT pgtrickle.advance_watermark('t', '2026-01-04')")
    first.commit()
    advance(followed, 5)
    versions = [version for (version,) in followed.execute("SELECT version FROM pgtrickle.versions('t')")]
    newest = max(versions)
    assert newest - 1 in versions and newest > 10**15
    with refused("55000", "Read public.t as a whole", "not_retained"):
        followed.execute(CHANGES, 3, newest)
    assert followed.execute(CHANGES, 1, newest) == [("insert", 1), ("insert", 2), ("insert", 3)]
