"""What changes amount to is read once per refresh, by a template that may be of more sources than changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.change_ranges import uncounted_ranges
from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.refresh import remembered
from pytrickle.refresh.templates import MOST_BORROWED, MOST_SECONDS_GUESSED, OfOne
from tests.acceptance.conftest import Shop
from tests.acceptance.traces import every
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

# What grows to twice its pages is planned anew as soon as autovacuum has seen it: a source, or the stream table.
SHOP = """
CREATE TABLE regions (region int PRIMARY KEY, name text) WITH (autovacuum_enabled = off);
CREATE TABLE customers (customer int PRIMARY KEY, region int) WITH (autovacuum_enabled = off);
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int) WITH (autovacuum_enabled = off);
CREATE INDEX ON orders (customer);
CREATE INDEX ON customers (region);
INSERT INTO regions SELECT n, 'region ' || n FROM generate_series(1, 50) AS n;
INSERT INTO customers SELECT n, 1 + n % 50 FROM generate_series(1, 3000) AS n;
INSERT INTO orders SELECT n, 1 + n % 3000, 1 + n % 2000 FROM generate_series(1, 20000) AS n;
ANALYZE;
CREATE FUNCTION told(n int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS $$BEGIN RAISE NOTICE 'told'; RETURN n; END$$;
"""
JOINED = """
SELECT r.name, c.customer, o.id, o.amount
FROM regions AS r JOIN customers AS c USING (region) JOIN orders AS o USING (customer)
"""


@pytest.fixture
def shop(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setattr(remembered, "SLOW", 3600.0)
    db.execute(SHOP)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        yield Shop(db, client)


def test_changes_that_the_database_has_to_be_told_of_are_not_read_before(shop: Shop) -> None:
    """Without an index the plan is not kept, so that PostgreSQL needs to know how many changes there are."""
    shop.pt.create_stream_table(
        "told",
        "SELECT o.id, told(o.amount) AS amount, c.region FROM orders AS o JOIN customers AS c ON c.customer = o.amount",
        refresh_mode="DIFFERENTIAL",
    )
    shop.tick()
    heard: list[str] = []
    for connection in every(shop):
        connection.add_notice_handler(lambda notice: heard.append(notice.message_primary or ""))
    for number in range(4):
        shop.db.execute("UPDATE orders SET amount = amount + 1 WHERE mod(id, 20) = %s", number)
        heard.clear()
        assert shop.tick()["told"].action == "DIFFERENTIAL"
        # An update takes one row back and brings one.
        assert heard.count("told") == 2 * 1_000, number
    assert shop.pt.verify("told").matches


def test_a_template_of_more_sources_serves_where_fewer_changed(shop: Shop) -> None:
    _create_joined(shop, refresh_mode="DIFFERENTIAL")
    _change(shop, "orders", "customers", "regions")
    _change(shop, "orders", "customers", "regions")
    kept = _templates(shop)
    assert len(kept.by_outline) == 1
    for tables in (("orders",), ("orders", "customers"), ("regions",), ("customers",)):
        _change(shop, *tables)
        assert len(kept.by_outline) == 1, tables
    for _ in range(MOST_BORROWED - 1):
        _change(shop, "orders")
    assert len(kept.by_outline) == 1
    _change(shop, "orders")
    assert len(kept.by_outline) == 2, "one of its own, for it is needed often"
    _change(shop, "orders", "customers", "regions")
    assert len(kept.by_outline) == 2


def test_a_template_of_fewer_sources_never_serves_where_more_changed(shop: Shop) -> None:
    """It would leave out what the others changed."""
    _create_joined(shop, refresh_mode="DIFFERENTIAL")
    for number, tables in enumerate((("orders",), ("customers",), ("orders", "customers"), ("orders", "regions")), 1):
        for _ in range(2):
            _change(shop, *tables)
        assert len(_templates(shop).by_outline) == number, tables


def test_what_took_long_is_not_read_as_a_guess(shop: Shop) -> None:
    """Another way may be chosen, or other sources may have changed: then it would be read for nothing."""
    _create_joined(shop)
    for _ in range(2):
        _change(shop, "orders", "customers")
    planner = shop.pt._refreshing().planner
    (number,) = planner.templates.known
    table = next(iter(catalog.stream_tables(shop.pt._refreshing().connection)))
    ranges = uncounted_ranges(table, {}).values()
    for seconds in (MOST_SECONDS_GUESSED / 2, MOST_SECONDS_GUESSED):
        planner.past.evidences[number] = Evidence(20_000, 20_000, (PastRefresh(False, 80, seconds),))
        assert (planner.foreseen_read(number, ranges) is not None) is (seconds < MOST_SECONDS_GUESSED)


def _create_joined(shop: Shop, **options: Any) -> None:
    shop.pt.create_stream_table("joined", JOINED, **options)
    shop.db.execute("ALTER TABLE joined SET (autovacuum_enabled = off)")
    shop.tick()


def _change(shop: Shop, *tables: str) -> None:
    columns = {"orders": "amount = -amount", "customers": "region = 1 + region % 50", "regions": "name = name || '.'"}
    for table in tables:
        shop.db.execute(f"UPDATE {table} SET {columns[table]} WHERE ctid IN (SELECT ctid FROM {table} LIMIT 20)")
    assert shop.tick()["joined"].action == "DIFFERENTIAL"
    assert shop.pt.verify("joined").matches


def _templates(shop: Shop) -> OfOne:
    (kept,) = shop.pt._refreshing().planner.templates.known.values()
    return kept
