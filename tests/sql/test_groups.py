"""Watermark groups: what they accept, and when their sources agree."""

import pytest

from tests.conftest import Database
from tests.sql.checks import catalog_state, refused

STATUS = (
    "SELECT aligned, lag::text, waiting_for, reason, to_char(agreed_watermark AT TIME "
    "ZONE 'UTC', 'HH24:MI') FROM pgtrickle.watermark_status()"
)


@pytest.fixture
def sources(db: Database) -> Database:
    for name in "abc":
        db.execute(f"CREATE TABLE {name} (id integer)")
    return db


def advance(db: Database, **watermarks: str) -> None:
    for source, at in watermarks.items():
        db.execute(
            "SELECT pgtrickle.advance_watermark(%s, %s)", source, at if "infinity" in at else f"2026-03-01 {at}+00"
        )


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("create_watermark_group('g', ARRAY['a', 'b'])", "42710"),
        ("create_watermark_group('h', ARRAY['a', 'public.a'])", "22023"),
        ("create_watermark_group('h', ARRAY['a', 'nowhere'])", "42P01"),
        ("create_watermark_group('h', ARRAY['a', NULL])", "22004"),
        ("create_watermark_group('h', NULL)", "22004"),
        ("create_watermark_group('h', '{}')", "22023"),
        ("create_watermark_group(NULL, ARRAY['a'])", "22004"),
        ("create_watermark_group('', ARRAY['a'])", "22023"),
        ("create_watermark_group('h', ARRAY['a'], '-1 second')", "22023"),
        ("create_watermark_group('h', ARRAY['a'], NULL)", "22004"),
        ("create_watermark_group('h', ARRAY['pg_stat_activity'])", "42809"),
        ("alter_watermark_group('nowhere', tolerance => '1 second')", "42704"),
        ("alter_watermark_group('g', ARRAY['a', 'a'])", "22023"),
        ("alter_watermark_group('g', tolerance => '-1 second')", "22023"),
        ("drop_watermark_group('nowhere')", "42704"),
        ("drop_watermark_group(NULL)", "42704"),
    ],
)
def test_bad_groups_are_refused_and_change_nothing(sources: Database, call: str, sqlstate: str) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'])")
    before = catalog_state(sources)
    with refused(sqlstate):
        sources.execute(f"SELECT pgtrickle.{call}")
    assert catalog_state(sources) == before


def test_a_group_can_be_altered_and_dropped(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], '30 seconds')")
    sources.execute("SELECT pgtrickle.alter_watermark_group('g', ARRAY['c'])")
    rows = "SELECT group_name, sources, tolerance::text FROM pgtrickle.watermark_groups()"
    assert sources.execute(rows) == [("g", ["public.c"], "00:00:30")]
    sources.execute("SELECT pgtrickle.alter_watermark_group('g', tolerance => '1 minute')")
    assert sources.execute(rows) == [("g", ["public.c"], "00:01:00")]
    sources.execute("SELECT pgtrickle.drop_watermark_group('g')")
    assert sources.execute(rows) == []


def test_names_mean_what_they_mean_to_the_caller(sources: Database) -> None:
    sources.execute("CREATE SCHEMA other")
    sources.execute('CREATE TABLE other."A b" (id integer)')
    connection = sources.connect()
    connection.execute("SET search_path = other")
    connection.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['\"A b\"', 'public.a'])")
    assert sources.execute("SELECT sources FROM pgtrickle.watermark_groups()") == [(['other."A b"', "public.a"],)]


@pytest.mark.parametrize(
    ("tolerance", "watermarks", "aligned", "lag", "waiting_for", "effective"),
    [
        ("0", {}, True, None, "public.a, public.b", None),
        ("0", {"a": "12:00"}, True, "00:00:00", "public.b", None),
        ("0", {"a": "12:00", "b": "12:00"}, True, "00:00:00", None, "12:00"),
        ("0", {"a": "12:00:00.000001", "b": "12:00"}, False, "00:00:00.000001", "public.b", None),
        ("5 minutes", {"a": "12:05", "b": "12:00"}, True, "00:05:00", None, "12:00"),
        ("5 minutes", {"a": "12:05:00.000001", "b": "12:00"}, False, "00:05:00.000001", "public.b", None),
        ("0", {"a": "infinity", "b": "12:00"}, True, "00:00:00", None, "12:00"),
        ("0", {"a": "infinity", "b": "infinity"}, True, None, None, None),
    ],
)
def test_alignment(
    sources: Database,
    tolerance: str,
    watermarks: dict[str, str],
    aligned: bool,
    lag: str | None,
    waiting_for: str | None,
    effective: str | None,
) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], %s)", tolerance)
    advance(sources, **watermarks)
    ((is_aligned, is_lag, is_waiting_for, reason, is_effective),) = sources.execute(STATUS)
    assert (is_aligned, is_lag, is_waiting_for, is_effective) == (aligned, lag, waiting_for, effective)
    assert reason


def test_status_of_no_group_is_empty(sources: Database) -> None:
    assert sources.execute(STATUS) == []


def test_tolerance_of_days_does_not_follow_daylight_saving(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], '1 day')")
    connection = sources.connect()
    connection.execute("SET TimeZone = 'Europe/Berlin'")
    connection.execute("SELECT pgtrickle.advance_watermark('a', '2026-03-28 12:00+00')")
    connection.execute("SELECT pgtrickle.advance_watermark('b', '2026-03-29 12:00+00')")
    for function in ("pgtrickle.watermark_status", "pgtrickle_private.group_alignment"):
        assert connection.execute(f"SELECT aligned FROM {function}()").fetchone() == (True,)


def test_agreed_watermark_of_a_group_is_where_it_last_agreed(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'])")
    for step in ({"a": "11:55"}, {"b": "11:55"}, {"a": "12:00"}, {"a": "12:05"}):
        advance(sources, **step)
    ((aligned, lag, waiting_for, reason, agreed),) = sources.execute(STATUS)
    assert (aligned, lag, waiting_for, agreed) == (False, "00:10:00", "public.b", "11:55")
    assert reason == "public.b is 10 min behind public.a, tolerance 0 s"
