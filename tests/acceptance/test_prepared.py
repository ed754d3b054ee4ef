"""What many stream tables have prepared on one connection survives the refreshes of a large one among them."""

from collections.abc import Iterator

import psycopg
import pytest

from tests.acceptance.conftest import SHOP, Shop
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

TOTALS = "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer"
ANEW = "SELECT pgtrickle.reinitialize_stream_table('large')"
# For each way of refreshing: the query, the refresh mode, and what is done before each tick beside the changes.
LARGE = {
    "many changes": ("SELECT id, amount FROM orders", "DIFFERENTIAL", "SELECT"),
    "many groups": ("SELECT id, count(*) AS orders FROM orders GROUP BY id", "DIFFERENTIAL", "SELECT"),
    "a whole query": ("SELECT id, amount FROM orders", "FULL", "SELECT"),
    "first rows anew": ("SELECT id, amount FROM orders ORDER BY id LIMIT 20", "DIFFERENTIAL", ANEW),
    "groups anew": ("SELECT id, count(*) AS orders FROM orders GROUP BY id", "DIFFERENTIAL", ANEW),
}


@pytest.fixture(params=LARGE)
def shop(db: Database, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A small stream table that was refreshed often, and a large one."""
    query, mode, _ = LARGE[request.param]
    db.execute(SHOP)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        shop = Shop(db, client)
        client.create_stream_table("totals", TOTALS)
        client.create_stream_table("large", query, refresh_mode=mode)
        for number in range(1, 9):
            db.execute("INSERT INTO orders VALUES (%s, 1, 10)", number)
            shop.tick()
        yield shop


def test_statements_stay_prepared(shop: Shop, request: pytest.FixtureRequest) -> None:
    *_, before_tick = LARGE[request.node.callspec.params["shop"]]
    refresher = shop.pt._refreshing()
    connections = [refresher.connection, *refresher.snapshots.idle]
    before = [_prepared(connection) for connection in connections]
    assert all(before), before
    for first in (100, 10_000):
        shop.db.execute("INSERT INTO orders SELECT %s + n, 1, 1 FROM generate_series(1, 1500) AS n", first)
        shop.db.execute(before_tick)
        done = shop.tick()["large"]
        assert done.rows_inserted > 1_000 or done.action in {"FULL", "REINITIALIZE"}, done
    assert [each - _prepared(connection) for each, connection in zip(before, connections, strict=True)] == [set()] * 2
    shop.assert_verified()


def _prepared(connection: psycopg.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM pg_prepared_statements", prepare=False)}
