"""Watermarks as numbers: lag, pace by the history, idleness, and how much came late."""

from datetime import timedelta

import pytest

from tests.conftest import Database
from tests.sql.late import EVENTS, advance, at, declared

METRICS = "SELECT {} FROM pgtrickle.watermark_metrics() WHERE source = 'public.events'"


def test_a_source_that_only_has_an_event_time_is_listed(db: Database) -> None:
    declared(db, watermark=None)
    columns = "watermark, lag, group_lag, idle, idle_share, advances, rate, median_interval, late_rows, late_waiting"
    assert db.execute(METRICS.format(columns)) == [(None, None, None, None, None, 0, None, None, 0, 0)]


def test_pace_is_that_of_the_history(db: Database) -> None:
    db.execute(EVENTS)
    for clock in ("12:00", "12:10", "12:20", "13:00"):
        advance(db, clock)
    for clock, minutes in (("12:00", 0), ("12:10", 10), ("12:20", 20), ("13:00", 50)):
        db.execute(
            "UPDATE pgtrickle.pgt_watermark_history SET advanced_at = %s::timestamptz + %s * interval '1 minute' "
            "WHERE watermark = %s",
            *("2026-03-01 14:00+00", minutes, at(clock)),
        )
    columns = "advances, rate, last_interval, median_interval, lag = now() - watermark, since_advance < '1 minute'"
    assert db.execute(METRICS.format(columns)) == [
        (4, pytest.approx(10 / 10), timedelta(minutes=30), timedelta(minutes=10), True, True)
    ], "one long step, or one long silence, is not its pace"
    advance(db, "infinity")
    ((advances, rate, lag),) = db.execute(METRICS.format("advances, rate, lag"))
    assert (advances, rate, lag) == (5, pytest.approx(10 / 10), None), "the end of the data is no pace"


def test_lag_and_idleness_are_those_of_the_groups(db: Database) -> None:
    for source in ("events", "lines", "rates"):
        db.execute(EVENTS.replace("events", source))
        advance(db, "12:00", source)
    assert db.execute(METRICS.format("group_lag, idle, idle_share")) == [(None, None, None)]
    db.execute("SELECT pgtrickle.create_watermark_group('one', ARRAY['events', 'lines'])")
    db.execute("SELECT pgtrickle.create_watermark_group('two', ARRAY['events', 'rates', 'lines'])")
    advance(db, "12:30", "lines")
    advance(db, "12:40", "rates")
    db.execute("SELECT pgtrickle.mark_idle('rates')")
    assert db.execute(METRICS.format("group_lag, idle, idle_share")) == [
        (timedelta(minutes=30), False, pytest.approx(1 / 3))
    ]


def test_late_rows_are_a_share_of_all_that_came_since_the_declaration(db: Database) -> None:
    loader = db.connect()
    loader.execute("CREATE TABLE events (id integer, at timestamptz)")
    loader.execute("INSERT INTO events SELECT i FROM generate_series(1, 50) AS i")
    loader.execute("SELECT pg_stat_force_next_flush()")
    declared(db, "SELECT 1", too_late="1 hour")
    loader.execute("INSERT INTO events SELECT i, %s FROM generate_series(1, 6) AS i", (at("12:30"),))
    loader.execute(
        "INSERT INTO events VALUES (1, %s), (2, %s), (3, %s), (4, %s)", [at("11:30")] * 2 + [at("10:00")] * 2
    )
    loader.execute("SELECT pg_stat_force_next_flush()")
    counts = METRICS.format("late_rows, late_waiting, late_ratio")
    assert db.execute(counts) == [(4, 2, pytest.approx(0.4))]
    loader.execute("SELECT pgtrickle.replay_late_rows('events')")
    loader.execute("SELECT pg_stat_force_next_flush()")
    assert db.execute(counts) == [(4, 0, pytest.approx(0.4))], "a replay is no new arrival"
    loader.execute("SELECT pg_stat_reset()")
    assert db.execute(counts) == [(4, 0, None)]


def test_a_refused_advance_leaves_no_trace(db: Database) -> None:
    db.execute(EVENTS)
    advance(db, "12:00")
    before = db.execute(METRICS.format("watermark, advances"))
    with pytest.raises(Exception, match="cannot move back"):
        advance(db, "11:00")
    assert db.execute(METRICS.format("watermark, advances")) == before
