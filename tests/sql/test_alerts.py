"""Alerts: one when an incident begins, one when it ends, as JSON on one channel."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import create, refused
from tests.sql.loaders import QUERY, advance, age, pipeline


class Ear:
    """A second connection that listens."""

    def __init__(self, db: Database) -> None:
        self.connection = db.connect()
        self.connection.execute("LISTEN pgtrickle_alert")

    def heard(self) -> list[dict[str, Any]]:
        """Return what was told since the last time."""
        self.connection.execute("SELECT")
        return [json.loads(notice.payload) for notice in self.connection.notifies(timeout=0.2)]


@pytest.fixture
def ear(db: Database) -> Iterator[Ear]:
    yield Ear(db)


def told(db: Database, ear: Ear) -> list[tuple[str, str, str | None, bool]]:
    """Let two ticks raise alerts; return what was told."""
    for _ in range(2):
        db.execute("SELECT pgtrickle.raise_alerts()")
    return sorted((one["kind"], one["subject"], one["group"], one["resolved"]) for one in ear.heard())


def test_a_stale_source_is_told_once_and_so_is_its_end(db: Database, ear: Ear) -> None:
    pipeline(db, stale_after="1 hour")
    advance(db, orders="12:00", lines="12:00")
    assert told(db, ear) == []
    age(db, "lines", "2 hours")
    db.execute("SELECT pgtrickle.raise_alerts()")
    (alert,) = ear.heard()
    assert set(alert) == {"kind", "subject", "group", "since", "sentence", "resolved"}
    assert alert["sentence"].startswith("public.lines is stale: not seen since 20")
    assert told(db, ear) == []
    age(db, "lines", "1 hour")
    assert told(db, ear) == [], "the same incident"
    advance(db, lines="12:00")
    assert told(db, ear) == [("stale", "public.lines", "pipeline", True)]
    age(db, "lines", "2 hours")
    assert told(db, ear) == [("stale", "public.lines", "pipeline", False)], "another incident"
    ((open_sentence, ended),) = db.execute("SELECT sentence, closed_at FROM pgtrickle.alerts(1)")
    assert open_sentence.startswith("public.lines is stale") and ended is None
    assert db.value("SELECT count(*) FROM pgtrickle.alerts()") == 2


def test_idle_sources_are_told_however_they_became_idle(db: Database, ear: Ear) -> None:
    pipeline(db, idle_after="1 hour")
    db.execute("SELECT pgtrickle.create_watermark_group('prices', ARRAY['rates'])")
    advance(db, orders="12:00", lines="12:00", rates="12:00")
    age(db, "lines", "2 hours")
    db.execute("SELECT pgtrickle.mark_idle('rates')")
    assert told(db, ear) == [("idle", "public.lines", "pipeline", False), ("idle", "public.rates", "prices", False)]
    advance(db, lines="12:10", rates="12:10")
    assert told(db, ear) == [("idle", "public.lines", "pipeline", True), ("idle", "public.rates", "prices", True)]


def test_the_end_of_a_limit_ends_its_incident(db: Database, ear: Ear) -> None:
    pipeline(db)
    db.execute("SELECT pgtrickle.set_source_limits('lines', '1 hour')")
    advance(db, lines="12:00")
    age(db, "lines", "2 hours")
    assert told(db, ear) == [("stale", "public.lines", None, False)]
    db.execute("SELECT pgtrickle.set_source_limits('lines', NULL)")
    assert told(db, ear) == [("stale", "public.lines", None, True)]


def test_a_passed_deadline_is_one_incident_until_the_gate_opens(db: Database, ear: Ear) -> None:
    pipeline(db)
    create(db, QUERY, "report", gate_deadline="1 hour")
    advance(db, orders="12:00", lines="12:00")
    advance(db, orders="12:30")

    def gated_for(interval: str | None) -> None:
        db.execute("UPDATE pgtrickle.pgt_stream_tables SET gated_since = now() - %s::interval", interval)

    gated_for("59 minutes")
    assert told(db, ear) == []
    gated_for("60 minutes")
    assert told(db, ear) == [("gate_deadline", "public.report", None, False)]
    for interval in (None, "1 minute", "60 minutes"):
        gated_for(interval)
        assert told(db, ear) == [], "refreshed by the deadline, gated again"
    advance(db, lines="12:30")
    assert told(db, ear) == [("gate_deadline", "public.report", None, True)]


def test_other_parts_raise_incidents_through_the_same_channel(db: Database, ear: Ear) -> None:
    raise_it = "SELECT pgtrickle.alert('overheated', 'public.x', %s, %s)"
    assert [db.value(raise_it, True, 'x is "hot"\nafter failures') for _ in range(2)] == [True, False]
    assert db.value("SELECT pgtrickle.raise_alerts()") == 0, "it does not end what it did not begin"
    assert [db.value(raise_it, False, "x goes on") for _ in range(2)] == [True, False]
    first, last = ear.heard()
    assert (first["sentence"], first["resolved"]) == ('x is "hot"\nafter failures', False)
    assert (last["sentence"], last["resolved"]) == ("x goes on", True)
    with refused("22004"):
        db.execute(raise_it, None, "x")


def test_an_alert_of_any_length_is_told(db: Database, ear: Ear) -> None:
    db.execute("SELECT pgtrickle.alert(%s, %s, true, %s, %s)", *(letter * 9000 for letter in "kßع𝄞"))
    (alert,) = ear.heard()
    assert alert["sentence"].startswith("ع") and len(alert["sentence"]) > 100


def test_an_alert_that_is_rolled_back_was_never_told(db: Database, ear: Ear) -> None:
    other = db.connect(autocommit=False)
    other.execute("SELECT pgtrickle.alert('fuse', 'public.x', true, 'blown')")
    other.rollback()
    assert ear.heard() == []
    assert db.value("SELECT pgtrickle.alert('fuse', 'public.x', true, 'blown')")


def test_two_refreshers_tell_an_incident_once(db: Database, ear: Ear) -> None:
    pipeline(db, stale_after="1 hour")
    advance(db, lines="12:00")
    age(db, "lines", "2 hours")
    refreshers = [db.connect(autocommit=False) for _ in range(2)]
    refreshers[0].execute("SELECT pgtrickle.raise_alerts()")
    refreshers[1].execute("SET lock_timeout = '100ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        refreshers[1].execute("SELECT pgtrickle.raise_alerts()")
    refreshers[1].rollback()
    refreshers[0].commit()
    refreshers[1].execute("SELECT pgtrickle.raise_alerts()")
    refreshers[1].commit()
    assert len(ear.heard()) == 1


def test_ended_incidents_are_forgotten_in_time_and_open_ones_are_not(db: Database) -> None:
    for name in ("a", "b"):
        db.execute("SELECT pgtrickle.alert('stale', %s, true, 'x')", name)
    db.execute("SELECT pgtrickle.alert('stale', 'a', false, 'x')")
    db.execute(
        "UPDATE pgtrickle.pgt_alerts SET opened_at = opened_at - interval '40 days', "
        "closed_at = closed_at - interval '40 days'"
    )
    db.execute("SELECT pgtrickle.trim_history('30 days')")
    assert db.execute("SELECT subject FROM pgtrickle.alerts()") == [("b",)]
