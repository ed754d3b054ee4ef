"""Clean-up deletes what every reader shows and nothing else; a frontier must stay readable."""

import pytest

from tests.conftest import Database
from tests.sql.checks import buffer_of, refused

FRONTIER = "UPDATE pgtrickle.pgt_dependencies SET frontier = pgtrickle.current_cut() WHERE pgt_id = %s"
CLEAN = "SELECT pgtrickle.clean_change_buffers()"


@pytest.fixture
def readers(db: Database) -> Database:
    """Two stream tables over one table."""
    db.execute("CREATE TABLE t (a integer)")
    for name in ("s1", "s2"):
        db.execute(f"SELECT pgtrickle.create_stream_table('{name}', 'SELECT a FROM t')")
    db.execute("INSERT INTO t VALUES (1)")
    return db


def pending(db: Database) -> list[int]:
    return [a for (a,) in db.execute(f"SELECT a FROM {buffer_of(db, 't')} ORDER BY a")]


def test_before_anybody_was_filled_nothing_is_deleted(readers: Database) -> None:
    assert readers.value(CLEAN) == 0
    assert pending(readers) == [1]


def test_the_reader_that_is_behind_keeps_its_changes(readers: Database) -> None:
    readers.execute(FRONTIER, 1)
    readers.execute("INSERT INTO t VALUES (2)")
    readers.execute(FRONTIER, 2)
    readers.execute("INSERT INTO t VALUES (3)")
    assert readers.value(CLEAN) == 1
    assert pending(readers) == [2, 3]
    readers.execute(FRONTIER, 1)
    assert readers.value(CLEAN) == 1
    assert pending(readers) == [3]
    assert readers.value(CLEAN) == 0


def test_a_change_that_commits_late_survives_the_clean_up(readers: Database) -> None:
    slow = readers.connect(autocommit=False)
    slow.execute("INSERT INTO t VALUES (2)")
    readers.execute("INSERT INTO t VALUES (3)")
    readers.execute(FRONTIER, 1)
    readers.execute(FRONTIER, 2)
    slow.commit()
    assert readers.value(CLEAN) == 2
    assert pending(readers) == [2]


def test_a_new_reader_cannot_use_a_cut_that_was_cleaned_away(readers: Database) -> None:
    readers.execute("SELECT pgtrickle.advance_watermark('t', '2026-01-01')")
    readers.execute("INSERT INTO t VALUES (2)")
    readers.execute(FRONTIER, 1)
    assert readers.value(CLEAN) == 2
    cut = readers.value("SELECT cut::text FROM pgtrickle.pgt_watermarks")
    with refused("40001", "Refresh again", "frontier_not_readable"):
        readers.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = %s::pgtrickle.cut WHERE pgt_id = 2", cut)
    readers.execute(FRONTIER, 2)


def test_a_refresh_that_races_with_the_clean_up_is_refused_not_lost(readers: Database) -> None:
    """Filling s2 at an old cut was planned before the clean-up of what s1 shows, and commits after it."""
    readers.execute("SELECT pgtrickle.advance_watermark('t', '2026-01-01')")
    cut = readers.value("SELECT cut::text FROM pgtrickle.pgt_watermarks")
    readers.execute("INSERT INTO t VALUES (2)")
    readers.execute(FRONTIER, 1)
    refresh, cleaner = readers.connect(autocommit=False), readers.connect(autocommit=False)
    refresh.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = %s::pgtrickle.cut WHERE pgt_id = 2", (cut,))
    assert cleaner.execute(CLEAN).fetchone() == (0,), "the clean-up passes by a source that a refresh is working on"
    cleaner.commit()
    refresh.commit()
    assert readers.value(CLEAN) == 1
    assert pending(readers) == [2]


def test_a_frontier_from_before_a_repair_is_refused(readers: Database) -> None:
    cut = readers.value("SELECT pgtrickle.current_cut()::text")
    readers.execute("SELECT pgtrickle.repair_capture('t')")
    with refused("40001"):
        readers.execute("UPDATE pgtrickle.pgt_dependencies SET frontier = %s::pgtrickle.cut WHERE pgt_id = 2", cut)


def test_clean_up_under_an_older_snapshot_is_refused(readers: Database) -> None:
    connection = readers.connect(autocommit=False)
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    with refused("25001"):
        connection.execute(CLEAN)


def test_clean_up_does_not_wait_for_writers(readers: Database) -> None:
    readers.execute(FRONTIER, 1)
    readers.execute(FRONTIER, 2)
    writer, cleaner = readers.connect(autocommit=False), readers.connect()
    writer.execute("INSERT INTO t VALUES (2)")
    cleaner.execute("SET lock_timeout = '2s'")
    assert cleaner.execute(CLEAN).fetchone() == (1,)
    writer.commit()
    assert pending(readers) == [2]


def test_an_unfilled_stream_table_that_holds_back_keeps_the_cuts_it_will_start_from(db: Database) -> None:
    db.execute("CREATE TABLE t (a integer)")
    db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['t'])")
    db.execute("SELECT pgtrickle.create_stream_table('fast', 'SELECT a FROM t', watermark_gating => 'none')")
    db.execute("SELECT pgtrickle.create_stream_table('held', 'SELECT a FROM t', watermark_gating => 'hold_back')")
    db.execute("INSERT INTO t VALUES (1); SELECT pgtrickle.advance_watermark('t', '2026-01-01')")
    db.execute("INSERT INTO t VALUES (2)")
    db.execute(FRONTIER, 1)
    assert db.value(CLEAN) == 1, "what the oldest cut covers is not needed"
    assert pending(db) == [2], "what lies beyond it is"
    assert db.value("SELECT decision || ' ' || (caps <> '{}') FROM pgtrickle.gating_decision(2)") == "run true"


def clean_and_count(db: Database) -> tuple[int, int]:
    """Clean the buffer of t; return how many changes were deleted, and how many were read.

    The first that is deleted is read twice: it tells that there is something to delete.
    """
    with db.connect() as connection, connection.transaction():
        ((deleted,),) = connection.execute(CLEAN).fetchall()
        read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_all_tables WHERE relid = %s::regclass"
        ((count,),) = connection.execute(read, (buffer_of(db, "t"),)).fetchall()
    return deleted, count


@pytest.mark.parametrize("analyzed", [False, True])
def test_clean_up_reads_nothing_of_what_it_keeps(db: Database, analyzed: bool) -> None:
    db.execute("CREATE TABLE t (a integer)")
    number = db.value("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t', watermark_retention => '1 day')")
    db.execute(FRONTIER, number)
    for day in range(1, 6):
        db.execute("INSERT INTO t SELECT generate_series(1, 10000)")
        db.execute(f"SELECT pgtrickle.advance_watermark('t', '2026-01-0{day}')")
    assert db.value(CLEAN) == 0, "but so large a buffer is indexed"
    db.execute(FRONTIER, number)
    if analyzed:
        db.execute(f"ANALYZE {buffer_of(db, 't')}")
    assert clean_and_count(db) == (10000, 10001), "the oldest that is retained covers the first day"
    assert clean_and_count(db) == (0, 0)
    db.execute(
        "UPDATE pgtrickle.pgt_watermark_history SET advanced_at = advanced_at - interval '2 days' WHERE history_id < 4"
    )
    assert clean_and_count(db) == (20000, 20001)
    assert clean_and_count(db) == (0, 0)


def test_what_may_not_scan_is_not_compiled(db: Database) -> None:
    """Such a plan is said to cost so much that PostgreSQL would compile it, which takes longer than any clean-up."""
    without = "SELECT proname, proconfig @> '{jit=off}' FROM pg_proc WHERE proconfig::text ~ 'enable_\\w+=off'"
    found = db.execute(f"{without} AND pronamespace = %s::regnamespace ORDER BY 1", "pgtrickle_private")
    named = "advance", "capture_print", "catalog_fingerprint", "clean_change_buffer", "feed_excess", "forget_call"
    named = (*named, "holds_covered", "oldest_beyond")
    assert found == [(name, True) for name in named]


def test_no_clean_up_is_compiled_where_changes_are_retained(db: Database) -> None:
    """Of functions PostgreSQL expects many rows, and would compile what reads a few within a millisecond."""
    unknown = "UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE relkind = 'r' AND relnamespace = %s::regnamespace"
    db.execute(unknown, "pgtrickle")
    connection, said = db.connect(options="-c jit=on -c client_min_messages=debug1"), list[str]()
    if connection.execute("SELECT pg_jit_available()").fetchone() == (False,):
        pytest.skip("this server cannot compile plans")
    db.execute("CREATE TABLE t (a integer)")
    number = db.value("SELECT pgtrickle.create_stream_table('s', 'SELECT a FROM t', watermark_retention => '1 day')")
    db.execute(FRONTIER, number)
    db.execute("INSERT INTO t VALUES (1); SELECT pgtrickle.advance_watermark('t', '2026-01-01')")
    connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    connection.execute("SELECT sum(i) FROM generate_series(1, 9999999) AS i WHERE i < 0")
    compiled = [message for message in said if message.startswith("time to inline")]
    assert compiled, "the server says what it compiles"
    said.clear()
    connection.execute(CLEAN)
    assert [message for message in said if message.startswith("time to inline")] == []


def test_clean_up_looks_only_where_a_reader_moved(db: Database) -> None:
    numbers = {}
    for source in ("t", "u"):
        db.execute(f"CREATE TABLE {source} (a integer)")
        numbers[source] = db.value(f"SELECT pgtrickle.create_stream_table('of_{source}', 'SELECT a FROM {source}')")
    for source, number in numbers.items():
        db.execute(f"INSERT INTO {source} VALUES (1), (2)")
        db.execute(FRONTIER, number)
    assert db.value(CLEAN) == 4
    db.execute("INSERT INTO t VALUES (3); INSERT INTO u VALUES (3)")
    db.execute(FRONTIER, numbers["t"])
    assert clean_and_look(db, "t", "u") == (1, [2, 0])
    db.execute(FRONTIER, numbers["u"])
    assert db.value(CLEAN) == 1


def clean_and_look(db: Database, *sources: str) -> tuple[int, list[int]]:
    """Clean all buffers; return how many changes were deleted, and how often each source's buffer was looked into."""
    with db.connect() as connection, connection.transaction():
        ((deleted,),) = connection.execute(CLEAN).fetchall()
        looked = "SELECT seq_scan + COALESCE(idx_scan, 0) FROM pg_stat_xact_all_tables WHERE relid = %s::regclass"
        counts = [connection.execute(looked, (buffer_of(db, source),)).fetchone() for source in sources]
    return deleted, [count for (count,) in counts]


def written(db: Database) -> int:
    """Clean all buffers; return how many transactions the clean-up made PostgreSQL number, which waits for the disk."""
    with db.connect() as connection, connection.transaction():
        connection.execute(CLEAN)
        ((number,),) = connection.execute("SELECT count(pg_current_xact_id_if_assigned())").fetchall()
    return int(number)


def test_clean_up_writes_nothing_while_the_reader_furthest_back_stays(readers: Database) -> None:
    """So that each of many readers of a table pays little when it is refreshed alone."""
    for number in (1, 2):
        readers.execute(FRONTIER, number)
    assert readers.value(CLEAN) == 1
    for value in (2, 3):
        readers.execute("INSERT INTO t VALUES (%s)", value)
        readers.execute(FRONTIER, 1)
        assert written(readers) == 0
    assert pending(readers) == [2, 3]
    readers.execute(FRONTIER, 2)
    assert written(readers) == 1
    assert pending(readers) == []


@pytest.mark.parametrize(
    ("cuts", "lowest"),
    [
        (["(20:20:,,,)", "(10:10:,,,)", "(30:30:,,,)"], ["(10:10:,,,)"]),
        (["(10:10:,,,)", "(10:10:,,,)"], ["(10:10:,,,)"]),
        (["(11:12:11,,,)", "(12:12:,,,)"], ["(11:12:11,,,)"]),
        # Each shows what the other does not: a transaction that was under way, or changes of its own.
        (["(10:12:10,,,)", "(11:13:11,,,)"], ["(10:12:10,,,)", "(11:13:11,,,)"]),
        (["(10:10:,12,5,)", "(12:20:12,,,)"], ["(10:10:,12,5,)", "(12:20:12,,,)"]),
        (["(10:10:,12,5,)", "(13:20:,,,)"], ["(10:10:,12,5,)"]),
    ],
)
def test_of_many_cuts_only_those_furthest_back_are_remembered(db: Database, cuts: list[str], lowest: list[str]) -> None:
    found = "SELECT pgtrickle_private.lowest_cuts(%s::text[]::pgtrickle.cut[])::text[]"
    assert db.value(found, cuts) == lowest


INDEX = "SELECT pgtrickle_private.index_change_buffer(%s, %s)"
INDEXES = "SELECT count(*) FROM pg_index WHERE indrelid = %s::regclass"


@pytest.fixture
def large(readers: Database) -> str:
    """The buffer of a table that was written by many more rows than a clean-up leaves an index to; its name."""
    readers.execute("INSERT INTO t SELECT generate_series(2, 5000)")
    return buffer_of(readers, "t")


def test_a_buffer_gets_one_index_when_it_is_as_large_as_that(readers: Database, large: str) -> None:
    pages = readers.value("SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int", large)
    assert pages > 16
    for least, done, indexes in ((pages, False, 0), (pages - 1, True, 1), (pages - 1, False, 1)):
        assert readers.value(INDEX, large, least) is done
        assert readers.value(INDEXES, large) == indexes
    assert [a for (a,) in readers.execute(f"SELECT a FROM {large} WHERE pgt_xid > '0' ORDER BY a")] == [*range(1, 5001)]


def test_no_index_is_made_while_somebody_writes(readers: Database, large: str) -> None:
    slow = readers.connect(autocommit=False)
    slow.execute("INSERT INTO t VALUES (0)")
    assert readers.value(INDEX, large, 1) is False
    slow.commit()
    assert readers.value(INDEX, large, 1) is True


def test_the_index_goes_when_a_clean_up_finds_little_and_nobody_reading(readers: Database, large: str) -> None:
    assert readers.value(INDEX, large, 1) is True
    assert (readers.value(CLEAN), readers.value(INDEXES, large)) == (0, 1)
    readers.execute(FRONTIER, 1)
    readers.execute(FRONTIER, 2)
    assert (readers.value(CLEAN), readers.value(INDEXES, large)) == (5000, 1)
    readers.execute(f"VACUUM {large}")
    readers.execute("INSERT INTO t VALUES (0)")
    reading = readers.connect(autocommit=False)
    reading.execute(f"SELECT FROM {large} LIMIT 1")
    readers.execute(FRONTIER, 1)
    assert (readers.value(CLEAN), readers.value(INDEXES, large)) == (0, 1)
    reading.rollback()
    readers.execute(FRONTIER, 1)
    assert (readers.value(CLEAN), readers.value(INDEXES, large)) == (0, 0)
    assert pending(readers) == [0]


def test_what_a_feed_leaves_unread_is_indexed(readers: Database) -> None:
    readers.execute(FRONTIER, 1)
    readers.execute(FRONTIER, 2)
    readers.execute("SELECT pgtrickle.create_feed('f', 't')")
    readers.execute("INSERT INTO t SELECT generate_series(1, 40000)")
    assert readers.value(CLEAN) == 1
    assert readers.value(INDEXES, buffer_of(readers, "t")) == 1
