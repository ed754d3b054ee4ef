"""Numbers and durations that the database has no room for are wrong usage, whatever command takes them."""

from __future__ import annotations

import pytest

from tests.unit.cli_recorder import Recorder, recording, run

HUGE, BEYOND_INTEGER = "99999999999999999999", "2147483648"
WRONG = (
    ("alter", "sales", "--fuse-ceiling", HUGE),
    ("create", "sales", "SELECT 1", "--batch-tolerance", HUGE),
    ("alter", "sales", "--max-fixpoint-iterations", BEYOND_INTEGER),
    ("history", "sales", "--limit", BEYOND_INTEGER),
    ("late-rows", "--limit", HUGE),
    ("alerts", "--limit", HUGE),
    ("watermark", "history", "orders", "--limit", HUGE),
    ("discard", "orders", "--id", "1", "--id", HUGE),
    ("replay", "orders", "--id", f"-{HUGE}"),
    ("feed", "create", "shipping", "orders", "--max-rows", HUGE),
    ("feed", "advance", "shipping", HUGE),
    ("group", "create", "pipeline", "orders", "--batch-tolerance", HUGE),
    ("watermark", "advance", "orders", HUGE),
    ("wait", "sales", HUGE),
)
BELOW_ZERO = (
    ("wait", "sales", "1", "--timeout", "-1s"),
    ("group", "create", "pipeline", "orders", "--tolerance=-1s"),
    ("assert-fresh", "sales", "--", "-5m"),
    ("alter", "sales", "--statement-timeout", "-1s"),
)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_number_beyond_its_type_is_wrong_usage(client: Recorder, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, client.calls) == (2, [])
    said = " ".join(result.stderr.split())
    assert "Error: Invalid value for '" in said
    assert f"{arguments[-1]} is out of range; numbers go up to " in said


@pytest.mark.parametrize("arguments", BELOW_ZERO, ids=" ".join)
def test_a_duration_below_zero_is_wrong_usage(client: Recorder, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.exit_code, client.calls) == (2, [])
    assert f"'{arguments[-1].rpartition('=')[2]}' is below zero" in " ".join(result.stderr.split())


def test_the_largest_numbers_are_taken(client: Recorder) -> None:
    client.answers["discard_late_rows"] = 1
    assert run("discard", "orders", "--id", "9223372036854775807").exit_code == 0
    client.answers["history"] = ()
    assert run("history", "--limit", "2147483647").exit_code == 0
    assert [call[0] for call in client.calls] == ["discard_late_rows", "history"]
