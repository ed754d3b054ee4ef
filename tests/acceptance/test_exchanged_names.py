"""What is read or written by its name, and has another one by the time it is: nothing is made of that.

A tick plans by the names of its snapshot, and PostgreSQL finds by them what has them as it parses.
"""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import TABLES, Meanwhile, Shop
from tests.acceptance.test_rewritten_sources import FEW, GROUPED, MANY


@pytest.fixture
def shop(shop: Shop) -> Shop:
    """Orders of two customers, who have a column that nobody reads."""
    shop.db.execute("ALTER TABLE customers ADD unread int")
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    return shop


SWAPPED = {
    "renamed": "ALTER TABLE customers RENAME TO former; ALTER TABLE successors RENAME TO customers",
    "moved": "ALTER TABLE customers SET SCHEMA elsewhere; ALTER TABLE successors RENAME TO customers",
}


@pytest.mark.parametrize("kind", ["AUTO", "FULL", "unit", "first load"])
@pytest.mark.parametrize("swapping", ["renamed", "moved"])
def test_another_table_of_its_name_is_not_read_in_its_place(
    shop: Shop, meanwhile: Meanwhile, swapping: str, kind: str
) -> None:
    shop.db.execute("CREATE SCHEMA elsewhere; CREATE TABLE successors (LIKE customers)")
    shop.db.execute("INSERT INTO successors VALUES (1, 'Eve'), (2, 'Mallory')")
    shop.pt.create_stream_table("shown", GROUPED, refresh_mode="FULL" if kind == "FULL" else "AUTO")
    if kind == "unit":
        shop.pt.create_stream_table("named", TABLES["named"])
        shop.db.execute("SELECT pgtrickle.create_refresh_group('both', ARRAY['named', 'shown'])")
    if kind != "first load":
        shop.tick()
        shop.db.execute(FEW)
    meanwhile(SWAPPED[swapping])
    skipped = shop.tick()["shown"]
    assert (skipped.action, skipped.reason.rpartition("public.customers was ")[2][:9]) == ("SKIP", "truncated")
    shop.tick()
    assert {name for name, *_ in shop.rows("shown")} == {"Ada", "Bob"}
    shop.assert_verified()


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_another_table_of_its_own_name_is_not_written_in_its_place(shop: Shop, meanwhile: Meanwhile, mode: str) -> None:
    shop.pt.create_stream_table("shown", GROUPED, refresh_mode=mode)
    shop.tick()
    for change in (FEW, "UPDATE orders SET amount = 71 WHERE id = 7"):
        shop.db.execute(change)
        meanwhile("ALTER TABLE shown RENAME TO former; CREATE TABLE shown (LIKE former)")
        assert shop.tick()["shown"].action == "SKIP"
        assert shop.rows("shown") == set()
        shop.db.execute("DROP TABLE shown; ALTER TABLE former RENAME TO shown")
        shop.tick()
        shop.assert_verified()


OTHERS = """
    ALTER TABLE customers ADD town text; UPDATE customers SET town = 'Rome'; CREATE SCHEMA away;
    CREATE TABLE others AS SELECT id, 'another ' || name AS name, town FROM customers;
    CREATE VIEW known AS SELECT id, name FROM customers;
    CREATE VIEW unknown AS SELECT id, town AS name FROM customers"""
SUMS = "SELECT c.{}, count(o.id) AS n, sum(o.amount) AS s FROM {} c LEFT JOIN orders o ON o.customer = c.id GROUP BY 1"
# What is read, what happens to its name, and how the query reads then.
EXCHANGED = {
    "tables": (
        ("name", "customers"),
        "ALTER TABLE customers RENAME TO x; ALTER TABLE others RENAME TO customers; ALTER TABLE x RENAME TO others",
        ("name", "others"),
    ),
    "columns": (
        ("name", "customers"),
        "ALTER TABLE customers RENAME name TO x; ALTER TABLE customers RENAME town TO name;"
        " ALTER TABLE customers RENAME x TO town",
        ("town", "customers"),
    ),
    "schemas": (
        ("name", "customers"),
        "ALTER TABLE customers SET SCHEMA away; CREATE TABLE customers AS TABLE others",
        ("name", "away.customers"),
    ),
    "views": (
        ("name", "known"),
        "ALTER VIEW known RENAME TO x; ALTER VIEW unknown RENAME TO known; ALTER VIEW x RENAME TO unknown",
        ("name", "unknown"),
    ),
}


@pytest.mark.parametrize("change", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
@pytest.mark.parametrize("kind", EXCHANGED)
def test_what_has_its_name_now_is_not_read_in_its_place(
    shop: Shop, meanwhile: Meanwhile, kind: str, mode: str, change: str
) -> None:
    """A query follows the tables, columns and views that it was made of, whatever they are called."""
    read, exchange, read_then = EXCHANGED[kind]
    with shop.db.connect() as owner:
        owner.execute(OTHERS)
    shop.pt.create_stream_table("shown", SUMS.format(*read), refresh_mode=mode)
    shop.tick()
    shop.db.execute(change)
    meanwhile(f"BEGIN; {exchange}; COMMIT")
    before, (skipped,) = shop.rows("shown"), shop.tick().values()
    assert (skipped.action, shop.rows("shown")) == ("SKIP", before)
    shop.tick()
    assert shop.rows("shown") == set(shop.db.execute(SUMS.format(*read_then)))
    shop.assert_verified()
