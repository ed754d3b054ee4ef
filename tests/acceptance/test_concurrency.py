"""Writers of every kind at work during many ticks: nothing is lost, nothing is applied twice."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import psycopg
import pytest

import pytrickle
from pytrickle.compute.engine import LazyEngine
from pytrickle.plan import placement
from tests.acceptance.conftest import Shop
from tests.repeats import first
from tests.waiting import wait_for

pytestmark = pytest.mark.long

TICKS = (4, 50)
TABLES = {
    "totals": "SELECT customer, count(*) AS n, sum(amount) AS amount, max(amount) AS top FROM orders GROUP BY customer",
    "named": "SELECT o.id, c.name, o.amount FROM orders o JOIN customers c ON c.id = o.customer",
    "over_totals": "SELECT c.name, t.n, t.amount FROM totals t JOIN customers c ON c.id = t.customer",
    "ranked": "SELECT id, amount, row_number() OVER (ORDER BY amount, id) AS rank FROM orders WHERE amount > 90",
}
HELD = "SELECT o.id, count(l.line) AS lines FROM shipments o LEFT JOIN parcels l ON l.shipment = o.id GROUP BY o.id"

Write = Callable[[psycopg.Connection[Any], random.Random], None]


@pytest.fixture
def shop(spark_shop: Shop) -> Shop:
    """Spark is what these tests are about, so every run plays them through it."""
    return spark_shop


def insert(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    connection.execute(
        "INSERT INTO orders SELECT n, %s, %s FROM generate_series(%s::int, %s::int) AS n ON CONFLICT (id) DO UPDATE"
        " SET amount = orders.amount + 1",
        (chance.randint(1, 4), chance.randint(1, 100), start := chance.randint(1, 300), start + chance.randint(0, 5)),
    )


def update(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    connection.execute(
        "UPDATE orders SET amount = %s, customer = %s WHERE id = %s",
        (chance.randint(1, 100), chance.randint(1, 4), chance.randint(1, 300)),
    )


def delete(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    start = chance.randint(1, 300)
    connection.execute("DELETE FROM orders WHERE id BETWEEN %s AND %s", (start, start + 5))


def rename(connection: psycopg.Connection[Any], chance: random.Random) -> None:
    connection.execute(
        "INSERT INTO customers VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name",
        (chance.randint(1, 4), chance.choice(("Ada", "Bob", "Cy"))),
    )


WRITES: tuple[Write, ...] = (insert, insert, update, update, delete, rename)


def write(shop: Shop, seed: int, stop: Event) -> int:
    """Run random transactions, some with savepoints, some rolled back, until told to stop; count those committed."""
    chance, committed = random.Random(seed), 0
    with psycopg.connect(shop.db.dsn, autocommit=True) as connection:
        while not stop.is_set():
            rolls_back = chance.random() < 0.25
            try:
                with connection.transaction(force_rollback=rolls_back):
                    for _ in range(chance.randint(1, 4)):
                        with connection.transaction(force_rollback=chance.random() < 0.25):
                            chance.choice(WRITES)(connection, chance)
                        stop.wait(chance.random() * 0.02)
                committed += not rolls_back
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                continue
    return committed


def load(shop: Shop, stop: Event) -> int:
    """Load shipments, and in a later transaction their parcels, each with its advance; return how many loads."""
    loads, three = 0, "generate_series(0, 2) AS n"
    with psycopg.connect(shop.db.dsn, autocommit=True) as connection:
        while not stop.is_set():
            loads += 1
            moment = f"2026-01-01 00:00+00'::timestamptz + interval '{loads} seconds"
            for statement in (
                f"INSERT INTO shipments SELECT {loads} * 10 + n FROM {three}",
                f"INSERT INTO parcels SELECT {loads} * 10 + n, p FROM {three}, generate_series(0, n) AS p",
            ):
                table = statement.split()[2]
                with connection.transaction():
                    connection.execute(statement.encode())
                    connection.execute(f"SELECT pgtrickle.advance_watermark('{table}', '{moment}')".encode())
                stop.wait(0.05)
    return loads


@contextmanager
def at_work(*jobs: Callable[[Event], int]) -> Iterator[list[Future[int]]]:
    """Run jobs in threads for the length of the block; a job that fails fails the test."""
    stop = Event()
    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(job, stop) for job in jobs]
        try:
            yield futures
        finally:
            stop.set()
    assert all(future.result() > 0 for future in futures)


@pytest.fixture
def busy(shop: Shop) -> Shop:
    """Stream tables over orders and customers that many write, and a held-back one over shipments and parcels."""
    shop.db.execute("CREATE TABLE shipments (id int PRIMARY KEY)")
    shop.db.execute("CREATE TABLE parcels (shipment int NOT NULL, line int NOT NULL, PRIMARY KEY (shipment, line))")
    shop.pt.create_watermark_group("deliveries", ["shipments", "parcels"])
    for name, query in TABLES.items():
        shop.pt.create_stream_table(name, query)
    shop.pt.create_stream_table("held", HELD, watermark_gating="hold_back", require_watermark=True)
    return shop


@pytest.mark.parametrize("ticks", first(0, TICKS, then=1))
def test_tables_match_their_queries_at_every_tick_whatever_writers_do(busy: Shop, ticks: int) -> None:
    seen = []
    jobs = [lambda stop, seed=seed: write(busy, seed, stop) for seed in range(4)]
    with at_work(*jobs, lambda stop: load(busy, stop)) as futures:
        for _ in range(ticks):
            busy.tick()
            busy.assert_verified()
            shown = busy.rows("held")
            assert all(lines == number % 10 + 1 for number, lines in shown)
            seen.append(len(shown))
            assert all(future.running() for future in futures)
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    busy.tick()
    for name, query in (*TABLES.items(), ("held", HELD)):
        assert busy.rows(name) == set(busy.db.execute(query))


@pytest.mark.repeats
def test_two_refreshers_at_once_apply_every_change_once(busy: Shop, connect: Callable[..., pytrickle.Client]) -> None:
    def refresh(client: pytrickle.Client) -> list[pytrickle.RefreshResult]:
        return [result for _ in range(2) for result in client.tick()]

    busy.tick()
    clients = [connect(), connect()]
    with at_work(lambda stop: write(busy, 7, stop)), ThreadPoolExecutor(2) as pool:
        results = [result for found in pool.map(refresh, clients) for result in found]
        busy.assert_verified()
    assert {result.error for result in results} == {None}
    busy.tick()
    busy.assert_verified()
    for name, query in TABLES.items():
        assert busy.rows(name) == set(busy.db.execute(query))


def test_two_refreshers_with_large_deltas_do_not_mix_what_they_staged(
    shop: Shop, connect: Callable[..., pytrickle.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "BULK_ROWS", 0)
    shop.pt.create_stream_table("plain", "SELECT id, amount FROM orders")
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.tick()
    first, second = connect(), connect()
    staged = {id(client._engine): Event() for client in (first, second)}
    compute = LazyEngine.compute
    ticks: list[Future[tuple[pytrickle.RefreshResult, ...]]] = []

    def compute_and_wait(engine: LazyEngine, *arguments: Any) -> Any:
        """Let the second refresher stage its delta before the first applies its own, unless something keeps it away."""
        rows = compute(engine, *arguments)
        staged[id(engine)].set()
        if engine is first._engine:
            wait_for(
                lambda: staged[id(second._engine)].is_set() or (ticks[1:] and ticks[1].done()), "the second refresher"
            )
        return rows

    monkeypatch.setattr(LazyEngine, "compute", compute_and_wait)
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    with ThreadPoolExecutor(2) as pool:
        ticks.append(pool.submit(first.tick))
        assert staged[id(first._engine)].wait(30)
        shop.db.execute("INSERT INTO orders VALUES (3, 1, 30)")
        ticks.append(pool.submit(second.tick))
        assert not [result for tick in ticks for result in tick.result(60) if result.error]
    monkeypatch.undo()
    shop.assert_verified()
    shop.tick()
    assert shop.rows("plain") == {(1, 10), (2, 20), (3, 30)}
    shop.assert_verified()


def append(shop: Shop, inserter: int, stop: Event) -> int:
    """Insert rows of ever new keys, a few per transaction, until told to stop; return how many."""
    inserted = 0
    with psycopg.connect(shop.db.dsn, autocommit=True) as connection:
        while not stop.is_set():
            first, last = inserter * 1_000_000 + inserted, inserter * 1_000_000 + inserted + 2
            connection.execute(
                "INSERT INTO orders SELECT n, 1 + n %% 2, n %% 10 FROM generate_series(%s::int, %s::int) AS n",
                (first, last),
            )
            inserted += 3
            stop.wait(0.1)
    return inserted


def test_twenty_inserters_are_followed_without_a_whole_refresh(
    shop: Shop, connect: Callable[..., pytrickle.Client]
) -> None:
    quick = Shop(shop.db, connect(direct_delta_rows=20_000))
    for name in ("totals", "named", "over_totals"):
        quick.pt.create_stream_table(name, TABLES[name], refresh_mode="DIFFERENTIAL")
    quick.tick()
    jobs = [lambda stop, inserter=inserter: append(quick, inserter, stop) for inserter in range(1, 21)]
    with at_work(*jobs) as inserters:
        for _ in range(10):
            actions = {name: result.action for name, result in quick.tick().items()}
            assert set(actions.values()) <= {"DIFFERENTIAL", "NO_DATA"}, actions
        quick.assert_verified()
        assert all(inserter.running() for inserter in inserters)
    quick.tick()
    assert quick.db.value("SELECT sum(n) FROM totals") == sum(inserter.result() for inserter in inserters)
    for name in ("totals", "named", "over_totals"):
        assert quick.rows(name) == set(quick.db.execute(TABLES[name]))
    whole = [row for row in quick.pt.history(limit=1_000) if row.action == "FULL"]
    assert len(whole) == 3, "the first load of each"


def test_a_transaction_left_open_freezes_nobody_and_its_rows_come_once(shop: Shop) -> None:
    for name in ("totals", "named"):
        shop.pt.create_stream_table(name, TABLES[name])
    shop.tick()
    with shop.db.connect() as sleeper:
        with sleeper.transaction():
            sleeper.execute("INSERT INTO orders VALUES (1, 1, 1)")
            for number in range(2, 6):
                shop.db.execute("INSERT INTO orders VALUES (%s, 1, %s)", number, number)
                shop.db.execute("UPDATE customers SET name = %s WHERE id = 1", f"Ada {number}")
                shop.tick()
                assert {row[0] for row in shop.rows("named")} == set(range(2, number + 1))
                assert shop.rows("totals") == set(shop.db.execute(TABLES["totals"]))
            # What all have read is gone, although the sleeper may still write.
            assert shop.db.value(f"SELECT count(*) FROM pgtrickle_changes.changes_{orders_oid(shop)}") == 0
        shop.tick()
    assert {row[0] for row in shop.rows("named")} == {1, 2, 3, 4, 5}
    shop.assert_verified()


def orders_oid(shop: Shop) -> int:
    return int(shop.db.value("SELECT 'orders'::regclass::oid::bigint"))
