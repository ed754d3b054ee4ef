"""Environments for tools that are too large, or too choosy, to be installed beside the tests."""

import subprocess
import venv
from pathlib import Path

from tests.documents import ROOT


def debian_program(package: str, path: str) -> Path:
    """Return a program of a Debian package, which is unpacked once, and not installed: nothing of it is started."""
    home = ROOT / ".venv" / package
    if not (home / path).exists():
        home.mkdir(exist_ok=True)
        download = ["apt-get", "download", "-qq", package]
        if subprocess.run(download, cwd=home, capture_output=True).returncode:
            subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
            subprocess.run(download, cwd=home, check=True, capture_output=True)
        (archive,) = home.glob("*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, home], check=True)
        archive.unlink()
    return home / path


def python_with(name: str, *packages: str) -> Path:
    """Return the Python of an environment with these packages; it is made once, below the environment of the tests."""
    home = ROOT / ".venv" / name
    program, done = home / "bin/python", home / "packages"
    if not done.exists() or done.read_text() != str(packages):
        venv.create(home, with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "--quiet", *packages], check=True, capture_output=True)
        done.write_text(str(packages))
    return program
