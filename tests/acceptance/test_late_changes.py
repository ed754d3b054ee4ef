"""The late ledger of output mode append: all that closed windows missed, however the refresh met it, and no more."""

from __future__ import annotations

from tests.acceptance.conftest import EVENTS, Shop
from tests.acceptance.events import BIN, create, moment


def test_nothing_is_emitted_while_a_group_never_advanced(local_shop: Shop) -> None:
    shop = local_shop
    with shop.db.connect() as connection:
        connection.execute(EVENTS)
    for source in ("clicks", "views"):
        shop.pt.create_watermark_group(source, [source])
    query = f"SELECT {BIN.format('c.at')} + interval '5 minutes' AS window_end, c.id, v.id AS view"
    for gating in ("gate", "hold_back"):
        create(shop, gating, **{gating: f"{query} FROM clicks c LEFT JOIN views v ON v.page = c.page"})
    shop.tick()
    shop.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(10))
    shop.pt.advance_watermark("clicks", moment(300))
    shop.tick()
    assert shop.rows("gate") == shop.rows("hold_back") == set()
    shop.db.execute("INSERT INTO views VALUES (1, %s, 1)", moment(5))
    shop.pt.advance_watermark("views", moment(300))
    shop.tick()
    assert shop.rows("gate") == shop.rows("hold_back") == {(moment(300), 1, 1)}
    assert shop.db.execute("SELECT * FROM pgtrickle.late_changes()") == []
