"""Who listens is told, in our form, in that of the extension, or in both."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest

from tests.equivalence.local_engine import local_client
from tests.mirror.conftest import Mirror
from tests.sql.checks import refused

CHANNELS = ("pgtrickle_watermark", "pgtrickle_source_gate", "pg_trickle_alert", "sales_changed")


@pytest.fixture
def listener(mirror: Mirror) -> psycopg.Connection[Any]:
    mirror.run("CREATE TABLE sales (id int PRIMARY KEY)")
    mirror.filled("SELECT pgtrickle.create_stream_table('totals', 'SELECT count(*) AS n FROM sales')")
    connection = mirror.db.connect()
    for channel in CHANNELS:
        connection.execute(f"LISTEN {channel}".encode())
    return connection


def heard(listener: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    listener.execute("SELECT")
    return [(notice.channel, notice.payload) for notice in listener.notifies(timeout=0)]


def set_form(mirror: Mirror, form: str) -> None:
    """Have every session of this database that begins from now on send a form."""
    database = mirror.value("SELECT quote_ident(current_database())")
    mirror.run(f"ALTER DATABASE {database} SET pgtrickle.notify_form = '{form}'")


def test_a_subscriber_is_told_of_other_rows_only(mirror: Mirror, listener: psycopg.Connection[Any]) -> None:
    for name in ("totals", "public.totals", "nowhere"):
        mirror.run(f"SELECT pgtrickle.subscribe('{name}', 'sales_changed')")
    mirror.run("SELECT pgtrickle.subscribe('totals', 'sales_changed')", "SELECT pgtrickle.unsubscribe('no', 'such')")
    listed = mirror.rows("SELECT stream_table, channel FROM pgtrickle.list_subscriptions()")
    assert listed == [(name, "sales_changed") for name in ("nowhere", "public.totals", "totals")]
    mirror.tick()
    assert heard(listener) == []
    mirror.run("INSERT INTO sales VALUES (1)")
    assert [result.action for result in mirror.tick()] == ["DIFFERENTIAL"]
    ((channel, payload),) = set(heard(listener))
    assert channel == "sales_changed"
    assert json.loads(payload) == {"name": "public.totals", "inserted_count": 1, "deleted_count": 1}
    for name in ("totals", "public.totals"):
        mirror.run(f"SELECT pgtrickle.unsubscribe('{name}', 'sales_changed')")
    mirror.run("INSERT INTO sales VALUES (2)")
    mirror.tick()
    assert heard(listener) == []


def test_a_channel_that_cannot_be_notified_is_refused(mirror: Mirror) -> None:
    for channel in ("''", "repeat('x', 64)", "NULL"):
        with refused("22004" if channel == "NULL" else "22023", "1 to 63 characters"):
            mirror.run(f"SELECT pgtrickle.subscribe('totals', {channel})")


@pytest.mark.parametrize("form", ["own", "pg_trickle", "both"])
def test_watermarks_and_gates_are_told_in_the_form_that_is_set(
    mirror: Mirror, listener: psycopg.Connection[Any], form: str
) -> None:
    set_form(mirror, form)
    with mirror.db.connect() as loader:
        for call in (
            "advance_watermark('sales', '2026-03-01 12:00Z')",
            "gate_source('sales')",
            "ungate_source('sales')",
        ):
            loader.execute(f"SELECT pgtrickle.{call}".encode())
    number = mirror.value("SELECT 'sales'::regclass::oid::text")
    told = heard(listener)
    own = [json.loads(payload) for channel, payload in told if channel == CHANNELS[0] and payload.startswith("{")]
    assert [set(one) for one in own] == ([{"source", "watermark"}] if form != "pg_trickle" else []) + [
        {"source", "ungated"}
    ]
    foreign = [(channel, payload) for channel, payload in told if not payload.startswith("{")]
    expected = [(CHANNELS[0], f"wm:{number}"), (CHANNELS[1], number), (CHANNELS[1], number)]
    assert foreign == ([] if form == "own" else expected)


def test_refreshes_are_told_as_the_extension_tells_them(mirror: Mirror, listener: psycopg.Connection[Any]) -> None:
    set_form(mirror, "both")
    mirror.run("INSERT INTO sales VALUES (1)")
    with mirror.refresher():
        mirror.db.execute("SELECT pgtrickle.refresh_stream_table('totals')")
    ((channel, payload),) = heard(listener)
    event = json.loads(payload)
    assert channel == "pg_trickle_alert" and event.pop("duration_ms") >= 0 and event.pop("database_oid") > 0
    assert event == {
        "event": "refresh_completed", "pgt_schema": "public", "pgt_name": "totals", "st": "public.totals",
        "action": "DIFFERENTIAL", "rows_inserted": 1, "rows_deleted": 1,
    }  # fmt: skip


def events(mirror: Mirror, listener: psycopg.Connection[Any], statement: str) -> list[dict[str, Any]]:
    """Run a statement in a session that sends the extension's form; return what it told, without what all have."""
    listener.execute("SELECT")
    with mirror.db.connect(options="-c pgtrickle.notify_form=pg_trickle") as session:
        session.execute(statement.encode())
    told = [json.loads(payload) for channel, payload in heard(listener) if channel == "pg_trickle_alert"]
    number = mirror.value("SELECT oid::bigint FROM pg_database WHERE datname = current_database()")
    assert all(event.pop("database_oid") == number for event in told)
    return told


def test_what_happens_to_a_stream_table_is_told_once(mirror: Mirror, listener: psycopg.Connection[Any]) -> None:
    names = {"pgt_schema": "public", "pgt_name": "totals", "st": "public.totals"}
    change = "UPDATE pgtrickle.pgt_stream_tables SET {}"
    suspend = change.format("status = 'SUSPENDED', consecutive_failures = 3, last_error = 'secret'")
    suspended = {"event": "auto_suspended", "consecutive_errors": 3, **names}
    assert events(mirror, listener, suspend) == [suspended]
    assert events(mirror, listener, suspend) == []
    resumed = {"event": "resumed", "previous_status": "SUSPENDED", **names}
    for stop in ("SELECT 1", "SELECT pgtrickle.pause_stream_table('totals')"):
        assert events(mirror, listener, stop) == []
        assert events(mirror, listener, "SELECT pgtrickle.resume_stream_table('totals')") == [resumed]
    mirror.run("SELECT pgtrickle.alter_stream_table('totals', fuse_ceiling => 1)")
    blow = change.format("fuse_blown_at = now()")
    assert events(mirror, listener, blow) == [{"event": "fuse_blown", "fuse_ceiling": 1, **names}]
    assert events(mirror, listener, blow) == []
    anew = {"event": "reinitialize_needed", "reason": "reset_fuse", **names}
    assert events(mirror, listener, "SELECT pgtrickle.reset_fuse('totals', 'reinitialize')") == [anew]
    assert events(mirror, listener, "SELECT pgtrickle.reinitialize_stream_table('totals')") == []


def test_a_table_without_notifications_is_left_out(mirror: Mirror, listener: psycopg.Connection[Any]) -> None:
    mirror.run("SELECT pgtrickle.alter_stream_table('totals', pooler_compatibility_mode => true)")
    assert events(mirror, listener, "UPDATE pgtrickle.pgt_stream_tables SET status = 'SUSPENDED'") == []


def test_a_capture_that_is_damaged_is_told_by_the_tick_that_notices(
    mirror: Mirror, listener: psycopg.Connection[Any]
) -> None:
    set_form(mirror, "pg_trickle")
    mirror.run("ALTER TABLE sales DISABLE TRIGGER USER")
    with local_client(mirror.db.dsn) as (client, _):
        assert [result.action for result in client.tick()] == ["REINITIALIZE"]
    told = [json.loads(payload) for channel, payload in heard(listener) if channel == "pg_trickle_alert"]
    assert [event["event"] for event in told] == ["reinitialize_needed", "refresh_completed"]
    assert re.match(r"changes of public\.sales may have been missed: .* was disabled", told[0]["reason"])


def test_a_loader_that_falls_silent_and_comes_back_is_told(mirror: Mirror, listener: psycopg.Connection[Any]) -> None:
    mirror.run("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['sales'], stale_after => '10 minutes')")
    mirror.run("SELECT pgtrickle.advance_watermark('sales', '2026-03-01 12:00Z')")
    mirror.run("UPDATE pgtrickle.pgt_watermarks SET last_seen_at = clock_timestamp() - interval '11 minutes'")
    number = mirror.value("SELECT 'sales'::regclass::oid::bigint")
    (stuck,) = events(mirror, listener, "SELECT pgtrickle.raise_alerts()")
    assert 660 <= stuck.pop("age_secs") < 720
    assert stuck == {"event": "watermark_stuck", "group": "pipeline", "source_oid": number}
    assert events(mirror, listener, "SELECT pgtrickle.raise_alerts()") == []
    mirror.run("SELECT pgtrickle.advance_watermark('sales', '2026-03-01 13:00Z')")
    back = {"event": "watermark_resumed", "source_oid": number}
    assert events(mirror, listener, "SELECT pgtrickle.raise_alerts()") == [back]


def test_an_operator_may_resume_where_that_is_told(mirror: Mirror, listener: psycopg.Connection[Any]) -> None:
    operator = mirror.db.create_role("operator_who_resumes")
    mirror.run(
        f"GRANT UPDATE, SELECT ON pgtrickle.pgt_stream_tables TO {operator}",
        f"GRANT USAGE ON SCHEMA pgtrickle TO {operator}",
    )
    mirror.run("UPDATE pgtrickle.pgt_stream_tables SET paused = true")
    with mirror.db.connect(user=operator, options="-c pgtrickle.notify_form=pg_trickle") as session:
        session.execute("UPDATE pgtrickle.pgt_stream_tables SET paused = false")
    assert [json.loads(payload)["event"] for _, payload in heard(listener)] == ["resumed"]
