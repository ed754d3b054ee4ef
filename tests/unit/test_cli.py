"""The command line's grammar: help, options, wrong usage, errors, and what reaches the client."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from pytrickle.catalog.trouble_reports import SourceLimitsRow
from pytrickle.cli import main
from pytrickle.errors import UnknownStreamTable
from tests.unit.cli_recorder import NOON, Recorder, recording, run

COMMANDS = [
    *("install", "uninstall", "demo", "status", "doctor"),
    *("create", "alter", "drop", "explain", "verify"),
    *("refresh", "tick", "run", "history", "pause", "resume"),
    *("wait", "assert-fresh", "dag"),
    *("watermark advance", "watermark list", "watermark history"),
    *("group create", "group alter", "group drop", "group list", "group status"),
    *("refresh-group create", "refresh-group drop", "refresh-group list", "reset-fuse"),
    *(
        "gate",
        "ungate",
        "gates",
        "alerts",
        "source limits",
        "source idle",
        "source status",
        "source adopt",
        "source forget",
        "source checks",
        "top",
    ),
    *("freshness", "alert limits", "alert set", "alert reset"),
]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    return recording(monkeypatch)


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
        "loaded = {'pyspark', 'py4j', 'pandas', 'pyarrow', 'networkx'} & set(sys.modules)\n"
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
        ("wait", "report", "noon"),
        ("wait", "report", "2026-01-01T12:00Z", "--timeout", "soon"),
        ("source", "limits", "orders", "--on-stale", "hold"),
        ("source", "limits", "orders", "--no-limits", "--idle-after", "1d"),
        ("dag", "--format", "png"),
        ("dag", "--format", "svg", "--json"),
        ("assert-fresh", "report"),
        ("assert-fresh", "report", "young"),
        ("history", "--limit", "0"),
        ("uninstall",),
        ("pause",),
        ("pause", "name", "--all"),
        ("resume",),
        ("resume", "name", "--all"),
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
    run("alter", "report", "SELECT 2", "--allow-circular", "--max-fixpoint-iterations", "7")
    run("alter", "report", "--schedule", "5m", "--tier", "cold", "--gate-deadline", "1h", "--reset", "fuse_ceiling")
    unsaid = {"query": None, "reset": []}
    assert [keywords for _, _, keywords in client.calls] == [
        {**unsaid, "refresh_mode": "FULL", "watermark_gating": "hold_back", "require_watermark": False},
        {**unsaid, "query": "SELECT 2", "allow_circular": True, "max_fixpoint_iterations": 7},
        {**unsaid, "reset": ["fuse_ceiling"], "schedule": "5m", "tier": "cold", "gate_deadline": timedelta(hours=1)},
    ]


def test_pause_and_resume_take_one_stream_table_or_all(client: Recorder) -> None:
    client.answers.update(pause=1, resume=3)
    assert run("pause", "report").stdout == "Paused stream table report.\n"
    assert run("pause", "--all").stdout == "Paused 1 stream table.\n"
    assert run("resume", "--all").stdout == "Resumed 3 stream tables.\n"
    assert json.loads(run("resume", "report", "--json").stdout) == {"resumed": 3}
    assert [(name, arguments) for name, arguments, _ in client.calls] == [
        ("pause", ("report",)),
        ("pause", (None,)),
        ("resume", (None,)),
        ("resume", ("report",)),
    ]


def test_refresh_groups_and_fuses_reach_the_client(client: Recorder) -> None:
    run("refresh-group", "create", "dashboard", "totals", "counts")
    run("refresh-group", "create", "loose", "totals", "counts", "--isolation", "read_committed")
    run("refresh-group", "drop", "loose")
    run("reset-fuse", "totals")
    run("reset-fuse", "totals", "--reinitialize")
    assert client.calls == [
        ("create_refresh_group", ("dashboard", ["totals", "counts"], "repeatable_read"), {}),
        ("create_refresh_group", ("loose", ["totals", "counts"], "read_committed"), {}),
        ("drop_refresh_group", ("loose",), {}),
        ("reset_fuse", ("totals", "apply"), {}),
        ("reset_fuse", ("totals", "reinitialize"), {}),
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


def test_limits_reach_the_client_only_when_given(client: Recorder) -> None:
    run("group", "create", "g", "orders", "--stale-after", "2h", "--on-stale", "hold", "--idle-after", "1d")
    run("group", "alter", "g", "--reset", "stale_after", "--idle-after", "2d")
    run("source", "limits", "orders", "--stale-after", "90m")
    run("source", "limits", "orders", "--no-limits")
    two_hours, day = timedelta(hours=2), timedelta(days=1)
    created = {"tolerance": timedelta(0), "stale_after": two_hours, "on_stale": "hold", "idle_after": day}
    assert client.calls == [
        ("create_watermark_group", ("g", ["orders"]), created),
        (
            "alter_watermark_group",
            ("g",),
            {"sources": None, "tolerance": None, "idle_after": 2 * day, "reset": ["stale_after"]},
        ),
        ("set_source_limits", ("orders",), {"stale_after": timedelta(minutes=90)}),
        ("set_source_limits", ("orders",), {}),
    ]


def test_without_an_option_limits_are_shown_and_none_is_removed(client: Recorder) -> None:
    own = SourceLimitsRow(None, None, "warn", timedelta(days=1))
    client.answers["source_limits"] = (own, SourceLimitsRow("g", timedelta(hours=2), "hold", None))
    assert [line.split() for line in run("source", "limits", "orders").stdout.splitlines()] == [
        ["of", "stale", "after", "then", "idle", "after"],
        ["the", "source", "-", "-", "1", "d"],
        ["group", "g", "2", "h", "hold", "-"],
    ]
    shown = json.loads(run("source", "limits", "orders", "--json").stdout)
    assert [row["group_name"] for row in shown] == [None, "g"]
    client.answers["source_limits"] = ()
    assert run("source", "limits", "orders").stdout == "orders has no limits, and its groups have none.\n"
    assert client.calls == [("source_limits", ("orders",), {})] * 3


def test_what_to_do_about_a_dropped_source_reaches_the_client(client: Recorder) -> None:
    client.answers["forget_source"] = 1
    assert run("source", "adopt", "orders").stdout == "orders takes the place of the dropped one.\n"
    assert run("source", "forget", "orders").stdout == "Forgot orders, which was in 1 watermark group.\n"
    assert [call[:2] for call in client.calls] == [("adopt_source", ("orders",)), ("forget_source", ("orders",))]


def test_gates_and_idle_marks_reach_the_client(client: Recorder) -> None:
    run("gate", "orders", "--reason", "reload")
    run("ungate", "orders")
    run("source", "idle", "orders")
    assert [call[:2] for call in client.calls] == [
        ("gate_source", ("orders", "reload")),
        ("ungate_source", ("orders",)),
        ("mark_idle", ("orders",)),
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


def test_uninstall_needs_a_yes_where_nobody_can_be_asked() -> None:
    result = run("uninstall")
    assert result.exit_code == 2
    assert "--yes" in result.stderr


def test_the_module_is_the_command() -> None:
    found = [
        subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
        for command in ([sys.executable, "-m", "pytrickle"], [Path(sys.executable).with_name("pytrickle")])
    ]
    assert found[0] == found[1] != ""
