"""Environments for tools that are too large, or too choosy, to be installed beside the tests."""

import subprocess
import venv
from pathlib import Path

from tests.documents import ROOT


def python_with(name: str, *packages: str) -> Path:
    """Return the Python of an environment with these packages; it is made once, below the environment of the tests."""
    home = ROOT / ".venv" / name
    program, done = home / "bin/python", home / "packages"
    if not done.exists() or done.read_text() != str(packages):
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", *packages], check=True, capture_output=True)
        done.write_text(str(packages))
    return program
