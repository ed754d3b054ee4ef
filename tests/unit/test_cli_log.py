"""How the log of `pytrickle run` is written, and what a service manager is told."""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import socket
import subprocess
from datetime import timedelta
from pathlib import Path
from threading import Thread

import pytest

from pytrickle.cli.log import LogFormat, LogLevel, logged
from pytrickle.cli.service import Service, serving
from pytrickle.errors import ConnectionLost
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.journal import Journal
from tests.documents import ROOT, blocks
from tests.unit.cli_recorder import NOON

DONE = RefreshResult("shop.report", "DIFFERENTIAL", 'a "reason"', 2, 1, NOON, timedelta(seconds=3), engine="postgres")


def written(form: LogFormat, capsys: pytest.CaptureFixture[str], level: LogLevel = LogLevel.INFO) -> list[str]:
    with logged(form, level):
        journal = Journal()
        journal.result(DONE)
        journal.trouble(ConnectionLost("gone\nfor good\x1b[2J"))
        try:
            raise ValueError("of several\nlines")
        except ValueError:
            logging.getLogger("pytrickle.plan.analysis").exception("The planner fails")
        logging.getLogger("psycopg").warning("error ignored in rollback")
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


def test_each_event_is_one_line_of_text_with_time_level_and_logger(capsys: pytest.CaptureFixture[str]) -> None:
    result, trouble, defect = written(LogFormat.TEXT, capsys)
    assert result.endswith('INFO    pytrickle.refresh  shop.report DIFFERENTIAL +2 -1 in 3 s by postgres: a "reason"')
    assert "WARNING pytrickle.run  gone | for good\\u001b[2J. Trying again until that is over." in trouble
    assert "ERROR   pytrickle.plan.analysis  The planner fails | Traceback" in defect and "of several | lines" in defect
    assert "rollback" in written(LogFormat.TEXT, capsys, LogLevel.DEBUG)[-1]


def test_each_event_is_one_json_document_with_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    result, trouble, defect = map(json.loads, written(LogFormat.JSON, capsys))
    assert (result["level"], result["logger"], result["rows_inserted"]) == ("info", "pytrickle.refresh", 2)
    assert (result["effective_watermark"], result["duration"]) == ("2026-01-01T12:00:00+00:00", 3.0)
    assert (trouble["level"], trouble["error"]) == ("warning", "ConnectionLost")
    assert "ValueError" in defect["traceback"]


def test_each_event_is_one_line_of_logfmt(capsys: pytest.CaptureFixture[str]) -> None:
    result = written(LogFormat.LOGFMT, capsys)[0]
    fields = dict(part.split("=", 1) for part in shlex.split(result))
    assert (fields["level"], fields["stream_table"], fields["reason"]) == ("info", "shop.report", 'a "reason"')
    assert "error" not in fields


@pytest.fixture
def manager(tmp_path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    listening.bind(str(tmp_path / "notify"))
    listening.settimeout(10)
    return listening


def test_a_service_manager_is_told_of_the_begin_and_the_end(manager: socket.socket) -> None:
    with manager, serving({"NOTIFY_SOCKET": manager.getsockname()}) as service:
        service.ready("Refreshing.")
        assert manager.recv(100) == b"READY=1\nSTATUS=Refreshing."
        service.end.set()
        service.tell("STOPPING=1")
        assert manager.recv(100) == b"STOPPING=1"


def test_the_watchdog_hears_of_a_process_that_goes_round_or_works_and_of_no_other(manager: socket.socket) -> None:
    service = Service(manager.getsockname(), watchdog=0.02)
    with manager:
        service.beat(True)
        watch = Thread(target=service.watch)
        watch.start()
        assert manager.recv(100) == b"WATCHDOG=1"
        service.end.set()
        watch.join()
    service.last -= 1
    assert service.is_alive()
    service.busy = False
    assert not service.is_alive()
    service.beat(False)
    assert service.is_alive()


def test_a_watchdog_of_another_process_and_no_socket_are_none() -> None:
    assert Service.of({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": str(os.getpid())}).watchdog == 2.0
    assert Service.of({"WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "1"}).watchdog is None
    Service(None).tell("READY=1")
    Service("/nowhere/at/all").tell("READY=1")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd to ask")
def test_the_unit_in_the_documents_is_one_that_systemd_understands(tmp_path: Path) -> None:
    (unit,) = (block for block in blocks(ROOT / "docs/howto/operate.md") if block.language == "ini")
    # What it names besides need not be on this machine.
    text = unit.text.replace("/opt/pytrickle/bin/pytrickle", "/bin/true").replace("User=pytrickle", "User=root")
    file = tmp_path / "pytrickle.service"
    file.write_text(text)
    run = subprocess.run(["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
