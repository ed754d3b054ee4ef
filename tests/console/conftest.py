"""The console of a furnished shop, asked in this process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from psycopg.conninfo import make_conninfo
from starlette.testclient import TestClient

from pytrickle.console.access import Access
from pytrickle.console.app import application
from tests.conftest import Database
from tests.console.shop import furnish

PASSWORD = "s3cr3t-of-the-dsn"
HERE = "http://127.0.0.1:8080"


def console(dsn: str) -> TestClient:
    """Return a browser, of a kind, that has opened the console of a database on this machine."""
    app = application(make_conninfo(dsn, password=PASSWORD), Access.of("127.0.0.1", 8080))
    return TestClient(app, HERE, raise_server_exceptions=False, follow_redirects=False)


@pytest.fixture(scope="module")
def shop(steady_db: Database) -> Database:
    """A furnished shop that the tests of a file leave as it is."""
    return furnish(steady_db, refreshes=10_000)


@pytest.fixture(scope="module")
def site(shop: Database) -> Iterator[TestClient]:
    """The console of the shop."""
    with console(shop.dsn) as opened:
        yield opened
