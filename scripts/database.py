"""The database from which references are written: the one that is named, or a throw-away one, as the tests have."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pytrickle.catalog import install as migrate


@contextmanager
def catalog() -> Iterator[psycopg.Connection]:
    """Connect to the DSN of the command line, or to a new server with pytrickle installed."""
    if len(sys.argv) > 1:
        with psycopg.connect(sys.argv[1], autocommit=True) as connection:
            yield connection
        return
    from tests.servers import OLDEST, Server

    server = Server(OLDEST)
    try:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            migrate.install(connection)
            yield connection
    finally:
        server.stop()
