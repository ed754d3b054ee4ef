"""The demo's two loader processes: each load and the advance of its watermark are one transaction."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import psycopg

from pytrickle.database import connect
from pytrickle.demo.shop import Shop
from pytrickle.errors import PytrickleError

Load = Callable[[psycopg.Connection, Shop, datetime, datetime], None]


@dataclass(frozen=True, slots=True)
class Pace:
    """When a loader works: it fetches through every multiple of `every`, and each fetch lands one of `delays` later."""

    every: timedelta
    delays: tuple[timedelta, ...]

    def fetched(self, number: int) -> timedelta:
        """Return the event time, counted from the opening, through which fetch `number` (from 1 on) is complete."""
        return number * self.every

    def landed(self, number: int) -> timedelta:
        """Return the time, counted from the opening, at which fetch `number` is loaded."""
        return self.fetched(number) + self.delays[(number - 1) % len(self.delays)]


# Every other load of lines lands before the next load of orders, so that the two watermarks agree for a moment; the
# ones between land after it, and meet orders that have gone ahead again.
ORDERS_PACE = Pace(timedelta(seconds=3), (timedelta(0),))
ORDER_LINES_PACE = Pace(timedelta(seconds=6), (timedelta(seconds=1), timedelta(seconds=4)))


def load_orders(connection: psycopg.Connection, shop: Shop, after: datetime, through: datetime) -> None:
    """Load the orders of the event time (after, through] and advance their watermark, in one transaction."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO pytrickle_demo.orders (id, customer, placed_at, total) VALUES (%s, %s, %s, %s)",
            [(order.order_id, order.customer, order.placed_at, order.total) for order in shop.placed(after, through)],
        )
        cursor.executemany(
            "UPDATE pytrickle_demo.orders SET total = %s WHERE id = %s",
            [(order.total, order.order_id) for order in shop.amended(after, through)],
        )
        cursor.execute("SELECT pgtrickle.advance_watermark('pytrickle_demo.orders', %s)", [through])


def load_order_lines(connection: psycopg.Connection, shop: Shop, after: datetime, through: datetime) -> None:
    """Load the order lines of the event time (after, through] and advance their watermark, in one transaction."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO pytrickle_demo.order_lines (order_id, number, quantity, price) VALUES (%s, %s, %s, %s)",
            [
                (order.order_id, line.number, line.quantity, line.price)
                for order in shop.placed(after, through)
                for line in order.lines
            ],
        )
        cursor.executemany(
            "UPDATE pytrickle_demo.order_lines SET quantity = %s WHERE order_id = %s AND number = %s",
            [
                (order.lines[0].quantity, order.order_id, order.lines[0].number)
                for order in shop.amended(after, through)
            ],
        )
        cursor.execute("SELECT pgtrickle.advance_watermark('pytrickle_demo.order_lines', %s)", [through])


def run_loader(dsn: str, load: Load, shop: Shop, pace: Pace, going_on: Connection) -> None:
    """Load at the given pace until the other end of `going_on` is closed, which is the whole life of a loader."""
    with connect(dsn, role=f"demo/{load.__name__}") as connection:
        for number in count(1):
            if going_on.poll(max(0.0, (shop.opened_at + pace.landed(number) - datetime.now(UTC)).total_seconds())):
                return
            load(connection, shop, shop.opened_at + pace.fetched(number - 1), shop.opened_at + pace.fetched(number))


@contextmanager
def running_loaders(dsn: str, shop: Shop) -> Iterator[Callable[[], None]]:
    """Run both loaders, each in a process of its own, until the block ends.

    Yields a function that raises PytrickleError when one of them has died.
    """
    spawn = get_context("spawn")
    # The end of a pipe is seen also where a signal has killed some of those who wait for it, or us.
    going_on, ours = spawn.Pipe(duplex=False)
    loaders: tuple[BaseProcess, ...] = tuple(
        spawn.Process(target=run_loader, args=(dsn, load, shop, pace, going_on), daemon=True)
        for load, pace in ((load_orders, ORDERS_PACE), (load_order_lines, ORDER_LINES_PACE))
    )

    def check() -> None:
        if any(loader.exitcode for loader in loaders):
            raise PytrickleError("A loader of the demo failed.", "Its own error is printed above.")

    with _ctrl_c_kept_back():
        for loader in loaders:
            loader.start()
    try:
        yield check
    finally:
        ours.close()
        for loader in loaders:
            loader.join(timeout=10)
            if loader.is_alive():
                loader.terminate()


@contextmanager
def _ctrl_c_kept_back() -> Iterator[None]:
    """Start processes that Ctrl-C never reaches, not even while they load: it is ours, and we tell them.

    They inherit what is blocked here. What comes meanwhile reaches us at the end of the block.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
