"""All tables of the database are published, or a stream table is: refreshes go on, also of what is made later."""

import pytest

from tests.acceptance.conftest import TABLES, Shop

SHOWN = {
    **TABLES,
    "amounts": "SELECT amount FROM orders",
    "best": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2",
}
CHANGES = (
    "INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20), (3, 1, 20)",
    "UPDATE orders SET amount = amount + 5 WHERE id < 3",
    "DELETE FROM orders WHERE id = 2",
)


def assert_goes_on(shop: Shop) -> None:
    for change in CHANGES:
        shop.db.execute(change)
        assert {result.error for result in shop.tick().values()} == {None}
        shop.assert_verified()
    shop.db.execute("DELETE FROM orders")
    shop.tick()


@pytest.mark.parametrize(
    "what",
    ["FOR ALL TABLES", "FOR TABLES IN SCHEMA public", "FOR TABLE totals, amounts, best, named, ranked"],
    ids=["all", "schema", "each"],
)
def test_a_publication_stops_no_refresh(shop: Shop, what: str) -> None:
    for name, query in SHOWN.items():
        shop.pt.create_stream_table(name, query)
    assert_goes_on(shop)
    shop.db.execute(f"CREATE PUBLICATION everything {what}")
    assert_goes_on(shop)
    assert shop.db.value("SELECT sum(pg_relation_size(buffer)) FROM pgtrickle.pgt_change_tracking") >= 0
    assert shop.db.value("SELECT pgtrickle.clean_change_buffers()") == 0


def test_what_is_made_under_a_publication_is_refreshed_repaired_and_dropped(shop: Shop) -> None:
    shop.db.execute("CREATE PUBLICATION everything FOR ALL TABLES")
    for name, query in SHOWN.items():
        shop.pt.create_stream_table(name, query)
    assert_goes_on(shop)
    shop.db.execute("SELECT pgtrickle.repair_capture('orders')")
    assert_goes_on(shop)
    for name in SHOWN:
        shop.pt.drop_stream_table(name)


def test_an_identity_that_somebody_chose_stays(shop: Shop) -> None:
    shop.pt.create_stream_table("totals", TABLES["totals"])
    shop.db.execute("ALTER TABLE totals ADD PRIMARY KEY (customer)")
    shop.db.execute("CREATE PUBLICATION those FOR TABLE totals")
    assert_goes_on(shop)
    assert shop.db.value("SELECT relreplident FROM pg_class WHERE oid = 'totals'::regclass") == "d"
