"""How the command line ends where it is interrupted early, or nobody can read what it writes."""

import os
import signal
import subprocess
import sys

import pytest

from tests.documents import ROOT

PRESSED = """
import os, signal, sys

class Press:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

# Whoever started the tests in the background ignores Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Press())
sys.argv = ["pytrickle", "status", "--dsn", "host=/nowhere"]
from pytrickle.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "code"),
    [("pytrickle.cli", -signal.SIGINT), ("typer", -signal.SIGINT), ("pytrickle.client.reports", 130)],
)
def test_ctrl_c_while_a_command_is_loaded_ends_it_without_a_traceback(module: str, code: int) -> None:
    run = subprocess.run(
        [sys.executable, "-c", PRESSED.format(module=module)], capture_output=True, text=True, cwd=ROOT
    )
    assert (run.returncode, "Traceback" in run.stderr) == (code, False)


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-"])
@pytest.mark.parametrize("command", ["install --print", "--help", "doctor"])
def test_a_closed_output_is_nothing_to_stumble_over(command: str, closed: str) -> None:
    called = f"{sys.executable} -m pytrickle {command} {closed}"
    surroundings = {**os.environ, "PYTRICKLE_DSN": "host=/nowhere"}
    run = subprocess.run(called, shell=True, capture_output=True, text=True, cwd=ROOT, env=surroundings)
    assert "Traceback" not in run.stderr
    assert run.returncode == (3 if command == "doctor" else 0)
