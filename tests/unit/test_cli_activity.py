"""What is under way is shown on a terminal, and results as they come; nobody else sees anything of it."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable

import pyte
import pytest

from pytrickle.cli.activity import activity
from pytrickle.cli.command import Invocation
from pytrickle.cli.commands import refreshes
from tests.unit.cli_recorder import Result, recording, run

REFRESH, SPARK = logging.getLogger("pytrickle.refresh"), logging.getLogger("pytrickle.spark")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return one terminal that shows both what is printed and what goes on."""
    screen = Terminal()
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setattr("sys.stderr", screen)
    return screen


def work(on_result: Callable[[Result], None]) -> tuple[Result, ...]:
    """Refresh two stream tables, for the second of which Spark starts."""
    REFRESH.debug("refreshing %s", "shop.first", extra={"event": {"begins": "shop.first"}})
    on_result(Result("shop.first"))
    REFRESH.debug("refreshing %s", "shop.second", extra={"event": {"begins": "shop.second"}})
    SPARK.info("Starting Spark (local): 2 changes are many.", extra={"event": {"begins": "Spark"}})
    SPARK.warning("Spark is slow.")
    SPARK.info("Spark has started.", extra={"event": {"ends": "Spark"}})
    on_result(Result("shop.second", action="SKIP"))
    return Result("shop.first"), Result("shop.second", action="SKIP")


def test_a_tick_on_a_terminal_shows_what_goes_on_and_each_result_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = on_terminal(monkeypatch)
    recording(monkeypatch).answers["tick"] = work
    refreshes.tick(Invocation())
    seen = re.sub("\x1b\\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    for text in ("looking for what is due", "refreshing shop.first", "Starting Spark (local): 2 changes are many."):
        assert text in seen, text
    assert "warning: Spark is slow." in seen
    assert seen.count("shop.first  DIFFERENTIAL") == seen.count("shop.second  SKIP") == 1
    assert seen.index("shop.first  DIFFERENTIAL") < seen.index("refreshing shop.second")
    assert logging.getLogger("pytrickle").handlers == []


def test_no_result_is_erased_by_what_is_still_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def tick(on_result: Callable[[Result], None]) -> tuple[Result, ...]:
        results = tuple(Result(f"shop.number_{number}") for number in range(9))
        for result in results:
            REFRESH.debug("refreshing %s", result.stream_table, extra={"event": {"begins": result.stream_table}})
        for result in results:
            on_result(result)
            REFRESH.warning("after %s", result.stream_table)
        return results

    terminal = on_terminal(monkeypatch)
    recording(monkeypatch).answers["tick"] = tick
    refreshes.tick(Invocation())
    screen = pyte.Screen(120, 40)
    pyte.Stream(screen).feed(terminal.getvalue().replace("\n", "\r\n"))
    shown = [line.rstrip() for line in screen.display if line.strip()]
    assert [line.split()[0] for line in shown[::2]] == [f"shop.number_{number}" for number in range(9)]
    assert shown[1::2] == [f"warning: after shop.number_{number}" for number in range(9)]


def test_a_tick_into_a_pipe_prints_results_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    recording(monkeypatch).answers["tick"] = work
    result = run("tick")
    assert (len(result.stdout.splitlines()), "refreshing" in result.output) == (2, False)


def test_what_has_ended_is_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    on_terminal(monkeypatch)
    with activity("working") as now:
        now.begin("a", "refreshing a")
        now.begin("b", "refreshing b")
        now.end("a")
        now.end("nothing")
        shown = [task.description for task in now.display.tasks if task.visible]
        now.end("b")
        again = [task.description for task in now.display.tasks if task.visible]
    assert (shown, again) == (["refreshing b"], ["working"])
