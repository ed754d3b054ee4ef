"""A refresher that dies at any step leaves nothing half done, and its successor loses and doubles nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.acceptance.conftest import Rows, Shop
from tests.acceptance.slow import SLOWLY, TOTALS
from tests.repeats import only
from tests.waiting import wait_for, wait_until_blocked

# It waits for as long as it takes to be killed.
REFRESHER = """
import sys, pytrickle
from pytrickle.catalog import session_settings
from pytrickle.database import lock_timeout
lock_timeout.PATIENCE = session_settings.PATIENCE = "60s"
with pytrickle.connect(sys.argv[1], spark_master="local[1]", direct_delta_rows=0) as client:
    client.tick()
"""


@pytest.fixture
def shop(spark_shop: Shop) -> Shop:
    """Spark is what these tests are about, so every run plays them through it."""
    return spark_shop


@pytest.fixture
def totals(shop: Shop) -> Shop:
    """A filled aggregate over orders, and a change that the next refresh has to take in."""
    shop.db.execute(SLOWLY)
    shop.pt.create_stream_table("totals", TOTALS)
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (3, 1, 5), (4, 3, 40)")
    shop.db.execute("DELETE FROM orders WHERE id = 2")
    return shop


@contextmanager
def refresher(shop: Shop) -> Iterator[subprocess.Popen[bytes]]:
    """Start a refresher as a process of its own, with its own Spark; make sure that nothing of it stays behind."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", REFRESHER, shop.db.dsn],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def kill(process: subprocess.Popen[bytes]) -> None:
    """Send SIGKILL to the refresher and wait until it is gone."""
    assert process.poll() is None
    process.kill()
    assert process.wait(timeout=30) == -signal.SIGKILL


def wait_until_forgotten(shop: Shop, own: set[int]) -> None:
    """Wait until the server has ended the sessions of the killed process."""
    wait_for(lambda: sessions(shop) <= own, "the sessions of the killed refresher to end")


def sessions(shop: Shop) -> set[int]:
    rows = shop.db.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pytrickle/%%'"
    )
    return {pid for (pid,) in rows}


def current(shop: Shop) -> Rows:
    return set(shop.db.execute(TOTALS))


def frontier(shop: Shop) -> tuple[object, ...]:
    (row,) = shop.db.execute(
        "SELECT frontier_version, data_timestamp, d.frontier::text FROM pgtrickle.pgt_stream_tables"
        " JOIN pgtrickle.pgt_dependencies AS d USING (pgt_id)"
    )
    return row


# Where the refresher is stopped: what is locked, what it then waits in, and what it has already done by then.
STEPS = {
    "before staging": ("SELECT pg_advisory_xact_lock(4711)", "pgt_delta_", False),
    "between staging and apply": (
        "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1 FOR UPDATE",
        "UPDATE pgtrickle.pgt_stream_tables",
        False,
    ),
    "inside the write transaction": (
        "LOCK pgtrickle.pgt_refresh_history IN EXCLUSIVE MODE",
        "INSERT INTO pgtrickle.pgt_refresh_history",
        False,
    ),
    "between commit and clean-up": ("LOCK {buffer} IN SHARE MODE", "clean_change_buffers", True),
}


@pytest.mark.parametrize("step", only(("inside the write transaction",), STEPS))
def test_killed_refresher_leaves_nothing_half_done_and_nothing_is_applied_twice(totals: Shop, step: str) -> None:
    obstacle, waits_in, applied = STEPS[step]
    buffer = totals.db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    before, was, own = totals.rows("totals"), frontier(totals), sessions(totals)
    locker = totals.db.connect(autocommit=False)
    locker.execute(obstacle.format(buffer=buffer).encode())
    with refresher(totals) as process:
        wait_until_blocked(totals.db, waits_in, lambda: process.poll() is None)
        kill(process)
        assert (totals.rows("totals") != before) == (frontier(totals) != was) == applied
        locker.rollback()
        wait_until_forgotten(totals, own)
    assert (totals.rows("totals") != before) == (frontier(totals) != was) == applied
    totals.assert_verified()
    assert totals.tick()["totals"].action == ("NO_DATA" if applied else "DIFFERENTIAL")
    assert totals.rows("totals") == current(totals) == {(1, 2, 15), (3, 1, 40)}
    totals.assert_verified()
    completed = [row for row in totals.pt.history("totals") if row.status == "COMPLETED"]
    assert [row.action for row in completed] == ["DIFFERENTIAL", "FULL"]
    totals.db.execute("DELETE FROM orders WHERE id = 1")
    totals.tick()
    assert totals.rows("totals") == current(totals)
    assert totals.db.value(f"SELECT count(*) FROM {buffer}") == 0


LOSES_SPARK = """
import os, signal, sys, pytrickle
from pyspark import SparkContext
with pytrickle.connect(sys.argv[1], spark_master="local[1]", direct_delta_rows=0) as client:
    client.tick()
    os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
    SparkContext._gateway.proc.wait()
    client._connection().execute("INSERT INTO public.orders VALUES (9, 9, 90)")
    for _ in range(2):
        print([(result.action, result.error) for result in client.tick()])
"""
LOST = "The Spark session was lost: its Java ended by signal 9."


def test_a_lost_spark_session_is_built_anew(shop: Shop) -> None:
    shop.pt.create_stream_table("copy", "SELECT id, amount FROM orders")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOSES_SPARK, shop.db.dsn],
        env={**os.environ, "PYTHONPATH": os.getcwd()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.splitlines() == [str([("FAILED", LOST)]), str([("DIFFERENTIAL", None)])], done.stderr
    assert "Spark was lost; the next refresh that needs it starts another one." in done.stderr
    assert shop.rows("copy") == {(9, 90)}
