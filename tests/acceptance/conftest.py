"""A client on the run's Spark session, and the shop that most acceptance tests play in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.errors import PytrickleError
from pytrickle.schedule.pass_ import Pass
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL);
CREATE TABLE order_lines (order_id int, line int, quantity int NOT NULL, PRIMARY KEY (order_id, line));
CREATE INDEX ON orders (customer);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob');
"""

EVENTS = """
CREATE TABLE clicks (id int PRIMARY KEY, at timestamptz NOT NULL, page int NOT NULL, took numeric NOT NULL);
CREATE TABLE views (id int PRIMARY KEY, at timestamptz NOT NULL, page int NOT NULL);
CREATE INDEX ON views (page);
"""

JOIN = "SELECT o.id, l.line, l.quantity FROM orders o JOIN order_lines l ON l.order_id = o.id"
ORDERS = "SELECT id, amount FROM orders"
TABLES = {
    "totals": "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer",
    "named": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer",
    "ranked": "SELECT id, customer, amount, row_number() OVER (ORDER BY id) AS rank FROM orders",
}
NAMES = {1: "Ada", 2: "Bob"}

Rows = set[tuple[Any, ...]]
Meanwhile = Callable[[str], None]


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
        clients.append(pytrickle.Client(pytrickle.Settings(db.dsn, **{"direct_delta_rows": 0, **settings}), spark))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture(params=first(1, ("local_shop", "spark_shop")), ids=("local", "through spark"))
def shop(request: pytest.FixtureRequest) -> Shop:
    """An empty shop with two customers, Ada (1) and Bob (2): without Spark, and in the long run through Spark."""
    found: Shop = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def spark_shop(db: Database, spark: SparkSession) -> Iterator[Shop]:
    """An empty shop whose stream tables are refreshed by Spark, however few rows there are."""
    with db.connect() as connection:
        connection.execute(SHOP)
    with pytrickle.connect(db.dsn, spark=spark, direct_delta_rows=0) as client:
        yield Shop(db, client)


@pytest.fixture
def local_shop(db: Database) -> Iterator[Shop]:
    """An empty shop without Spark: PostgreSQL computes what it would, for tests of what comes before and after."""
    with opened(db) as shop:
        yield shop


@contextmanager
def opened(db: Database) -> Iterator[Shop]:
    with db.connect() as connection:
        connection.execute(SHOP)
    with local_client(db.dsn) as (client, _):
        yield Shop(db, client)


@pytest.fixture(scope="module")
def steady(steady_db: Database) -> Iterator[Shop]:
    """The shop of `filled` for tests that leave it as it is, and share it."""
    with opened(steady_db) as shop:
        yield fill(shop)


@pytest.fixture
def events(local_shop: Shop) -> Shop:
    """Clicks and views, in one watermark group."""
    with local_shop.db.connect() as connection:
        connection.execute(EVENTS)
    local_shop.pt.create_watermark_group("site", ["clicks", "views"])
    return local_shop


@pytest.fixture
def filled(shop: Shop) -> Shop:
    """A filled stream table `report` over orders, and a watermark group that orders belong to."""
    return fill(shop)


def fill(shop: Shop) -> Shop:
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.load("orders", "12:00", (1, 1, 10))
    shop.pt.create_stream_table("report", "SELECT id, amount FROM orders")
    shop.tick()
    return shop


def assert_explained(error: PytrickleError) -> None:
    """An error is one plain sentence, and its hint says what to do."""
    assert error.message and "\n" not in error.message
    assert "Traceback" not in error.message and "psycopg" not in error.message
    assert error.hint and error.hint != error.message


@pytest.fixture
def pipeline(shop: Shop) -> Shop:
    """Orders and order lines in one watermark group without tolerance."""
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    return shop


def misalign(shop: Shop) -> None:
    """Let orders run five minutes ahead of their lines, with an order whose line has not come yet."""
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 1))
    shop.tick()
    shop.load("orders", "12:05", (2, 1, 20))


def status(shop: Shop, name: str) -> Any:
    (found,) = (row for row in shop.pt.stream_tables() if row.stream_table == f"public.{name}")
    return found


def clock(moment: Any) -> str | None:
    return moment and f"{moment:%H:%M}"


@pytest.fixture
def held(shop: Shop) -> Shop:
    """Three held-back tables over orders: an aggregate and a join, both differential, and a window, which is FULL."""
    shop.pt.create_watermark_group("loads", ["orders"])
    for name, query in TABLES.items():
        shop.pt.create_stream_table(name, query, watermark_gating="hold_back", require_watermark=True)
    return shop


def assert_shows(shop: Shop, *orders: tuple[int, int, int]) -> None:
    """Check all three tables, each in its own words, against the orders that the cut covers."""
    assert shop.rows("totals") == _totals(orders)
    assert shop.rows("named") == {(number, NAMES[customer], amount) for number, customer, amount in orders}
    assert shop.rows("ranked") == {(*order, rank) for rank, order in enumerate(sorted(orders), 1)}
    shop.assert_verified()


def _totals(orders: tuple[tuple[int, int, int], ...]) -> Rows:
    customers = {customer for _, customer, _ in orders}
    amounts = {c: [amount for _, customer, amount in orders if customer == c] for c in customers}
    return {(c, len(found), sum(found)) for c, found in amounts.items()}


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch, db: Database) -> Meanwhile:
    """Have a statement committed once, when the next pass has its snapshot and has read nothing yet."""
    left: list[str] = []
    began = Pass.at

    def began_before_another(*arguments: Any) -> Pass:
        run = began(*arguments)
        if left:
            db.execute(left.pop())
        return run

    monkeypatch.setattr(Pass, "at", began_before_another)
    return left.append
