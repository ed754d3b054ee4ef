"""Reading as of the past a stream table that reads others: what these have stored says nothing of it."""

import pytest

from tests.acceptance.conftest import Shop
from tests.acceptance.test_as_of import TOTALS, moment


@pytest.mark.parametrize("change", ["INSERT INTO orders VALUES (2, 1, 5)", "DELETE FROM orders", "TRUNCATE orders"])
def test_a_stream_table_in_between_is_read_by_its_query_though_it_was_not_refreshed(
    local_shop: Shop, change: str
) -> None:
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    local_shop.pt.create_stream_table("totals", TOTALS, watermark_retention="1 day")
    local_shop.db.execute("CREATE VIEW seen AS SELECT amount FROM totals")
    for name, query in (
        ("own", "SELECT sum(amount) AS a FROM totals"),
        ("by_view", "SELECT sum(amount) AS a FROM seen"),
    ):
        local_shop.pt.create_stream_table(name, query, watermark_retention="1 day")
    local_shop.tick()
    local_shop.db.execute(change)
    local_shop.db.execute("SELECT pgtrickle.advance_watermark('orders', %s)", moment(10))
    expected = local_shop.db.execute("SELECT sum(amount) FROM orders")
    assert expected != [(10,)]
    for name in ("own", "by_view"):
        assert list(local_shop.pt.as_of(name, moment(10)).rows) == expected, name
