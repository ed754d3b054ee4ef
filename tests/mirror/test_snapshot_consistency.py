"""The extension's tests of one snapshot over several sources (e2e_snapshot_consistency_tests), told anew."""

import pytest

from tests.mirror.conftest import Mirror

# What it tells is held by tests of our own, in our own words: tests/acceptance and tests/security.
pytestmark = pytest.mark.repeats

BY_CUSTOMER = "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer"
NAMED = "SELECT c.id, c.name, o.amount FROM customers AS c JOIN orders AS o ON o.customer = c.id"


@pytest.fixture
def shop(mirror: Mirror) -> Mirror:
    mirror.run(
        "CREATE TABLE customers (id int PRIMARY KEY, name text)",
        "CREATE TABLE orders (id int PRIMARY KEY, customer int, amount numeric)",
        "CREATE TABLE payments (id int PRIMARY KEY, customer int, amount numeric)",
        "INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob')",
        "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)",
        "INSERT INTO payments VALUES (1, 1, 5)",
    )
    return mirror


def create(mirror: Mirror, name: str, query: str, rest: str = "") -> None:
    mirror.run(f"SELECT pgtrickle.create_stream_table('{name}', $${query}$$, 'calculated', 'DIFFERENTIAL'{rest})")


def tick(mirror: Mirror) -> None:
    results = mirror.tick()
    assert results and not [result for result in results if result.error]


def test_cross_source_two_st_overlapping_sources(shop: Mirror) -> None:
    create(shop, "totals", BY_CUSTOMER)
    create(shop, "named", NAMED)
    tick(shop)
    shop.run("INSERT INTO orders VALUES (3, 1, 30)")
    tick(shop)
    shop.assert_equal("totals", BY_CUSTOMER)
    shop.assert_equal("named", NAMED)
    assert shop.value("SELECT bool_and(customer IN (SELECT id FROM named)) FROM totals")


def test_cross_source_diamond_convergence(shop: Mirror) -> None:
    create(shop, "small", "SELECT id, amount FROM orders WHERE amount < 15")
    create(shop, "large", "SELECT id, amount FROM orders WHERE amount >= 15")
    create(shop, "everything", "SELECT id, amount FROM small UNION ALL SELECT id, amount FROM large")
    tick(shop)
    shop.run("UPDATE orders SET amount = 30 - amount")
    tick(shop)
    shop.assert_equal("everything", "SELECT id, amount FROM orders")


def test_cross_source_interleaved_mutations_converge(shop: Mirror) -> None:
    query = """SELECT c.name, (SELECT sum(amount) FROM orders AS o WHERE o.customer = c.id) AS ordered,
        (SELECT sum(amount) FROM payments AS p WHERE p.customer = c.id) AS paid FROM customers AS c"""
    create(shop, "totals", BY_CUSTOMER)
    create(shop, "named", NAMED)
    create(shop, "balances", query)
    tick(shop)
    for number in range(3):
        shop.run(
            f"INSERT INTO customers VALUES ({number + 10}, 'c{number}')",
            f"INSERT INTO orders VALUES ({number + 10}, {number + 10}, {number})",
            "UPDATE payments SET amount = amount + 1",
            f"DELETE FROM orders WHERE id = {number}",
        )
        tick(shop)
        for name, expected in (("totals", BY_CUSTOMER), ("named", NAMED), ("balances", query)):
            shop.assert_equal(name, expected)


def test_cross_source_atomic_diamond_snapshot(shop: Mirror) -> None:
    create(shop, "ordered", BY_CUSTOMER, ", true, 'atomic'")
    create(shop, "counted", "SELECT customer, count(*) AS orders FROM orders GROUP BY customer", ", true, 'atomic'")
    query = (
        "SELECT sum(o.amount) AS amount, sum(c.orders) AS orders FROM ordered AS o JOIN counted AS c USING (customer)"
    )
    create(shop, "grand", query, ", true, 'atomic'")
    tick(shop)
    shop.assert_equal("grand", "SELECT sum(amount), count(*) FROM orders")
    shop.run("INSERT INTO orders VALUES (7, 2, 70), (8, 3, 80)")
    tick(shop)
    shop.assert_equal("grand", "SELECT sum(amount), count(*) FROM orders")


def test_cross_source_multi_round_no_drift(shop: Mirror) -> None:
    create(shop, "totals", BY_CUSTOMER)
    create(shop, "named", NAMED)
    tick(shop)
    for number in range(10):
        shop.run(
            f"INSERT INTO orders VALUES ({number + 20}, {number % 3}, {number})",
            "UPDATE orders SET amount = amount * 2",
        )
        tick(shop)
    shop.assert_equal("totals", BY_CUSTOMER)
    shop.assert_equal("named", NAMED)
