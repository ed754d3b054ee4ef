"""What commands print, in both forms, and the exit codes they end with."""

from __future__ import annotations

import io
import json
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pytrickle.catalog.reports import HistoryRow
from pytrickle.cli.console import console
from pytrickle.cli.show.columns import columns
from pytrickle.config import EngineName
from pytrickle.errors import NotInstalled
from tests.unit.cli_recorder import NOON, Explained, Recorder, Result, Verification, recording, run, state, table


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


def test_a_refresh_is_one_line(client: Recorder) -> None:
    client.answers["refresh"] = Result()
    result = run("refresh", "report", "--respect-gate")
    assert result.stdout == (
        "shop.report  DIFFERENTIAL  +2 -1  through 2026-01-01 12:00:00+00:00  120 ms  2 changes in orders\n"
    )
    assert client.calls == [("refresh", ("report",), {"respect_gate": True, "full": False})]


def test_a_refresh_in_json_has_the_fields_of_the_result(client: Recorder) -> None:
    client.answers["refresh"] = Result()
    assert json.loads(run("--json", "refresh", "report").stdout) == {
        "stream_table": "shop.report",
        "action": "DIFFERENTIAL",
        "reason": "2 changes in orders",
        "rows_inserted": 2,
        "rows_deleted": 1,
        "effective_watermark": "2026-01-01T12:00:00+00:00",
        "duration": 0.12,
        "error": None,
        "effective_batch": None,
        "engine": None,
    }


def test_a_tick_fails_if_a_table_failed_and_not_if_one_was_gated(client: Recorder) -> None:
    client.answers["tick"] = lambda **_: (Result(action="SKIP", reason="pipeline: lines is 5 min behind orders"),)
    assert run("tick").exit_code == 0
    client.answers["tick"] = lambda **_: (Result(), Result(action="FAILED", error="disk full"))
    result = run("tick")
    assert result.exit_code == 1
    assert "disk full" in result.stdout
    client.answers["tick"] = ()
    assert run("tick").stdout == "Nothing is due.\n"


@pytest.mark.parametrize("command", [("refresh", "totals"), ("tick",), ("run", "--once")])
def test_an_engine_may_be_named(client: Recorder, command: tuple[str, ...]) -> None:
    client.answers |= {"refresh": Result(), "tick": ()}
    assert run(*command, "--engine", "postgres").exit_code == 0
    assert client.engine == "postgres"
    assert run(*command, "--engine", "duckdb").exit_code == 2


def test_run_prints_one_json_line_per_result(client: Recorder) -> None:
    def serve(*, on_result: Callable[[Result], None], **_: Any) -> None:
        on_result(Result())
        on_result(Result(action="NO_DATA"))

    client.answers["run"] = serve
    result = run("run", "--once", "--json")
    assert [json.loads(line)["action"] for line in result.stdout.splitlines()] == ["DIFFERENTIAL", "NO_DATA"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_run_lets_a_signal_stop_the_client_and_restores_the_handlers(client: Recorder, number: signal.Signals) -> None:
    before = signal.getsignal(number)

    def serve(**_: Any) -> None:
        os.kill(os.getpid(), number)

    client.answers["run"] = serve
    result = run("run")
    assert result.exit_code == 0
    assert [name for name, _, _ in client.calls] == ["run", "stop"]
    assert signal.getsignal(number) is before


def test_run_listens_for_signals_again_after_spark_replaced_the_handler(client: Recorder) -> None:
    finished = []

    def serve(*, on_result: Callable[[Result], None], **_: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        on_result(Result())
        os.kill(os.getpid(), signal.SIGINT)
        finished.append("the refresh under way")

    client.answers["run"] = serve
    assert run("run").exit_code == 0
    assert finished == ["the refresh under way"]
    assert [name for name, _, _ in client.calls] == ["run", "stop"]


def test_a_second_signal_ends_run_at_once(client: Recorder) -> None:
    def serve(**_: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second signal was ignored")

    client.answers["run"] = serve
    assert run("run").exit_code == 0


@pytest.mark.parametrize("sentence", ["There is no catalog.", "There is no catalog"])
def test_run_ends_with_one_line_of_its_log_where_it_cannot_go_on(client: Recorder, sentence: str) -> None:
    def serve(**_: Any) -> None:
        raise NotInstalled(sentence, "Run pytrickle install.")

    client.answers["run"] = serve
    result = run("run", "--log-format", "json")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert json.loads(line)["message"] == "There is no catalog. Run pytrickle install."


def test_run_prints_events_alone_and_in_json_to_stdout(client: Recorder) -> None:
    def serve(*, on_result: Callable[[Result], None], **_: Any) -> None:
        for action in ("NO_DATA", "SKIP", "SKIP", "DIFFERENTIAL"):
            on_result(Result(action=action))

    client.answers["run"] = serve
    printed = run("run", "--json").stdout
    assert [json.loads(line)["action"] for line in printed.splitlines()] == ["SKIP", "DIFFERENTIAL"]


def test_run_ends_well_when_spark_takes_the_interrupt(client: Recorder) -> None:
    def serve(**_: Any) -> None:
        raise KeyboardInterrupt

    client.answers["run"] = serve
    assert run("run").exit_code == 0


def test_verify_exits_with_3_on_a_difference_and_takes_all_tables_by_default(client: Recorder) -> None:
    client.answers["stream_tables"] = (table(), table(stream_table="shop.other"))
    client.answers["verify"] = lambda name: Verification(name, matches=name != "shop.other", missing=1)
    assert run("verify", "shop.report").exit_code == 0
    result = run("verify", "--json")
    assert result.exit_code == 3
    assert [row["matches"] for row in json.loads(result.stdout)] == [True, False]


def test_history_shows_the_error_of_a_failed_refresh(client: Recorder) -> None:
    row = HistoryRow(
        *(7, "shop.report", "DIFFERENTIAL", "FAILED", "SCHEDULER", "2 changes", NOON, NOON + timedelta(seconds=1)),
        *(None, None, None, None, None, "disk full"),
    )
    client.answers["history"] = (row,)
    screen = run("history").stdout
    assert "failed" in screen and "disk full" in screen and "1 s" in screen


def test_explain_prints_text_or_data(client: Recorder) -> None:
    client.answers["explain"] = Explained()
    assert run("explain", "report").stdout == "differential in PostgreSQL\n"
    assert json.loads(run("explain", "report", "--json").stdout) == {"mode": "DIFFERENTIAL"}


def test_a_pipe_gets_neither_colour_nor_cut_lines(client: Recorder) -> None:
    reason = "a reason that is much longer than any terminal is wide " * 5
    client.answers["status"] = state(table(decision="gated", reason=reason))
    screen = run("status").stdout
    assert "\x1b" not in screen
    assert reason.strip() in screen


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("setting", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_gets_colour_unless_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, setting: dict[str, str], coloured: bool
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    console(terminal).print("gated", style="yellow")
    assert ("\x1b[33m" in terminal.getvalue()) is coloured


@pytest.mark.parametrize(
    ("option", "duration"), [((), timedelta(seconds=45)), (("--duration", "5s"), timedelta(seconds=5))]
)
def test_the_demo_decides_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...], duration: timedelta
) -> None:
    played = []

    def play(*arguments: object) -> int:
        played.append(arguments)
        return 1

    monkeypatch.setattr("pytrickle.demo.run.run_demo", play)
    assert run("demo", "--json", *option).exit_code == 1
    assert played == [(None, duration, True, columns, EngineName.SPARK)]


@pytest.mark.parametrize("dsn", ["postgresql://me:s3cr3t@db/shop", "host=db password=s3cr3t", "sslpassword=s3cr3t"])
def test_a_password_in_an_argument_is_warned_of_once_and_not_repeated(client: Recorder, dsn: str) -> None:
    client.answers["refresh"] = Result()
    result = run("--dsn", dsn, "refresh", "report")
    assert result.stderr.count("(ps) shows the password in --dsn") == 1
    assert "PGPASSFILE" in result.stderr and "s3cr3t" not in result.stderr
    assert set(json.loads(run("refresh", "report", "--json", "--dsn", dsn).stderr)) == {"warning", "hint"}


def test_no_password_in_an_argument_is_no_warning(client: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTRICKLE_DSN", "postgresql://me:s3cr3t@db/shop")
    client.answers["refresh"] = Result()
    for arguments in ((), ("--dsn", "postgresql://me@db/shop"), ("--dsn", "not a string")):
        assert run("refresh", "report", *arguments).stderr == ""
