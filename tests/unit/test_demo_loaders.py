"""The demo's loaders: a load and the advance of its watermark are seen together, and a process of each does it."""

import re
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import active_children
from pathlib import Path
from threading import Event, Thread
from time import monotonic, sleep

import psycopg
import pytest

from pytrickle.demo.loaders import load_order_lines, load_orders, running_loaders
from pytrickle.demo.reports import TABLES
from pytrickle.demo.shop import AMENDED_AFTER, Shop
from pytrickle.errors import PytrickleError
from tests.conftest import Database

OPENED = datetime(2026, 3, 2, 12, tzinfo=UTC)
WATERMARKS = "SELECT source, watermark FROM pgtrickle.watermarks() ORDER BY source"


@pytest.fixture
def connection(db: Database) -> Iterator[psycopg.Connection]:
    connection = db.connect()
    connection.execute(TABLES)
    yield connection


def test_equal_watermarks_mean_that_every_order_has_its_lines(connection: psycopg.Connection) -> None:
    shop, middle, closed = Shop(OPENED), OPENED + timedelta(seconds=3), OPENED + 3 * AMENDED_AFTER
    for after, through in ((OPENED, middle), (middle, closed)):
        load_orders(connection, shop, after, through)
    load_order_lines(connection, shop, OPENED, closed)
    assert connection.execute(WATERMARKS).fetchall() == [
        ("pytrickle_demo.order_lines", closed),
        ("pytrickle_demo.orders", closed),
    ]
    compared = connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE total = (SELECT sum(quantity * price)"
        " FROM pytrickle_demo.order_lines WHERE order_id = orders.id)) FROM pytrickle_demo.orders"
    ).fetchone()
    assert compared == (60, 60)


def test_a_load_whose_advance_is_refused_loads_nothing(connection: psycopg.Connection) -> None:
    shop, later = Shop(OPENED), OPENED + timedelta(seconds=6)
    load_orders(connection, shop, OPENED, later)
    with pytest.raises(psycopg.errors.DataException):
        load_orders(connection, Shop(OPENED - timedelta(days=1)), OPENED, OPENED + timedelta(seconds=3))
    assert connection.execute("SELECT count(*) FROM pytrickle_demo.orders").fetchone() == (30,)


def test_both_processes_load_until_they_are_told_to_stop(db: Database, connection: psycopg.Connection) -> None:
    # Opened ten seconds ago: the loaders have loads to catch up with, so nothing is waited for.
    shop = Shop(datetime.now(UTC) - timedelta(seconds=10))
    with running_loaders(db.dsn, shop) as check:
        patience = monotonic() + 30
        while len(connection.execute(WATERMARKS).fetchall()) < 2 and monotonic() < patience:
            check()
            sleep(0.05)
    sources = [source for source, _ in connection.execute(WATERMARKS)]
    assert sources == ["pytrickle_demo.order_lines", "pytrickle_demo.orders"]


def test_no_loader_is_reached_by_ctrl_c_from_its_first_moment(db: Database) -> None:
    with running_loaders(db.dsn, Shop(OPENED)):
        started = active_children()
        blocked = [re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{one.pid}/status").read_text()) for one in started]
        assert len(started) == 2
        assert all(found and int(found[1], 16) >> signal.SIGINT - 1 & 1 for found in blocked)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_a_loader_that_died_is_noticed(db: Database, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PytrickleError, match="loader"), running_loaders(db.dsn, Shop(OPENED)) as check:
        patience = monotonic() + 30  # the tables are missing: the first load of each fails
        while monotonic() < patience:
            check()
            sleep(0.05)
    assert "UndefinedTable" in capfd.readouterr().err


def test_nobody_waits_for_a_loader_that_was_killed_waiting(db: Database, connection: psycopg.Connection) -> None:
    """As a signal does that reaches the whole group of processes."""
    ended = Event()

    def run() -> None:
        with running_loaders(db.dsn, Shop(datetime.now(UTC) - timedelta(seconds=10))):
            patience = monotonic() + 30
            while len(db.connect().execute(WATERMARKS).fetchall()) < 2 and monotonic() < patience:
                sleep(0.05)
            for loader in active_children():
                loader.kill()
                loader.join()
        ended.set()

    Thread(target=run, daemon=True).start()
    assert ended.wait(60)
