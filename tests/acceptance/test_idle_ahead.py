"""What an idle source that is ahead shows follows from the watermarks, not from who else keeps its changes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.acceptance.conftest import Shop, clock, status

BOTH = "SELECT 'order' AS kind, id FROM orders UNION ALL SELECT 'line', order_id FROM order_lines"


@pytest.mark.parametrize("retention", [None, timedelta(days=1)], ids=["trimmed", "retained"])
def test_it_is_not_read_further_because_its_earlier_changes_were_cleaned_up(
    local_shop: Shop, retention: timedelta | None
) -> None:
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.pt.create_stream_table("held", BOTH, watermark_gating="hold_back", watermark_retention=retention)
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 1))
    shop.tick()
    shop.load("orders", "12:03:30", (2, 1, 10))
    shop.load("order_lines", "12:02", (2, 1, 1))
    shop.pt.mark_idle("orders")
    shop.pt.mark_idle("order_lines")
    shop.tick()
    shop.load("order_lines", "12:02:30", (3, 1, 1))
    results = shop.tick()
    assert (len(shop.rows("held")), clock(status(shop, "held").effective_watermark)) == (4, "12:02")
    assert "until a watermark of public.orders covers what it shows" in status(shop, "held").reason
    assert results["held"].action == "NO_DATA"
    shop.load("order_lines", "12:03:30")
    shop.tick()
    assert (len(shop.rows("held")), clock(status(shop, "held").effective_watermark)) == (5, "12:03")
    shop.assert_verified()
