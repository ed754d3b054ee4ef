"""What a refresher that runs for days logs: events once, outages at both ends, and a summary so often."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from pytrickle.errors import ConnectionLost
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.journal import Journal

DONE = RefreshResult("shop.report", "DIFFERENTIAL", "2 changes", 2, 1, None, timedelta(seconds=3), engine="postgres")
NOTHING = replace(DONE, stream_table="shop.quiet", action="NO_DATA")
SKIPPED = replace(DONE, action="SKIP", reason="lines is behind")
FAILED = replace(DONE, action="FAILED", error="disk full")

OnResult = Callable[[RefreshResult], None]


@pytest.fixture(autouse=True)
def every_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pytrickle")


def tick(*results: RefreshResult) -> Callable[[OnResult], None]:
    def tell(on_result: OnResult) -> None:
        for result in results:
            on_result(result)

    return tell


def test_what_found_nothing_is_no_event_and_a_skip_is_one_until_its_reason_changes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal = Journal()
    journal.tick(tick(NOTHING, SKIPPED))
    journal.tick(tick(NOTHING, SKIPPED))
    journal.tick(tick(replace(SKIPPED, reason="orders is behind")))
    journal.tick(tick(DONE))
    journal.tick(tick(SKIPPED, FAILED))
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("INFO", "shop.report SKIP +2 -1 in 3 s by postgres: lines is behind"),
        ("INFO", "shop.report SKIP +2 -1 in 3 s by postgres: orders is behind"),
        ("INFO", "shop.report DIFFERENTIAL +2 -1 in 3 s by postgres: 2 changes"),
        ("INFO", "shop.report SKIP +2 -1 in 3 s by postgres: lines is behind"),
        ("ERROR", "shop.report FAILED +2 -1 in 3 s by postgres: disk full"),
    ]
    assert {record.name for record in caplog.records} == {"pytrickle.refresh"}


def test_an_outage_is_one_line_when_it_begins_and_one_when_a_tick_was_done_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    times = iter((0.0, 10.0, 25.0, 26.0, 26.0))
    journal = Journal(clock=lambda: next(times))
    journal.lead(True)
    for _ in range(3):
        journal.trouble(ConnectionLost("the server went away"))
    journal.lead(True)
    journal.tick(tick())
    assert [record.getMessage() for record in caplog.records] == [
        "Refreshing.",
        "the server went away. Trying again until that is over.",
        "It is over after 16 s.",
    ]


def test_each_cause_that_lets_an_outage_last_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    journal = Journal(clock=lambda: 0.0)
    journal.lead(True)
    for _ in range(2):
        for cause in ("the server went away", "The role may only read.", "The role may only read."):
            journal.trouble(ConnectionLost(cause))
    journal.tick(tick())
    journal.trouble(ConnectionLost("the server went away"))
    assert [record.getMessage().split(". ")[0] for record in caplog.records] == [
        "Refreshing.",
        "the server went away",
        "The role may only read",
        "It is over after 0 s.",
        "the server went away",
    ]


def test_a_summary_comes_once_in_each_period_and_counts_what_was_done_in_it(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    journal = Journal(timedelta(minutes=1), clock=lambda: now[0])
    journal.lead(True)
    for seconds in (20.0, 40.0, 60.0, 80.0):
        now[0] = seconds
        journal.tick(tick(DONE, FAILED, NOTHING, SKIPPED))
    summaries = [record.getMessage() for record in caplog.records if record.getMessage().startswith("In ")]
    assert summaries == [
        "In 1 min: 3 ticks, 3 DIFFERENTIAL, +6 -3 rows, 3 failed, 0 s at work, the longest 3 s (shop.report)."
    ]


def test_callbacks_are_told_everything() -> None:
    told: list[object] = []
    journal = Journal(None, told.append, told.append, told.append)
    error = ConnectionLost("The server went away.")
    journal.lead(False)
    journal.trouble(error)
    journal.tick(tick(NOTHING, SKIPPED, SKIPPED))
    assert told == [False, error, NOTHING, SKIPPED, SKIPPED]
