"""The pooled SQLAlchemy engine for reading and writing the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
import sqlalchemy

from pytrickle.database.connect import open_connection


def engine(dsn: str = "") -> sqlalchemy.Engine:
    """Return a pooled engine on psycopg whose connections are opened as ``connect`` opens them.

    Nothing is connected yet. Call ``dispose()`` when done; wrap its use in ``translate_errors``.
    """
    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: open_connection(dsn, role="catalog", autocommit=False),
        pool_pre_ping=True,
        hide_parameters=True,
    )


@dataclass(frozen=True, slots=True)
class Pool:
    """Connections of an engine for those who read by psycopg, each of them in one thread at a time."""

    engine: sqlalchemy.Engine

    @contextmanager
    def borrow(self) -> Iterator[psycopg.Connection]:
        """Lend a connection for the length of the block; what it has begun is rolled back."""
        with self.engine.connect() as connection:
            borrowed = connection.connection.driver_connection
            assert isinstance(borrowed, psycopg.Connection)
            try:
                yield borrowed
            finally:
                if not _rolled_back(borrowed):
                    connection.invalidate()

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()


def _rolled_back(connection: psycopg.Connection) -> bool:
    """Roll back what was begun; return whether the server was there to do so.

    The pool would roll back as well, and write to standard error, with a traceback, that it could not.
    """
    try:
        connection.rollback()
    except psycopg.Error:
        return False
    return True
