"""What `status` shows, and on what it fails."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from pytrickle.catalog.reports import Status, StreamTableStatus
from pytrickle.catalog.trouble_reports import ProblemRow
from tests.unit.cli_recorder import Recorder, recording, run, state, table


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


def test_status_shows_three_blocks_and_the_age_of_the_snapshot(client: Recorder) -> None:
    client.answers["status"] = state(table(decision="gated", reason="pipeline: shop.lines is 5 min [or so] behind"))
    screen = run("status").stdout
    for text in ("Watermark groups", "Sources", "Stream tables", "1 min 30 s ago", "gated", "5 min [or so] behind"):
        assert text in screen


def test_status_counts_and_names_what_the_planner_failed_on(client: Recorder) -> None:
    client.answers["status"] = state(table(), table(stream_table="shop.bad", planner_defect="KeyError('k')"))
    screen = run("status").stdout
    assert "Planner defects: 1." in screen
    assert "shop.bad: KeyError('k')" in screen
    client.answers["status"] = state(table())
    assert "Planner defects" not in run("status").stdout


def test_what_is_to_be_computed_anew_is_not_shown_as_well(client: Recorder) -> None:
    """Else a line in green would stand above one that says that changes may have been missed."""
    missed = "changes of shop.orders may have been missed: a trigger was disabled"
    problem = ProblemRow("shop.report", missed, "Its next refresh computes it anew.", lasting=False)
    client.answers["status"] = replace(state(table()), problems=(problem,))
    (line,) = [line for line in run("status").stdout.splitlines() if "AUTO" in line]
    assert line.split()[:2] == ["shop.report", "waiting"] and line.endswith(missed)
    assert run("status", "--fail-on", "error").exit_code == 0


def test_status_of_an_empty_catalog_says_so(client: Recorder) -> None:
    client.answers["status"] = Status((), (), (), datetime.now(UTC))
    assert run("status").stdout.count("none") == 3


@pytest.mark.parametrize(
    ("row", "trouble"),
    [
        (table(decision="gated"), "gated"),
        (table(decision="waiting"), "gated"),
        (table(status="ERROR"), "error"),
        (table(last_error="disk full"), "error"),
        (table(staleness=None), "stale"),
        (table(schedule="1s"), "stale"),
    ],
)
def test_status_fails_on_the_trouble_asked_about_and_on_no_other(
    client: Recorder, row: StreamTableStatus, trouble: str
) -> None:
    client.answers["status"] = state(table(), row)
    for asked in ("gated", "error", "stale"):
        assert run("status", "--fail-on", asked).exit_code == (3 if asked == trouble else 0), asked
    assert run("status").exit_code == 0


@pytest.mark.parametrize(
    ("changes", "word"), [({"paused": True}, "paused"), ({"tier": "frozen"}, "frozen"), ({"tier": "warm"}, "5m warm")]
)
def test_status_shows_what_ticks_leave_out_and_what_they_stretch(
    client: Recorder, changes: dict[str, Any], word: str
) -> None:
    client.answers["status"] = state(table(schedule="5m", decision="gated", **changes))
    assert word in run("status").stdout


def test_a_stretched_schedule_allows_older_data_and_ticks_left_out_any(client: Recorder) -> None:
    for tier, schedule, stale in (
        ("hot", "4s", True),
        ("warm", "4s", False),
        ("warm", "2s", True),
        ("cold", "2s", False),
    ):
        client.answers["status"] = state(table(tier=tier, schedule=schedule))
        assert run("status", "--fail-on", "stale").exit_code == (3 if stale else 0), (tier, schedule)
    for changes in ({"paused": True}, {"tier": "frozen"}):
        client.answers["status"] = state(table(schedule="1s", **changes))
        assert run("status", "--fail-on", "stale").exit_code == 0, changes


def test_stale_is_what_is_older_than_the_age_asked_for(client: Recorder) -> None:
    client.answers["status"] = state(table())
    assert run("status", "--fail-on", "stale", "--max-age", "6s").exit_code == 0
    assert run("status", "--fail-on", "stale", "--max-age", "4s").exit_code == 3


def test_the_status_of_one_group_shows_that_group_alone(client: Recorder) -> None:
    (group,) = state().groups
    groups = (group, replace(group, group_name="shipping"))
    client.answers["watermark_status"] = lambda *names: tuple(
        row for row in groups if not names or row.group_name in names
    )
    shown = run("group", "status", "shipping")
    assert shown.exit_code == 0
    assert "shipping" in shown.stdout
    assert "pipeline" not in shown.stdout
    names = [row["group_name"] for row in json.loads(run("--json", "group", "status", "pipeline").stdout)]
    assert names == ["pipeline"]
    assert len(json.loads(run("--json", "group", "status").stdout)) == 2
