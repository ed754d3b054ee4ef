"""Children that inherit no more, while somebody has the parent captured for something else before the next tick."""

from collections.abc import Callable

import pytest

from tests.acceptance.conftest import Shop

TABLES = """CREATE TABLE parent (id int, v int); CREATE TABLE child () INHERITS (parent);
INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (2, 2)"""
NO_MORE = "ALTER TABLE child NO INHERIT parent"
QUERIES = {"shown": "SELECT id FROM parent", "counted": "SELECT count(*) AS n, sum(v) AS v FROM parent"}


def create_another(shop: Shop) -> None:
    shop.db.execute(NO_MORE)
    shop.pt.create_stream_table("counted", QUERIES["counted"])


def alter_another(shop: Shop) -> None:
    shop.pt.create_stream_table("counted", "SELECT count(*) AS n, 0::bigint AS v FROM parent")
    shop.tick()
    shop.db.execute(NO_MORE)
    shop.pt.alter_stream_table("counted", query=QUERIES["counted"])


@pytest.mark.parametrize("capture_anew", [create_another, alter_another], ids=["created", "altered"])
def test_a_former_child_is_captured_no_more(local_shop: Shop, capture_anew: Callable[[Shop], None]) -> None:
    shop = local_shop
    shop.db.execute(TABLES)
    shop.pt.create_stream_table("shown", QUERIES["shown"])
    shop.tick()
    capture_anew(shop)
    shop.tick()
    shop.db.execute("INSERT INTO child VALUES (3, 3); INSERT INTO parent VALUES (4, 4)")
    shop.tick()
    for name, query in QUERIES.items():
        assert shop.rows(name) == set(shop.db.execute(query)), name
    shop.tick()
    assert shop.db.execute("SELECT tgname FROM pg_trigger WHERE tgrelid = 'child'::regclass") == []
