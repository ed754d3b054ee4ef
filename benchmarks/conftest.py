"""What the measured files share: a server as users have it, and databases with pytrickle on it."""

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest
from psycopg import sql

import pytrickle
from benchmarks.server import debian_binaries, server_settings
from pytrickle.client.client import Client
from pytrickle.database import connect
from pytrickle.demo.server import Server, postgres_server

TEMPLATE = "installed"
_numbers = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the runs that take many minutes be asked for."""
    parser.addoption("--large", action="store_true", help="also measure what the documents publish, and write them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what takes many minutes unless it was asked for."""
    if config.getoption("--large"):
        return
    for item in items:
        if item.get_closest_marker("large"):
            item.add_marker(pytest.mark.skip(reason="--large measures it"))


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A durable server, with a database that the others are copied from."""
    with postgres_server(debian_binaries(), server_settings("256MB")) as started:
        with connect(started.dsn, role="benchmark") as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
        pytrickle.install(_dsn(started, TEMPLATE))
        yield started


@pytest.fixture(scope="module")
def dsn(server: Server) -> Iterator[str]:
    """The address of a database of one file's own."""
    name = f"benchmark_{next(_numbers)}"
    copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
    with connect(server.dsn, role="benchmark") as connection:
        connection.execute(copy)
        yield _dsn(server, name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@pytest.fixture(scope="module")
def connection(dsn: str) -> Iterator[psycopg.Connection]:
    """A session of that database."""
    with connect(dsn, role="benchmark") as opened:
        yield opened


@pytest.fixture(scope="module")
def client(dsn: str) -> Iterator[Client]:
    """A client that refreshes one table at a time, without Spark."""
    with pytrickle.connect(dsn, engine="postgres", max_concurrent_refreshes=1) as opened:
        yield opened


def _dsn(server: Server, name: str) -> str:
    return psycopg.conninfo.make_conninfo(server.dsn, dbname=name)
