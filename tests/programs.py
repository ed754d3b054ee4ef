"""Programs that a test runs because they need a process, and a Java, of their own."""

import os
import subprocess
import sys
from pathlib import Path

from tests.documents import ROOT


def printed_by(program: Path, *arguments: str, python: Path = Path(sys.executable)) -> list[str]:
    """Run a Python program to its end, by another Python if one is given; return the lines it wrote."""
    own = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": str(python)}
    command = [str(python), str(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, cwd=ROOT, env=own)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()
