"""Who listens is told, in our form, in that of the extension, or in both."""

from __future__ import annotations

import json
from typing import Any

import psycopg
import pytest

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
