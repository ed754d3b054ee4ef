"""Limits beyond which an alert is raised: of a source, of a group, of all; each incident is told once."""

import json
from typing import Any

import psycopg
import pytest

from pytrickle.inspect.doctor.server import check_stream_tables
from tests.conftest import Database
from tests.sql.checks import create, refused
from tests.sql.loaders import QUERY, advance, pipeline

SET = "SELECT pgtrickle.set_alert_limits({})"
OPEN = "SELECT kind, subject, group_name, sentence FROM pgtrickle.alerts() WHERE closed_at IS NULL ORDER BY 1, 2"


def limit(db: Database, arguments: str = "") -> None:
    db.execute(SET.format(arguments))


def opened(db: Database) -> list[tuple[Any, ...]]:
    """Let a tick measure; return the kind, the subject and the group of what is open then."""
    db.execute("SELECT pgtrickle.raise_alerts()")
    return [tuple(row[:3]) for row in db.execute(OPEN)]


def ago(db: Database, source: str, interval: str) -> None:
    """Let a source be complete through a moment that was so long ago."""
    db.execute("SELECT pgtrickle.advance_watermark(%s, now() - %s::interval)", source, interval)


def test_one_call_sets_the_usual_limits_for_all_and_a_source_goes_by_its_own(db: Database) -> None:
    pipeline(db)
    ago(db, "rates", "6 minutes")
    assert opened(db) == [], "no alert without limits"
    limit(db)
    assert db.execute("SELECT * FROM pgtrickle.alert_limits()") == [
        (None, None, db.value("SELECT interval '5 minutes'"), 0.05, 0.5, 0.2)
    ]
    assert opened(db) == [("watermark_lag", "public.rates", None)]
    ((sentence,),) = db.execute("SELECT sentence FROM pgtrickle.alerts()")
    assert sentence == "the watermark of public.rates is 6 min behind the clock, limit 5 min"
    limit(db, "'rates', lag => '10 minutes'")
    assert opened(db) == []
    limit(db, "'rates', lag => NULL")
    assert opened(db) == []
    assert db.value("SELECT pgtrickle.reset_alert_limits('rates')") is True
    assert opened(db) == [("watermark_lag", "public.rates", None)]
    db.execute("SELECT pgtrickle.advance_watermark('rates', 'infinity')")
    assert opened(db) == [], "an exhausted source is done"


def test_an_incident_is_told_at_its_beginning_and_at_its_end_and_lasts_between_two_measurements(db: Database) -> None:
    pipeline(db)
    limit(db)
    ago(db, "rates", "6 minutes")
    with db.connect() as ear:
        ear.execute("LISTEN pgtrickle_alert")
        for _ in range(2):
            db.execute("SELECT pgtrickle.raise_alerts()")
        db.execute("SELECT pgtrickle.raise_alerts(false)")
        ago(db, "rates", "1 minute")
        db.execute("SELECT pgtrickle.raise_alerts(false)")
        assert db.value("SELECT count(*) FROM pgtrickle.alerts() WHERE closed_at IS NULL") == 1, "not measured"
        db.execute("SELECT pgtrickle.raise_alerts(true)")
        ear.execute("SELECT")
        told = [json.loads(notice.payload) for notice in ear.notifies(timeout=0.2)]
    assert [(one["kind"], one["resolved"]) for one in told] == [("watermark_lag", False), ("watermark_lag", True)]
    assert told[1]["sentence"] == "public.rates is within its limit of watermark lag again"


def test_groups_that_drift_apart_and_idle_sources_are_those_of_the_group(db: Database) -> None:
    pipeline(db, idle_after="1 hour")
    limit(db, "group_name => 'pipeline', lag => '10 minutes', rate => NULL")
    advance(db, orders="12:00", lines="12:11")
    drift = [("group_lag", "pipeline", "pipeline")]
    lags = [("watermark_lag", f"public.{name}", "pipeline") for name in ("lines", "orders")]
    assert opened(db) == [*drift, *lags]
    db.execute("SELECT pgtrickle.mark_idle('orders')")
    idle = [("idle", "public.orders", "pipeline"), ("idle_share", "pipeline", "pipeline")]
    assert opened(db) == [*idle, lags[0]]
    ((sentence,),) = db.execute("SELECT sentence FROM pgtrickle.alerts() WHERE kind = 'idle_share'")
    assert sentence == "50.0 percent of the sources of group pipeline are idle, limit 20 percent"
    problems = dict(db.execute("SELECT stream_table, remedy FROM pgtrickle.problems() WHERE incident AND NOT lasting"))
    assert problems["pipeline"] == "See whether the loaders of its sources still run."
    assert "public.orders" not in problems, "an idle source need not come"
    with db.connect() as connection:
        check = check_stream_tables(connection)
    assert not check.ok and sentence in check.detail and "Its loader" not in (check.remedy or "")
    db.execute("SELECT pgtrickle.drop_watermark_group('pipeline')")
    assert opened(db) == [] and db.execute("SELECT * FROM pgtrickle.alert_limits()") == []


def test_late_rows_count_from_a_hundred_on_and_a_slow_watermark_after_ten_advances(db: Database) -> None:
    db.execute("CREATE TABLE clicks (at timestamptz)")
    db.execute("SELECT pgtrickle.set_event_time('clicks', 'at')")
    limit(db, "lag => NULL")
    loader = db.connect()
    for minute in range(11):
        loader.execute(
            "SELECT pgtrickle.advance_watermark('clicks', '2026-03-01 12:00+00'::timestamptz + %s)".replace(
                "%s", f"interval '{minute} milliseconds'"
            ).encode()
        )
        if minute == 8:
            loader.execute(
                "UPDATE pgtrickle.pgt_watermark_history SET advanced_at = '2026-03-01 12:00+00'::timestamptz"
                " + history_id * interval '1 second'"
            )
            assert opened(db) == []
    db.execute(
        "UPDATE pgtrickle.pgt_watermark_history SET advanced_at = '2026-03-01 12:00+00'::timestamptz"
        " + history_id * interval '1 second'"
    )
    assert opened(db) == [("rate", "public.clicks", None)]
    loader.execute("INSERT INTO clicks SELECT '2026-03-01 11:00+00' FROM generate_series(1, 6)")
    loader.execute("INSERT INTO clicks SELECT '2026-03-01 13:00+00' FROM generate_series(1, 80)")
    loader.execute("SELECT pg_stat_force_next_flush()")
    loader.execute("SELECT")
    assert opened(db) == [("rate", "public.clicks", None)], "too few rows to say"
    loader.execute("INSERT INTO clicks SELECT '2026-03-01 13:00+00' FROM generate_series(1, 24)")
    loader.execute("SELECT pg_stat_force_next_flush()")
    loader.execute("SELECT")
    assert opened(db)[0] == ("late_share", "public.clicks", None)


def test_a_watermark_at_the_end_of_the_calendar_does_not_break_the_measurement(db: Database) -> None:
    pipeline(db)
    limit(db)
    db.execute("SELECT pgtrickle.advance_watermark('orders', '9999-12-30 23:00+00')")
    db.execute("SELECT pgtrickle.advance_watermark('lines', '0001-01-02 00:00+00')")
    create(db, "SELECT count(*) FROM orders", "counts", schedule="200000 years")
    assert ("watermark_lag", "public.lines", None) in opened(db)
    assert db.value("SELECT count(*) FROM pgtrickle.freshness()") == 1


def test_a_stream_table_that_lacks_a_change_for_too_long_is_an_incident_but_not_one_without_news(db: Database) -> None:
    pipeline(db)
    create(db, QUERY, "report")
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET created_at = now() - interval '1 hour'")
    limit(db, "'orders', lag => '10 minutes'")
    assert opened(db) == [("lag", "public.report", None)], "it was never filled"
    limit(db, "'orders', lag => '2 hours'")
    assert opened(db) == []
    limit(db, "'lines', lag => '30 minutes'")
    assert opened(db) == [("lag", "public.report", None)], "the least limit of what it is made of"
    ((status, target),) = db.execute("SELECT status, target::text FROM pgtrickle.freshness()")
    assert (status, target) == ("unfilled", "00:30:00")


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        ("lag => '0'", "22023"),
        ("late_share => 1", "22023"),
        ("late_share => 'NaN'", "22023"),
        ("rate => 0", "22023"),
        ("idle_share => -0.1", "22023"),
        ("'orders', 'pipeline'", "22023"),
        ("group_name => 'nobody'", "42704"),
        ("'nothing'", "42P01"),
    ],
)
def test_limits_that_make_no_sense_are_refused_and_change_nothing(
    steady_db: Database, arguments: str, sqlstate: str
) -> None:
    steady_db.execute("CREATE TABLE IF NOT EXISTS orders (id int)")
    with refused(sqlstate):
        limit(steady_db, arguments)
    assert steady_db.execute("SELECT * FROM pgtrickle.alert_limits()") == []


def test_nobody_but_the_owner_of_the_catalog_sets_limits(db: Database) -> None:
    db.create_role("stranger")
    pipeline(db)
    with db.connect(user="stranger") as stranger:
        for call in ("set_alert_limits()", "set_alert_limits('orders')", "reset_alert_limits()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                stranger.execute(f"SELECT pgtrickle.{call}".encode())
        assert stranger.execute("SELECT * FROM pgtrickle.alert_limits()").fetchall() == []
        assert stranger.execute("SELECT count(*) FROM pgtrickle.freshness()").fetchone() == (0,)


def test_a_group_may_have_a_name_that_no_relation_could_have(every_db: Database) -> None:
    for source in ("orders", "lines"):
        every_db.execute(f"CREATE TABLE {source} (id integer)")
    for group in ("order pipeline", 'its "lines"', "a.b.c.d", "42"):
        every_db.execute("SELECT pgtrickle.create_watermark_group(%s, '{orders, lines}')", group)
    limit(every_db, "lag => '10 minutes', rate => NULL")
    advance(every_db, orders="12:00", lines="12:11")
    found = {subject for kind, subject, _ in opened(every_db) if kind == "group_lag"}
    assert found == {"order pipeline", 'its "lines"', "a.b.c.d", "42"}
    advance(every_db, orders="12:11")
    assert "group_lag" not in {kind for kind, *_ in opened(every_db)}


def test_a_source_that_was_dropped_is_behind_no_clock(db: Database) -> None:
    pipeline(db)
    limit(db, "lag => '10 minutes', rate => NULL")
    for source in ("orders", "lines", "rates"):
        ago(db, source, "1 hour")
    kept = ("watermark_lag", "public.lines", None)
    assert opened(db) == [kept, *(("watermark_lag", f"public.{name}", None) for name in ("orders", "rates"))]
    db.execute("DROP TABLE orders, rates")
    assert opened(db) == [kept], "neither the source of a group nor another one is told of, by a number"
