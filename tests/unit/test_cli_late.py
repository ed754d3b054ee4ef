"""Commands on late data, against the client that they stand for and against a real catalog."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from pytrickle.catalog.late_reports import EventTimeRow, LateRow, WatermarkMetrics
from tests.conftest import Database
from tests.unit.cli_recorder import NOON, Recorder, recording, run

LATE = LateRow(
    late_id=7,
    source="public.orders",
    event_time=NOON - timedelta(minutes=5),
    watermark=NOON,
    lag=timedelta(minutes=5),
    row_data={"id": "1", "note": None},
    arrived_at=NOON,
    arrived_by="loader",
    status="kept_out",
    settled_at=None,
    settled_by=None,
)
METRICS = WatermarkMetrics(
    source="public.orders",
    watermark=NOON,
    lag=timedelta(minutes=90),
    group_lag=timedelta(minutes=10),
    idle=False,
    idle_share=0.5,
    advances=12,
    rate=0.98765,
    last_interval=timedelta(minutes=10),
    median_interval=timedelta(minutes=9),
    since_advance=timedelta(minutes=3),
    late_rows=5,
    late_waiting=2,
    late_ratio=0.0123,
)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


def test_the_ledger_is_a_table_of_rows(client: Recorder) -> None:
    client.answers["late_rows"] = (LATE, replace(LATE, lag=None))
    result = run("late-rows", "orders", "--status", "kept_out", "-n", "5")
    assert client.calls == [("late_rows", ("orders", "kept_out", 5), {})]
    assert "7   public.orders  2026-01-01 11:55:00+00:00  2026-01-01 12:00:00+00:00  5 min" in result.stdout
    assert "note" not in result.stdout and "id=1" in result.stdout
    assert json.loads(run("late-rows", "--json").stdout)[0]["row_data"] == {"id": "1", "note": None}
    client.answers["late_rows"] = ()
    assert run("late-rows").stdout == "No late row.\n"
    assert run("late-rows", "--status", "lost").exit_code == 2


def test_replay_takes_all_rows_or_those_named(client: Recorder) -> None:
    client.answers["replay_late_rows"] = 3
    assert run("replay", "orders").stdout == "Replayed 3 late rows into orders.\n"
    run("replay", "orders", "--id", "7", "--id", "8", "--skip-conflicts")
    assert client.calls == [
        ("replay_late_rows", ("orders", None), {"skip_conflicts": False}),
        ("replay_late_rows", ("orders", [7, 8]), {"skip_conflicts": True}),
    ]


def test_discard_wants_rows_to_be_named(client: Recorder) -> None:
    client.answers["discard_late_rows"] = 1
    assert run("discard", "orders").exit_code == 2
    assert run("discard", "orders", "--id", "7").stdout == "Discarded 1 late row of orders.\n"
    assert client.calls == [("discard_late_rows", ("orders", [7]), {})]


def test_event_times_are_declared_and_listed(client: Recorder) -> None:
    run("source", "event-time", "orders", "day", "--too-late", "1d", "--time-zone", "UTC")
    run("source", "unset-event-time", "orders")
    assert client.calls == [
        ("set_event_time", ("orders", "day", timedelta(days=1), "UTC"), {}),
        ("unset_event_time", ("orders",), {}),
    ]
    row = EventTimeRow("public.orders", "day", "UTC", timedelta(days=1), NOON, "etl", "trigger x is missing")
    client.answers["event_times"] = (row, replace(row, time_zone=None, too_late=None, problem=None))
    lines = run("source", "event-times").stdout.splitlines()
    assert [" ".join(line.split()) for line in lines[1:]] == [
        "public.orders day in UTC 1 d trigger x is missing",
        "public.orders day - -",
    ]
    client.answers["event_times"] = ()
    assert run("source", "event-times").stdout == "No event time is declared.\n"


def test_metrics_are_numbers_or_dashes(client: Recorder) -> None:
    unknown = dict.fromkeys(("watermark", "lag", "group_lag", "idle", "idle_share", "rate", "last_interval"))
    unknown |= dict.fromkeys(("median_interval", "since_advance", "late_rows", "late_ratio"))
    client.answers["watermark_metrics"] = (METRICS, replace(METRICS, **unknown))
    lines = run("watermark", "metrics", "--json")
    assert json.loads(lines.stdout)[0]["rate"] == 0.98765
    drawn = run("watermark", "metrics").stdout
    for part in ("1 h 30 min", "10 min", "0.988", "no, 50%", "5, 1.23%", "never"):
        assert part in drawn


def test_commands_reach_the_catalog(every_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRICKLE_DSN", every_db.dsn)
    every_db.execute("CREATE TABLE orders (id integer, ordered_at timestamptz)")
    every_db.execute("SELECT pgtrickle.advance_watermark('orders', %s)", NOON)
    assert run("source", "event-time", "orders", "id").exit_code == 1
    assert run("source", "event-time", "orders", "ordered_at", "--too-late", "1h").exit_code == 0
    for number, hours in enumerate((0, 0.5, 2, 3)):
        every_db.execute("INSERT INTO orders VALUES (%s, %s)", number, NOON - timedelta(hours=hours))
    rows = json.loads(run("late-rows", "orders", "--json").stdout)
    assert [(row["row_data"]["id"], row["status"], row["lag"]) for row in rows] == [
        ("3", "kept_out", 10800.0),
        ("2", "kept_out", 7200.0),
        ("1", "loaded", 1800.0),
    ]
    kept = str(rows[0]["late_id"])
    assert "Discarded 1" in run("discard", "orders", "--id", kept).stdout
    assert "Replayed 1" in run("replay", "orders").stdout
    assert every_db.execute("SELECT id FROM orders ORDER BY 1") == [(0,), (1,), (2,)]
    (metrics,) = json.loads(run("watermark", "metrics", "--json").stdout)
    assert (metrics["late_rows"], metrics["late_waiting"]) == (3, 0)
    (declared,) = json.loads(run("source", "event-times", "--json").stdout)
    assert (declared["column_name"], declared["too_late"], declared["problem"]) == ("ordered_at", 3600.0, None)
    assert run("source", "unset-event-time", "orders").exit_code == 0
    assert json.loads(run("source", "event-times", "--json").stdout) == []
