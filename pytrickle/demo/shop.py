"""The shop the demo loads from: its orders and order lines as a pure function of event time."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random

BETWEEN_ORDERS = timedelta(milliseconds=200)
AMENDED_EVERY = 10
AMENDED_AFTER = timedelta(seconds=4)
CUSTOMERS = ("Ada", "Boole", "Codd", "Dijkstra", "Euler", "Floyd", "Gray", "Hopper")


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One line of an order."""

    number: int
    quantity: int
    price: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    """An order together with its lines; the two loaders each see one half of it."""

    order_id: int
    customer: str
    placed_at: datetime
    lines: tuple[OrderLine, ...]

    @property
    def total(self) -> Decimal:
        """Return what the order costs: the sum over its lines."""
        return sum((line.quantity * line.price for line in self.lines), Decimal(0))


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop that takes an order every 200 ms from `opened_at` on and amends one in ten of them 4 s later."""

    opened_at: datetime

    def placed(self, after: datetime, through: datetime) -> tuple[Order, ...]:
        """Return the orders placed in the event time (after, through], as they were placed."""
        first, last = self._orders_until(after) + 1, self._orders_until(through)
        return tuple(self._order(number) for number in range(first, last + 1))

    def amended(self, after: datetime, through: datetime) -> tuple[Order, ...]:
        """Return the orders amended in the event time (after, through]: one more of their first line."""
        placed = self.placed(after - AMENDED_AFTER, through - AMENDED_AFTER)
        return tuple(_one_more(order) for order in placed if order.order_id % AMENDED_EVERY == 0)

    def _orders_until(self, moment: datetime) -> int:
        return max(0, (moment - self.opened_at) // BETWEEN_ORDERS)

    def _order(self, number: int) -> Order:
        chance = Random(number)
        lines = tuple(
            OrderLine(line, chance.randint(1, 5), Decimal(chance.randint(100, 9999)) / 100)
            for line in range(1, chance.randint(1, 4) + 1)
        )
        return Order(number, chance.choice(CUSTOMERS), self.opened_at + number * BETWEEN_ORDERS, lines)


def _one_more(order: Order) -> Order:
    first, *others = order.lines
    return replace(order, lines=(replace(first, quantity=first.quantity + 1), *others))
