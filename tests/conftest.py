"""Fixtures that every kind of test shares: PostgreSQL servers and fresh databases."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from _pytest.doctest import DoctestModule
from psycopg import sql
from psycopg.pq import ExecStatus

from pytrickle.catalog import install as migrate
from pytrickle.database.adapters import register_infinity
from scripts.archive_spark_classes import OPTIONS
from tests.documents import ROOT
from tests.repeats import divided, first, soak_further_repetitions
from tests.servers import NEWEST, OLDEST, Server

pytest_plugins = ["tests.playing", "tests.java"]

TEMPLATE = "pytrickle_template"

# Spark's workers import the package too, and take whatever python3 is first on the path otherwise.
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
# No Spark of the tests lives so long that compiling its code well would pay off: that takes half of its time.
# The archive, once `make test` wrote it, halves what a start takes; Java does without what is not there.
_ARCHIVE = ROOT / ".venv/spark-classes.jsa"
_ARCHIVED = f" -XX:SharedArchiveFile={_ARCHIVE} -Xlog:disable -Xlog:all=error:stderr"
os.environ.setdefault("SPARK_SUBMIT_OPTS", OPTIONS + _ARCHIVED)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Refuse to run where a module sets the environment of all tests as soon as it is imported."""
    before = dict(os.environ)
    result = yield
    changed = sorted(name for name, _ in before.items() ^ os.environ.items())
    if changed:
        raise pytest.UsageError(f"A test module sets {', '.join(changed)} while it is imported.")
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in no file of tests: it would take a third of the time in which they are collected."""
    found = yield
    tests = file_path.name.startswith("test_")
    return [collector for collector in found if not (tests and isinstance(collector, DoctestModule))]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `.ci/run` play another part of the repetitions for each commit."""
    parser.addoption("--part", metavar="K/N", help="of the repetitions only part K of N; K counts from 0")


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say which part of the repetitions is played, and how to play it again."""
    part = config.getoption("part")
    return f"of the repetitions part {part}, again by --part {part}" if part else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with the files that take minutes, so that none of them is left to one process at the end."""
    soak_further_repetitions(items)
    if part := config.getoption("part"):
        items[:], left = divided(items, part)
        config.hook.pytest_deselected(items=left)
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@dataclass
class Database:
    """A database of one test: ``execute`` for single statements, ``connect`` where two sessions must interleave."""

    dsn: str
    version: int
    _open: ExitStack = field(default_factory=ExitStack, repr=False)
    _own: list[psycopg.Connection[Any]] = field(default_factory=list, repr=False)

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """Open an autocommit connection that is closed when the test ends; ``options`` override the DSN."""
        connection = psycopg.connect(self.dsn, **{"autocommit": True, **options})
        register_infinity(connection)
        self._open.callback(connection.close)
        return connection

    def execute(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Run one statement in its own transaction; return its rows, also those without columns, or nothing."""
        if not self._own or self._own[-1].closed:
            self._own.append(self.connect())
        cursor = self._own[-1].execute(query, parameters or None)
        return cursor.fetchall() if cursor.pgresult and cursor.pgresult.status == ExecStatus.TUPLES_OK else []

    def value(self, query: str, *parameters: Any) -> Any:
        """Run one statement; return the first column of its only row."""
        ((value, *_),) = self.execute(query, *parameters)
        return value

    def create_role(self, name: str) -> str:
        """Create a login role that is dropped when the test ends, with everything it owns or was granted."""
        role = sql.Identifier(name)
        self.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role).as_string())
        self._open.callback(self._drop_role, role)
        return name

    def _drop_role(self, role: sql.Identifier) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))

    def close(self) -> None:
        self._open.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Callable[[int], Server]]:
    """Return the running server of a version; it is started when first asked for, with an installed template."""
    running: dict[int, Server] = {}

    def server(version: int) -> Server:
        if version not in running:
            running[version] = Server(version)
            _create_template(running[version])
        return running[version]

    yield server
    for started in running.values():
        started.stop()


def _create_template(server: Server) -> None:
    with psycopg.connect(server.create(TEMPLATE), autocommit=True) as connection:
        migrate.install(connection)
        connection.execute("VACUUM FULL")  # What installing left of the catalogs' rows would be copied for every test.
    server.close(TEMPLATE)


@contextmanager
def fresh(server: Server, template: str) -> Iterator[Database]:
    """Hold a fresh copy of a template; what was opened on it is closed before it is dropped."""
    with server.database(template) as dsn:
        database = Database(dsn, server.version)
        try:
            yield database
        finally:
            database.close()


@pytest.fixture
def db(servers: Callable[[int], Server]) -> Iterator[Database]:
    """A fresh database with pytrickle on the oldest supported PostgreSQL."""
    with fresh(servers(OLDEST), TEMPLATE) as database:
        yield database


@pytest.fixture(scope="module")
def steady_db(servers: Callable[[int], Server]) -> Iterator[Database]:
    """The same on the oldest supported PostgreSQL for tests of one file that leave it as it is, and share it."""
    with fresh(servers(OLDEST), TEMPLATE) as database:
        yield database


@pytest.fixture(params=first(1, (OLDEST, NEWEST)), ids=lambda version: f"pg{version}")
def every_db(servers: Callable[[int], Server], request: pytest.FixtureRequest) -> Iterator[Database]:
    """A fresh database with pytrickle on the oldest supported PostgreSQL, and in the long runs on the newest too."""
    with fresh(servers(request.param), TEMPLATE) as database:
        yield database


@pytest.fixture
def empty_db(servers: Callable[[int], Server]) -> Iterator[Database]:
    """A fresh database without pytrickle on the oldest supported PostgreSQL."""
    with fresh(servers(OLDEST), "template0") as database:
        yield database


@pytest.fixture(params=first(1, (OLDEST, NEWEST)), ids=lambda version: f"pg{version}")
def every_empty_db(servers: Callable[[int], Server], request: pytest.FixtureRequest) -> Iterator[Database]:
    """A fresh database without pytrickle on the oldest supported PostgreSQL, and in the long runs on the newest too."""
    with fresh(servers(request.param), "template0") as database:
        yield database
