"""Environments for tools that are too large, or too choosy, to be installed beside the tests."""

import subprocess
import venv
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.documents import ROOT


def debian_program(package: str, path: str) -> Path:
    """Return a program of a Debian package, which is unpacked once, and not installed: nothing of it is started."""
    home = ROOT / ".venv" / package
    if not (home / path).exists():
        # Two tests may want it at once: whoever is first to move theirs into place wins, and nobody sees half of it.
        with TemporaryDirectory(dir=home.parent) as beside, suppress(OSError):
            _unpack(package, Path(beside)).rename(home)
    return home / path


def _unpack(package: str, folder: Path) -> Path:
    download = ["apt-get", "download", "-qq", package]
    if subprocess.run(download, cwd=folder, capture_output=True).returncode:
        subprocess.run(["apt-get", "update", "-qq"], check=True, capture_output=True)
        subprocess.run(download, cwd=folder, check=True, capture_output=True)
    (archive,) = folder.glob("*.deb")
    subprocess.run(["dpkg-deb", "-x", archive, folder / "unpacked"], check=True)
    return folder / "unpacked"


def python_with(name: str, *packages: str) -> Path:
    """Return the Python of an environment with these packages; it is made once, below the environment of the tests."""
    home = ROOT / ".venv" / name
    program, done = home / "bin/python", home / "packages"
    if not done.exists() or done.read_text() != str(packages):
        venv.create(home, with_pip=True, clear=True)
        subprocess.run(
            [program, "-m", "pip", "install", "--quiet", "--no-compile", *packages], check=True, capture_output=True
        )
        done.write_text(str(packages))
    return program
