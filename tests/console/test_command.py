"""The command: it serves until it is stopped, and says in a sentence what keeps it from serving."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.commands import commands
from tests.conftest import Database


def test_it_prints_its_address_and_serves_until_it_is_stopped(steady_db: Database) -> None:
    program = Path(sys.executable).with_name("pytrickle")
    command = [program, "--json", "console", "--dsn", steady_db.dsn, "--listen", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        address = json.loads("".join(process.stdout.readline() for _ in range(3)))["url"]
        assert address.startswith("http://127.0.0.1:") and "token" not in address
        with urlopen(address, timeout=30) as answer:
            assert b"No stream table yet" in answer.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_what_keeps_it_from_serving_is_said(steady_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    run = commands(steady_db.dsn)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = run("console", "--listen", str(port))
    assert (refused.exit_code, f"Nobody can listen on 127.0.0.1:{port}" in refused.stderr) == (1, True)
    assert run("console", "--listen", "nowhere").exit_code == 2
    assert "malformed" in commands("host=x port")("console", "--listen", "0").stderr
    monkeypatch.setitem(sys.modules, "pytrickle.console.serve", None)
    missing = run("console")
    assert missing.exit_code == 1
    assert "pip install 'pytrickle-postgres[console]'" in missing.stderr
