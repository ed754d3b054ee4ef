"""A client on the run's Spark session, and the shop that most acceptance tests play in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL);
CREATE TABLE order_lines (order_id int, line int, quantity int NOT NULL, PRIMARY KEY (order_id, line));
CREATE INDEX ON orders (customer);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob');
"""

Rows = set[tuple[Any, ...]]


@dataclass(frozen=True)
class Shop:
    """A database of orders, order lines and customers, and a client that refreshes stream tables over them."""

    db: Database
    pt: pytrickle.Client

    def load(self, source: str, clock: str, *rows: tuple[int, ...]) -> None:
        """Load rows and advance the source's watermark in one transaction, as a well-behaved loader does."""
        with self.db.connect() as loader, loader.transaction():
            for row in rows:
                loader.execute(f"INSERT INTO {source} VALUES ({', '.join(map(str, row))})".encode())
            advance(loader, source, clock)

    def rows(self, table: str) -> Rows:
        """Return the rows of a table; a row that is there twice is a failure."""
        rows = self.db.execute(f"SELECT * FROM {table}")
        assert len(set(rows)) == len(rows), f"{table} holds a row twice: {sorted(rows)}"
        return set(rows)

    def tick(self) -> dict[str, pytrickle.RefreshResult]:
        """Tick once and return the results by unqualified name; a failed refresh is a failure."""
        results = self.pt.tick()
        assert not [result for result in results if result.error]
        return {result.stream_table.partition(".")[2]: result for result in results}

    def assert_verified(self) -> None:
        """Check every stream table against its defining query at its own frontier."""
        found = [self.pt.verify(table.stream_table) for table in self.pt.stream_tables()]
        assert found and not [result for result in found if not result.matches]


def at(clock: str) -> str:
    """Return the event time of a clock reading, on the one day that the tests know."""
    return clock if clock == "infinity" else f"2026-01-01 {clock}+00"


def advance(connection: Any, source: str, clock: str) -> None:
    """Advance a source's watermark on a connection, within its transaction if it has one open."""
    connection.execute("SELECT pgtrickle.advance_watermark(%s, %s)", (source, at(clock)))


@pytest.fixture
def connect(db: Database, spark: SparkSession) -> Iterator[Callable[..., pytrickle.Client]]:
    """Open further clients of the test's database on the shared Spark session."""
    clients: list[pytrickle.Client] = []

    def connect(**settings: Any) -> pytrickle.Client:
        clients.append(pytrickle.Client(pytrickle.Settings(db.dsn, **settings), spark))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def shop(db: Database, spark: SparkSession) -> Iterator[Shop]:
    """An empty shop with two customers, Ada (1) and Bob (2)."""
    with db.connect() as connection:
        connection.execute(SHOP)
    with pytrickle.connect(db.dsn, spark=spark) as client:
        yield Shop(db, client)
