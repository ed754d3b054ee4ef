"""The demo's shop tells both loaders the same story, however its time is cut into loads."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pytrickle.demo.shop import AMENDED_AFTER, AMENDED_EVERY, BETWEEN_ORDERS, Shop

OPENED = datetime(2026, 3, 2, 12, tzinfo=UTC)
CLOSED = OPENED + timedelta(seconds=20)
moments = st.lists(
    st.timedeltas(timedelta(0), CLOSED - OPENED).map(lambda since: OPENED + since), unique=True, max_size=8
)


@given(moments)
def test_any_cut_into_loads_gives_the_same_orders_once(cuts: list[datetime]) -> None:
    shop = Shop(OPENED)
    steps = list(pairwise(sorted({OPENED, *cuts, CLOSED})))
    assert [order for step in steps for order in shop.placed(*step)] == list(shop.placed(OPENED, CLOSED))
    assert [order for step in steps for order in shop.amended(*step)] == list(shop.amended(OPENED, CLOSED))


def test_orders_are_placed_at_the_time_they_are_loaded_for() -> None:
    after, through = OPENED + timedelta(seconds=3), OPENED + timedelta(seconds=6)
    placed = Shop(OPENED).placed(after, through)
    assert len(placed) == (through - after) // BETWEEN_ORDERS
    assert all(after < order.placed_at <= through for order in placed)


def test_an_amended_order_costs_one_more_of_its_first_line() -> None:
    shop = Shop(OPENED)
    placed = {order.order_id: order for order in shop.placed(OPENED, CLOSED)}
    amended = shop.amended(OPENED, CLOSED)
    assert [order.order_id for order in amended] == [
        number
        for number, order in placed.items()
        if number % AMENDED_EVERY == 0 and order.placed_at <= CLOSED - AMENDED_AFTER
    ]
    assert all(order.total == placed[order.order_id].total + order.lines[0].price for order in amended)
