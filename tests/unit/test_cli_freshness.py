"""The commands wait and assert-fresh: what reaches the client, what is printed, and the exit codes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytrickle.errors import NotFresh, PytrickleError, UnknownStreamTable, WaitTimeout
from tests.unit.cli_recorder import NOON, Recorder, recording, run


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


def raising(error: PytrickleError) -> Any:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    return fail


def test_wait_reaches_the_client_typed_and_says_what_was_reached(client: Recorder) -> None:
    client.answers["wait_for"] = NOON
    result = run("wait", "report", "2026-01-01T12:30+01:00", "--timeout", "5m")
    assert (result.exit_code, result.stdout) == (0, "report is complete through 2026-01-01 12:00:00+00:00.\n")
    asked = datetime(2026, 1, 1, 11, 30, tzinfo=UTC)
    assert client.calls == [("wait_for", ("report", asked), {"timeout": timedelta(minutes=5)})]


def test_wait_takes_infinity_and_thirty_seconds_by_default(client: Recorder) -> None:
    client.answers["wait_for"] = datetime.max.replace(tzinfo=UTC)
    result = run("wait", "report", "infinity", "--json")
    assert json.loads(result.stdout) == {"stream_table": "report", "effective_watermark": "infinity"}
    assert client.calls[0][2] == {"timeout": timedelta(seconds=30)}


def test_a_timeout_of_zero_is_not_the_default(client: Recorder) -> None:
    client.answers["wait_for"] = NOON
    run("wait", "report", "infinity", "--timeout", "0")
    assert client.calls[0][2] == {"timeout": timedelta(0)}


def test_assert_fresh_tells_the_age(client: Recorder) -> None:
    client.answers["assert_fresh"] = timedelta(seconds=90)
    assert run("assert-fresh", "report", "10m").stdout == "The data of report is 1 min 30 s old.\n"
    assert json.loads(run("assert-fresh", "report", "10m", "--json").stdout)["staleness"] == 90.0
    assert client.calls[0] == ("assert_fresh", ("report", timedelta(minutes=10)), {})


@pytest.mark.parametrize(
    ("arguments", "method", "error"),
    [
        (("wait", "report", "2026-01-01T12:00Z"), "wait_for", WaitTimeout("report is not complete", "Wait.")),
        (("assert-fresh", "report", "10m"), "assert_fresh", NotFresh("report is 12 minutes old", "Wait.")),
    ],
)
def test_what_is_merely_behind_exits_with_3(
    client: Recorder, arguments: tuple[str, ...], method: str, error: PytrickleError
) -> None:
    client.answers[method] = raising(error)
    result = run(*arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (3, "", f"error: {error}\nhint: Wait.\n")
    result = run(*arguments, "--json")
    assert (result.exit_code, json.loads(result.stderr)["type"]) == (3, type(error).__name__)
    client.answers[method] = raising(UnknownStreamTable("there is none"))
    assert run(*arguments).exit_code == 1
