"""The extension's tests of watermarks and gating (e2e_watermark_gating_tests), told anew: the names are its own."""

import pytest

from tests.mirror.conftest import Mirror

# What it tells is held by tests of our own, in our own words: tests/acceptance and tests/security.
pytestmark = pytest.mark.repeats

TABLES = (
    "CREATE TABLE a (id int PRIMARY KEY, v int)",
    "CREATE TABLE b (id int PRIMARY KEY, w int)",
    "INSERT INTO a VALUES (1, 10)",
    "INSERT INTO b VALUES (1, 20)",
)
JOIN = "SELECT a.id, a.v, b.w FROM a JOIN b ON b.id = a.id"
GROUP = "SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], 0)"


@pytest.fixture
def two(mirror: Mirror) -> Mirror:
    mirror.run(*TABLES)
    return mirror


def advance(mirror: Mirror, source: str, clock: str) -> None:
    mirror.run(f"SELECT pgtrickle.advance_watermark('{source}', '2026-03-01 {clock}+00')")


# Watermarks


def test_advance_watermark_stores_value(two: Mirror) -> None:
    advance(two, "a", "12:00")
    found = two.rows("SELECT source_table, schema_name, watermark = '2026-03-01 12:00+00' FROM pgtrickle.watermarks()")
    assert found == [("a", "public", True)]


def test_advance_watermark_monotonic(two: Mirror) -> None:
    advance(two, "a", "12:00")
    assert "back" in two.error("SELECT pgtrickle.advance_watermark('a', '2026-03-01 11:00+00')")
    assert two.value("SELECT watermark = '2026-03-01 12:00+00' FROM pgtrickle.watermarks()")


def test_advance_watermark_idempotent(two: Mirror) -> None:
    advance(two, "a", "12:00")
    advance(two, "a", "12:00")
    assert two.value("SELECT count(*) FROM pgtrickle.watermarks()") == 1


def test_advance_watermark_stores_wal_lsn(two: Mirror) -> None:
    advance(two, "a", "12:00")
    lsn = two.value("SELECT wal_lsn FROM pgtrickle.watermarks()")
    assert two.value(f"SELECT '{lsn}'::pg_lsn <= pg_current_wal_insert_lsn()")


def test_advance_watermark_nonexistent_table_errors(two: Mirror) -> None:
    assert "nowhere" in two.error("SELECT pgtrickle.advance_watermark('nowhere', '2026-03-01 12:00+00')")


def test_advance_watermark_records_user(two: Mirror) -> None:
    advance(two, "a", "12:00")
    assert two.value("SELECT advanced_by = session_user FROM pgtrickle.watermarks()")


def test_advance_watermark_forward(two: Mirror) -> None:
    advance(two, "a", "12:00")
    advance(two, "a", "12:30")
    assert two.value("SELECT watermark = '2026-03-01 12:30+00' FROM pgtrickle.watermarks()")


# Groups


def test_create_watermark_group(two: Mirror) -> None:
    two.run(GROUP)
    assert two.rows("SELECT group_name, source_count FROM pgtrickle.watermark_groups()") == [("g", 2)]


def test_create_watermark_group_returns_id(two: Mirror) -> None:
    assert two.value(GROUP) > 0


def test_create_watermark_group_requires_two_sources(two: Mirror) -> None:
    """Differs: a group of one gates its readers until it was loaded to a known point (the design document, 8D)."""
    assert two.value("SELECT pgtrickle.create_watermark_group('one', ARRAY['a'], 0)") > 0
    two.error("SELECT pgtrickle.create_watermark_group('none', ARRAY[]::text[], 0)")


def test_create_watermark_group_rejects_negative_tolerance(two: Mirror) -> None:
    assert "tolerance" in two.error("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], -5)")
    assert two.rows("SELECT * FROM pgtrickle.watermark_groups()") == []


def test_create_watermark_group_rejects_duplicate(two: Mirror) -> None:
    two.run(GROUP)
    assert "exists" in two.error(GROUP)


def test_drop_watermark_group(two: Mirror) -> None:
    two.run(GROUP, "SELECT pgtrickle.drop_watermark_group('g')")
    assert two.rows("SELECT * FROM pgtrickle.watermark_groups()") == []


def test_drop_watermark_group_nonexistent_errors(two: Mirror) -> None:
    assert "absent" in two.error("SELECT pgtrickle.drop_watermark_group('absent')")


def test_create_watermark_group_with_tolerance(two: Mirror) -> None:
    two.run("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], 30)")
    assert two.value("SELECT tolerance_secs FROM pgtrickle.watermark_groups()") == 30.0


# Status


def test_watermarks_empty_by_default(mirror: Mirror) -> None:
    assert mirror.rows("SELECT * FROM pgtrickle.watermarks()") == []


def test_watermark_groups_empty_by_default(mirror: Mirror) -> None:
    assert mirror.rows("SELECT * FROM pgtrickle.watermark_groups()") == []


def test_watermark_status_shows_alignment(two: Mirror) -> None:
    two.run(GROUP)
    found = two.rows("SELECT aligned, sources_with_watermark, lag_secs FROM pgtrickle.watermark_status()")
    assert found == [(True, 0, 0.0)]


def test_watermark_status_shows_misalignment(two: Mirror) -> None:
    two.run(GROUP)
    advance(two, "a", "12:10")
    advance(two, "b", "12:00")
    assert two.rows("SELECT aligned, lag_secs FROM pgtrickle.watermark_status()") == [(False, 600.0)]


def test_watermark_status_alignment_with_tolerance(two: Mirror) -> None:
    two.run("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], 60)")
    advance(two, "a", "12:00:30")
    advance(two, "b", "12:00")
    assert two.value("SELECT aligned FROM pgtrickle.watermark_status()") is True


def test_watermark_status_source_counts(two: Mirror) -> None:
    two.run(GROUP)
    advance(two, "a", "12:00")
    assert two.rows("SELECT sources_total, sources_with_watermark FROM pgtrickle.watermark_status()") == [(2, 1)]


# Gating


def created(mirror: Mirror, query: str = JOIN, schedule: str = "5m") -> Mirror:
    mirror.run(f"SELECT pgtrickle.create_stream_table('x', $${query}$$, '{schedule}', 'FULL')")
    return mirror


def test_watermark_aligned_st_refreshes(two: Mirror) -> None:
    two.run(GROUP)
    advance(two, "a", "12:00")
    advance(two, "b", "12:00")
    created(two).refresh("x")
    assert two.rows("TABLE x") == [(1, 10, 20)]


def test_manual_refresh_not_blocked_by_watermark(two: Mirror) -> None:
    two.run(GROUP)
    advance(two, "a", "12:10")
    advance(two, "b", "12:00")
    created(two).refresh("x")
    assert two.rows("TABLE x") == [(1, 10, 20)]
    assert two.value("SELECT aligned FROM pgtrickle.watermark_status()") is False


def test_st_without_watermark_group_refreshes_freely(two: Mirror) -> None:
    created(two).refresh("x")
    assert two.rows("TABLE x") == [(1, 10, 20)]


def test_watermark_intermediate_refreshes_freely(two: Mirror) -> None:
    two.run(GROUP)
    advance(two, "a", "12:10")
    advance(two, "b", "12:00")
    created(two, "SELECT id, v FROM a", "calculated")
    assert [result.action for result in two.tick()] == ["FULL"]
    assert two.rows("TABLE x") == [(1, 10)]


def test_scheduler_skips_misaligned_watermark(two: Mirror) -> None:
    two.run(GROUP)
    created(two, schedule="calculated")
    two.tick()
    advance(two, "a", "12:10")
    advance(two, "b", "12:00")
    two.run("INSERT INTO a VALUES (2, 11)")
    assert [result.action for result in two.tick()] == ["SKIP"]
    skips = two.rows("SELECT action, error_message FROM pgtrickle.get_refresh_history('x') WHERE status = 'SKIPPED'")
    assert [action for action, _ in skips] == ["SKIP"]
    assert all("watermark" in message for _, message in skips)


def test_scheduler_resumes_after_watermark_alignment(two: Mirror) -> None:
    test_scheduler_skips_misaligned_watermark(two)
    completed = "SELECT count(*) FROM pgtrickle.get_refresh_history('x') WHERE status = 'COMPLETED'"
    before = two.value(completed)
    advance(two, "b", "12:10")
    two.run("INSERT INTO b VALUES (2, 21)")
    two.tick()
    assert two.value(completed) == before + 1
    assert set(two.rows("TABLE x")) == {(1, 10, 20), (2, 11, 21)}


def test_scheduler_respects_tolerance(two: Mirror) -> None:
    two.run("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], 120)")
    advance(two, "a", "12:01")
    advance(two, "b", "12:00")
    created(two, schedule="calculated")
    two.tick()
    two.run("INSERT INTO a VALUES (2, 11)", "INSERT INTO b VALUES (2, 21)")
    two.tick()
    completed = two.value("SELECT count(*) FROM pgtrickle.get_refresh_history('x') WHERE status = 'COMPLETED'")
    assert completed == 2
    assert set(two.rows("TABLE x")) == {(1, 10, 20), (2, 11, 21)}


# What the design document lists, and no file of the extension has


def test_watermark_group_alignment_check(two: Mirror) -> None:
    two.run("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], 30)")
    advance(two, "a", "12:00")
    answers = []
    for clock in ("11:59:00", "11:59:30", "12:00"):
        advance(two, "b", clock)
        answers.append(two.value("SELECT aligned FROM pgtrickle.watermark_status()"))
    assert answers == [False, True, True]


def test_watermark_transactional(two: Mirror) -> None:
    with two.db.connect() as loader, loader.transaction():
        loader.execute("SELECT pgtrickle.advance_watermark('a', '2026-03-01 12:00+00')")
        assert two.rows("SELECT * FROM pgtrickle.watermarks()") == []
    assert len(two.rows("SELECT * FROM pgtrickle.watermarks()")) == 1


def test_watermark_multiple_groups(two: Mirror) -> None:
    two.run(
        "CREATE TABLE c (id int PRIMARY KEY)",
        "INSERT INTO c VALUES (1)",
        GROUP,
        "SELECT pgtrickle.create_watermark_group('h', ARRAY['b', 'c'], 0)",
    )
    created(two, "SELECT a.id, v, w FROM a JOIN b USING (id) JOIN c USING (id)", "calculated")
    for source, clock in (("a", "12:00"), ("b", "12:00"), ("c", "11:00")):
        advance(two, source, clock)
    assert [result.action for result in two.tick()] == ["SKIP"]
    advance(two, "c", "12:00")
    assert [result.action for result in two.tick()] == ["FULL"]


def test_watermark_hold_back(two: Mirror) -> None:
    """Only planned by the design document of the extension: it never shows more than all sources agree on."""
    two.run(
        GROUP,
        f"SELECT pgtrickle.create_stream_table('x', $${JOIN}$$, watermark_gating => 'hold_back')",
    )
    advance(two, "a", "12:00")
    advance(two, "b", "12:00")
    two.tick()
    two.run("UPDATE a SET v = 11")
    advance(two, "a", "12:05")
    two.run("UPDATE b SET w = 21")
    two.tick()
    assert two.rows("TABLE x") == [(1, 10, 20)]
    advance(two, "b", "12:05")
    two.tick()
    assert two.rows("TABLE x") == [(1, 11, 21)]


def test_watermark_stuck_pauses_and_resumes(two: Mirror) -> None:
    """The setting of the extension is the limit of groups that name none: a source that is silent for longer holds."""
    database = two.value("SELECT current_database()")
    two.run(f"ALTER DATABASE {database} SET pg_trickle.watermark_holdback_timeout = '1'")
    with two.db.connect() as fresh:
        fresh.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], 0)")
    created(two, schedule="calculated")
    advance(two, "a", "12:00")
    advance(two, "b", "12:00")
    two.tick()
    two.run("UPDATE pgtrickle.pgt_watermarks SET last_seen_at = clock_timestamp() - interval '1 hour'")
    two.run("INSERT INTO a VALUES (2, 11)", "INSERT INTO b VALUES (2, 21)")
    assert [result.action for result in two.tick()] == ["SKIP"]
    advance(two, "a", "12:01")
    advance(two, "b", "12:01")
    assert [result.action for result in two.tick()] == ["FULL"]
