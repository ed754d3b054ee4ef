"""The command line against a client that only records what it is asked: usage, exit codes, both forms of output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import pytest
from typer.testing import CliRunner

import pytrickle
from pytrickle.catalog.model import HistoryRow, Status, StreamTableStatus, WatermarkRow, WatermarkStatusRow
from pytrickle.cli import app, main
from pytrickle.errors import ConnectionLost, PytrickleError, UnknownStreamTable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
COMMANDS = [
    *("install", "uninstall", "demo", "status", "doctor"),
    *("create", "alter", "drop", "explain", "verify"),
    *("refresh", "tick", "run", "history"),
    *("watermark advance", "watermark list", "watermark history"),
    *("group create", "group alter", "group drop", "group list"),
]


@dataclass(frozen=True)
class Result:
    stream_table: str = "shop.report"
    action: str = "DIFFERENTIAL"
    reason: str = "2 changes in orders"
    rows_inserted: int = 2
    rows_deleted: int = 1
    effective_watermark: datetime | None = NOON
    duration: timedelta = timedelta(milliseconds=120)
    error: str | None = None


@dataclass(frozen=True)
class Verification:
    stream_table: str
    matches: bool
    missing: int = 0
    unexpected: int = 0


@dataclass(frozen=True)
class Explained:
    text: str = "differential in PostgreSQL"
    data: dict[str, Any] = field(default_factory=lambda: {"mode": "DIFFERENTIAL"})


def table(**changes: Any) -> StreamTableStatus:
    row: dict[str, Any] = {
        "pgt_id": 1,
        "stream_table": "shop.report",
        "status": "ACTIVE",
        "refresh_mode": "AUTO",
        "schedule": "calculated",
        "watermark_gating": "gate",
        "decision": "run",
        "reason": None,
        "effective_watermark": NOON,
        "data_timestamp": NOON,
        "last_refresh_at": NOON,
        "staleness": timedelta(seconds=5),
        "last_action": "DIFFERENTIAL",
        "last_error": None,
    }
    return StreamTableStatus(**{**row, **changes})


class Recorder:
    """A client that notes the calls it gets and gives the answers it was told to give."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: dict[str, Any] = {}
        self.dsn: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def answer(*arguments: Any, **keywords: Any) -> Any:
            self.calls.append((name, arguments, keywords))
            given = self.answers.get(name)
            return given(*arguments, **keywords) if callable(given) else given

        return answer


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()

    def connect(dsn: str | None) -> Recorder:
        recorder.dsn = dsn
        return recorder

    monkeypatch.setattr(pytrickle, "connect", connect, raising=False)
    return recorder


def run(*arguments: str, **options: Any) -> Any:
    return CliRunner().invoke(app, arguments, prog_name="pytrickle", **options)


def test_every_command_has_help_with_an_example() -> None:
    for words in COMMANDS:
        result = run(*words.split(), "--help")
        assert result.exit_code == 0, words
        assert f"Example: pytrickle {words}" in result.stdout, words


def test_every_command_takes_dsn_and_json() -> None:
    for words in COMMANDS:
        usage = run(*words.split(), "--help").stdout
        assert "--dsn" in usage and "--json" in usage, words


def test_help_lists_every_command_with_a_whole_sentence() -> None:
    usage = run("--help").stdout
    assert "..." not in usage.partition("Commands:")[2]
    for words in COMMANDS:
        assert f"  {words.split()[0]} " in usage


def test_help_loads_neither_spark_nor_its_companions() -> None:
    script = (
        "import sys; sys.argv = ['pytrickle', '--help']\n"
        "import pytrickle.cli\n"
        "try: pytrickle.cli.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "loaded = {'pyspark', 'py4j', 'pandas', 'pyarrow'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--dsn", "dbname=a", "--json", "history"),
        ("history", "--dsn", "dbname=a", "--json"),
        ("--dsn", "dbname=b", "--json", "history", "--dsn", "dbname=a"),
    ],
)
def test_dsn_and_json_work_before_and_after_the_command(client: Recorder, arguments: tuple[str, ...]) -> None:
    client.answers["history"] = ()
    result = run(*arguments)
    assert (result.exit_code, json.loads(result.stdout), client.dsn) == (0, [], "dbname=a")


def test_options_may_stand_between_noun_and_verb(client: Recorder) -> None:
    client.answers["watermark_groups"] = ()
    assert json.loads(run("group", "--json", "--dsn", "dbname=a", "list").stdout) == []
    assert client.dsn == "dbname=a"


def test_without_dsn_the_environment_decides(client: Recorder) -> None:
    client.answers["watermark_groups"] = ()
    run("group", "list")
    assert client.dsn is None


def test_wrong_usage_exits_with_2_before_anything_is_opened(client: Recorder) -> None:
    for arguments in (
        ("create", "name"),
        ("create", "name", "SELECT 1", "--file", "-"),
        ("create", "name", "--file", "/does/not/exist"),
        ("create", "name", "SELECT 1", "--refresh-mode", "sometimes"),
        ("alter", "name"),
        ("group", "alter", "name"),
        ("group", "create", "name", "a", "--tolerance", "5"),
        ("watermark", "advance", "orders", "noon"),
        ("history", "--limit", "0"),
        ("uninstall",),
        ("nonsense",),
    ):
        assert run(*arguments).exit_code == 2, arguments
    assert client.calls == []


def test_wrong_usage_is_json_on_stderr_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pytrickle", "alter", "name", "--json"])
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    assert (end.value.code, captured.out) == (2, "")
    assert json.loads(captured.err)["type"] == "UsageError"


def test_the_query_is_an_argument_a_file_or_stdin(client: Recorder, tmp_path: Any) -> None:
    file = tmp_path / "query.sql"
    file.write_text("SELECT 'ü'", encoding="utf-8")
    run("create", "report", "SELECT 'ü'")
    run("create", "report", "--file", str(file))
    run("create", "report", "--file", "-", input="SELECT 'ü'")
    assert client.calls == [("create_stream_table", ("report", "SELECT 'ü'"), {})] * 3


def test_settings_reach_the_client_only_when_given(client: Recorder) -> None:
    run("alter", "report", "--refresh-mode", "full", "--watermark-gating", "hold_back", "--no-require-watermark")
    run("alter", "report", "--schedule", "5m")
    assert [keywords for _, _, keywords in client.calls] == [
        {"refresh_mode": "FULL", "watermark_gating": "hold_back", "require_watermark": False},
        {"schedule": "5m"},
    ]


def test_groups_and_watermarks_reach_the_client_typed(client: Recorder) -> None:
    run("group", "create", "pipeline", "orders", "lines", "--tolerance", "30 seconds")
    run("group", "create", "exact", "orders")
    run("group", "alter", "pipeline", "--source", "orders")
    run("watermark", "advance", "orders", "2026-01-01T13:00+01:00")
    assert client.calls == [
        ("create_watermark_group", ("pipeline", ["orders", "lines"]), {"tolerance": timedelta(seconds=30)}),
        ("create_watermark_group", ("exact", ["orders"]), {"tolerance": timedelta(0)}),
        ("alter_watermark_group", ("pipeline",), {"sources": ["orders"], "tolerance": None}),
        ("advance_watermark", ("orders", NOON), {}),
    ]


def fail(*_: Any, **__: Any) -> None:
    raise UnknownStreamTable('There is no stream table "nope".', "Look at pytrickle status.", sqlstate="42704")


def test_an_error_is_a_sentence_and_a_hint_without_traceback(client: Recorder) -> None:
    client.answers["explain"] = fail
    result = run("explain", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == 'error: There is no stream table "nope".\nhint: Look at pytrickle status.\n'


def test_an_error_is_one_json_document_on_stderr_when_asked_for(client: Recorder) -> None:
    client.answers["explain"] = fail
    result = run("explain", "nope", "--json")
    assert (result.exit_code, result.stdout) == (1, "")
    assert json.loads(result.stderr) == {
        "error": 'There is no stream table "nope".',
        "hint": "Look at pytrickle status.",
        "type": "UnknownStreamTable",
        "sqlstate": "42704",
    }


def test_a_refresh_is_one_line(client: Recorder) -> None:
    client.answers["refresh"] = Result()
    result = run("refresh", "report", "--respect-gate")
    assert result.stdout == (
        "shop.report  DIFFERENTIAL  +2 -1  through 2026-01-01 12:00:00+00:00  120 ms  2 changes in orders\n"
    )
    assert client.calls == [("refresh", ("report",), {"respect_gate": True})]


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
    def serve(*, on_result: Callable[[Result], None], **_: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        on_result(Result())
        os.kill(os.getpid(), signal.SIGINT)

    client.answers["run"] = serve
    assert run("run").exit_code == 0
    assert [name for name, _, _ in client.calls] == ["run", "stop"]


def test_a_second_signal_ends_run_at_once(client: Recorder) -> None:
    def serve(**_: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        pytest.fail("the second signal was ignored")

    client.answers["run"] = serve
    assert run("run").exit_code == 0


def test_run_reports_an_error_that_it_waits_out(client: Recorder) -> None:
    def serve(*, on_error: Callable[[PytrickleError], None], **_: Any) -> None:
        on_error(ConnectionLost("The server went away."))

    client.answers["run"] = serve
    result = run("run")
    assert result.exit_code == 0
    assert result.stderr.startswith("error: The server went away.\nhint: ")


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


def state(*tables: StreamTableStatus) -> Status:
    source = WatermarkRow("shop.orders", NOON, NOON, NOON, "loader", "0/16B3748")
    group = WatermarkStatusRow(
        "pipeline", NOON, NOON, timedelta(0), timedelta(minutes=1), True, NOON, None, "all sources agree"
    )
    return Status(tables, (group,), (source,), datetime.now(UTC) - timedelta(seconds=90))


def test_status_shows_three_blocks_and_the_age_of_the_snapshot(client: Recorder) -> None:
    client.answers["status"] = state(table(decision="gated", reason="pipeline: shop.lines is 5 min [or so] behind"))
    screen = run("status").stdout
    for text in ("Watermark groups", "Sources", "Stream tables", "1 min 30 s ago", "gated", "5 min [or so] behind"):
        assert text in screen


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


def test_stale_is_what_is_older_than_the_age_asked_for(client: Recorder) -> None:
    client.answers["status"] = state(table())
    assert run("status", "--fail-on", "stale", "--max-age", "6s").exit_code == 0
    assert run("status", "--fail-on", "stale", "--max-age", "4s").exit_code == 3


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


def test_uninstall_needs_a_yes_where_nobody_can_be_asked() -> None:
    result = run("uninstall")
    assert result.exit_code == 2
    assert "--yes" in result.stderr


@pytest.mark.parametrize(
    ("option", "duration"), [((), timedelta(minutes=1)), (("--duration", "5s"), timedelta(seconds=5))]
)
def test_the_demo_decides_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, option: tuple[str, ...], duration: timedelta
) -> None:
    played = []

    def play(*arguments: object) -> int:
        played.append(arguments)
        return 1

    monkeypatch.setattr("pytrickle.demo.run_demo", play)
    assert run("demo", "--json", *option).exit_code == 1
    assert played == [(None, duration, True)]
