"""One connection for whoever reads a few times and ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from pytrickle.database.connect import open_connection


@dataclass(slots=True)
class Single:
    """Lends the same connection again and again, in one thread: to load a pool takes longer than a small command."""

    dsn: str = field(repr=False)
    _connection: psycopg.Connection | None = None

    @contextmanager
    def borrow(self) -> Iterator[psycopg.Connection]:
        """Lend the connection for the length of the block; what it has begun is rolled back."""
        if self._connection is None:
            self._connection = open_connection(self.dsn, role="catalog", autocommit=False)
        try:
            yield self._connection
        finally:
            if not self._connection.closed:
                self._connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
