"""The benchmark of the sink still runs: every way of writing leaves every row in the table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT

pytestmark = [pytest.mark.long, pytest.mark.repeats]


def test_every_way_of_writing_can_be_measured(tmp_path: Path) -> None:
    few = ["--rows", "50", "--batches", "2", "--repetitions", "1", "--output", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-m", "benchmarks.sink", *few]
    done = subprocess.run(program, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "`PostgresSinkSource`" in (tmp_path / "benchmarks-sink.md").read_text()
