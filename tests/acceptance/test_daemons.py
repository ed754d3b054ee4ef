"""Several daemons on one database: one leads, another takes over, and no kill loses or doubles a change."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.acceptance.slow import SLOWLY, TOTALS
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.waiting import wait_for, wait_until_blocked

RUN = [sys.executable, "-W", "ignore", "-c", "from pytrickle.cli import main; main()", "run"]
KILLS = (2, 20)
# Where the leader stands when it is killed: reading the delta, or about to write.
READING = "SELECT pg_advisory_lock(4711)"
WRITING = "SELECT FROM pgtrickle.pgt_stream_tables WHERE pgt_id = 1 FOR UPDATE"


class Daemon:
    """A `pytrickle run` in a process of its own; what it says goes to a file."""

    def __init__(self, dsn: str, log: Path, **further: str) -> None:
        ours = {"PYTRICKLE_DSN": dsn, "PYTRICKLE_POLL_INTERVAL": "0.2", "PYTHONPATH": os.getcwd()}
        environment = {**os.environ, **ours, **further}
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(RUN, stdout=output, stderr=output, env=environment, start_new_session=True)

    @property
    def leads(self) -> bool:
        """Whether it is alive and has said that it refreshes."""
        assert self.process.poll() is None, self.log.read_text()
        return "Refreshing." in self.log.read_text()

    @property
    def stands_by(self) -> bool:
        """Whether it is alive and has said that another one leads."""
        assert self.process.poll() is None, self.log.read_text()
        return "standing by" in self.log.read_text() and not self.leads

    def end(self, number: int) -> int:
        """Send a signal and wait until the process is gone; return its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(timeout=30)


@pytest.fixture
def shop(db: Database) -> Database:
    """A filled aggregate over orders, in which each refresh can be made to wait."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int)")
    db.execute(SLOWLY)
    db.execute("INSERT INTO orders SELECT n, n % 3, n FROM generate_series(1, 60) AS n")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("totals", TOTALS)
        client.tick()
    return db


@contextmanager
def daemons(db: Database, directory: Path) -> Iterator[list[Daemon]]:
    """Yield a growing list of daemons, all of which are killed in the end."""
    started: list[Daemon] = []
    with ExitStack() as stack:
        stack.callback(lambda: [daemon.end(signal.SIGKILL) for daemon in started])
        yield started


def start(db: Database, directory: Path, started: list[Daemon]) -> Daemon:
    started.append(Daemon(db.dsn, directory / f"daemon-{len(started)}.log"))
    return started[-1]


def is_exact(db: Database) -> bool:
    """Whether the stream table equals its query over what is committed."""
    query = "SELECT customer, count(*), sum(amount) FROM orders GROUP BY customer"
    return sorted(db.execute(query)) == sorted(db.execute("SELECT * FROM totals"))


@pytest.mark.parametrize("kills", first(1, KILLS, then=0))
def test_a_leader_killed_in_mid_tick_is_followed_and_nothing_is_lost_or_doubled(
    shop: Database, tmp_path: Path, kills: int
) -> None:
    locker = shop.connect(autocommit=False)
    with daemons(shop, tmp_path) as started:
        leader = start(shop, tmp_path, started)
        wait_for(lambda: leader.leads, "the first daemon to lead")
        for number in range(kills):
            heir = start(shop, tmp_path, started)
            obstacle = (READING, WRITING)[number % 2]
            locker.execute(obstacle.encode())
            shop.execute(f"INSERT INTO orders VALUES ({100 + number}, {number % 5}, 1)")
            shop.execute(f"UPDATE orders SET amount = amount + 1 WHERE id = {number + 1}")
            shop.execute(f"DELETE FROM orders WHERE id = {60 - number}")
            wait_until_blocked(shop, "UPDATE pgtrickle.pgt_stream_tables" if obstacle == WRITING else "slowly")
            wait_for(lambda: heir.stands_by, "the second daemon to stand by")  # noqa: B023
            assert leader.end(signal.SIGKILL) == -signal.SIGKILL
            locker.execute("SELECT pg_advisory_unlock_all()")
            locker.commit()
            wait_for(lambda: heir.leads, "the second daemon to take over")  # noqa: B023
            wait_for(lambda: is_exact(shop), f"the stream table to be right after kill {number + 1}")
            leader = heir
        assert leader.end(signal.SIGTERM) == 0
    assert shop.value("SELECT count(*) FROM orders") == 60
    with local_client(shop.dsn) as (client, _):
        assert client.verify("totals").matches


def test_a_leader_that_is_told_to_end_finishes_and_hands_over(shop: Database, tmp_path: Path) -> None:
    with daemons(shop, tmp_path) as started:
        first = start(shop, tmp_path, started)
        wait_for(lambda: first.leads, "the first daemon to lead")
        second = start(shop, tmp_path, started)
        wait_for(lambda: second.stands_by, "the second daemon to stand by")
        shop.execute("INSERT INTO orders VALUES (200, 1, 5)")
        wait_for(lambda: is_exact(shop), "the leader to refresh")
        assert first.end(signal.SIGTERM) == 0
        wait_for(lambda: second.leads, "the second daemon to take over")
        shop.execute("INSERT INTO orders VALUES (201, 1, 5)")
        wait_for(lambda: is_exact(shop), "the second daemon to refresh")
        assert second.end(signal.SIGTERM) == 0


def test_a_daemon_outlives_the_sessions_that_the_server_ends(shop: Database, tmp_path: Path) -> None:
    with daemons(shop, tmp_path) as started:
        daemon = start(shop, tmp_path, started)
        wait_for(lambda: daemon.leads, "the daemon to lead")
        ours = "datname = current_database() AND application_name LIKE 'pytrickle/%%'"
        shop.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
        shop.execute("INSERT INTO orders VALUES (300, 1, 5)")
        wait_for(lambda: is_exact(shop), "the daemon to refresh on new connections")
        assert daemon.end(signal.SIGTERM) == 0


def test_a_daemon_outlives_a_server_that_takes_no_changes_for_a_while(shop: Database, tmp_path: Path) -> None:
    read_only = "ALTER DATABASE {} SET default_transaction_read_only = {}"
    name = shop.value("SELECT quote_ident(current_database())")
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'pytrickle/%%'"
    with daemons(shop, tmp_path) as started:
        daemon = start(shop, tmp_path, started)
        wait_for(lambda: daemon.leads, "the daemon to lead")
        for number in (400, 401):
            # Once the second one is there the first tick is over.
            shop.execute("INSERT INTO orders VALUES (%s, 1, 5)", number)
            wait_for(lambda: is_exact(shop), "the daemon to refresh")
        shop.execute(read_only.format(name, "on"))
        shop.execute(end)
        tries = set[int]()
        ours = "SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pytrickle/%%' AND datname = %s"
        wait_for(
            lambda: tries.update(pid for (pid,) in shop.execute(ours, name)) or len(tries) > 3,
            "the daemon to try again and again",
            still_possible=lambda: daemon.process.poll() is None,
        )
        shop.execute(read_only.format(name, "off"))
        shop.execute("INSERT INTO orders VALUES (402, 1, 5)")
        wait_for(lambda: is_exact(shop), "the daemon to refresh as soon as it may")
        assert daemon.end(signal.SIGTERM) == 0


def test_a_daemon_whose_role_may_change_nothing_says_so_and_ends(shop: Database, tmp_path: Path) -> None:
    daemon = Daemon(shop.dsn, tmp_path / "daemon.log", PGOPTIONS="-c default_transaction_read_only=on")
    assert daemon.process.wait(timeout=60) == 1
    assert "default_transaction_read_only" in daemon.log.read_text()


def test_a_daemon_waits_until_its_statements_may_take_as_long_as_they_do(shop: Database, tmp_path: Path) -> None:
    name = shop.value("SELECT current_database()")
    with daemons(shop, tmp_path) as started:
        daemon = start(shop, tmp_path, started)
        wait_for(lambda: daemon.leads, "the daemon to lead")
        shop.execute(f"ALTER DATABASE {name} SET statement_timeout = '1ms'")
        ours = "datname = current_database() AND application_name LIKE 'pytrickle/%%'"
        shop.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
        wait_for(lambda: "Trying again" in daemon.log.read_text(), "the daemon to meet the limit")
        shop.execute("SELECT pg_sleep(1)")
        shop.execute(f"ALTER DATABASE {name} RESET statement_timeout")
        shop.execute("INSERT INTO orders VALUES (300, 1, 5)")
        wait_for(lambda: is_exact(shop), "the daemon to refresh again")
        assert daemon.end(signal.SIGTERM) == 0


# A Java that knows its version, and else never does anything until the one who started it is gone.
JAVA = """#!/bin/sh
[ "$1" = -version ] && { echo 'openjdk version "21.0.1"' >&2; exit; }
touch "$STARTED"
exec cat
"""


def _java_that_never_does_anything(home: Path) -> tuple[Path, dict[str, str]]:
    """Return the file that tells of its start, and the environment that has it started."""
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(JAVA)
    java.chmod(0o755)
    return home / "started", {"JAVA_HOME": str(home), "STARTED": str(home / "started")}


def test_a_daemon_whose_first_connection_ends_tries_again_as_it_does_later(shop: Database, tmp_path: Path) -> None:
    ours = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pytrickle/refresher'"
    holder = shop.connect(autocommit=False)
    holder.execute("LOCK TABLE pgtrickle.pgt_schema_version")
    daemon = Daemon(shop.dsn, tmp_path / "log")
    try:
        wait_for(lambda: shop.execute(ours), "its first connection", lambda: daemon.process.poll() is None)
        shop.execute(f"SELECT pg_terminate_backend(pid) FROM ({ours}) AS o")
        wait_for(
            lambda: "Trying again" in daemon.log.read_text(), "its sentence", lambda: daemon.process.poll() is None
        )
        holder.rollback()
        wait_for(lambda: daemon.leads, "the daemon")
    finally:
        assert daemon.end(signal.SIGTERM) == 0
    # What the server said last does not always reach it, but a sentence does, with a full stop.
    assert ". Trying again until that is over." in daemon.log.read_text()


def test_a_daemon_whom_nobody_answers_at_first_says_so_and_ends(tmp_path: Path) -> None:
    daemon = Daemon("host=127.0.0.1 port=1 dbname=nowhere", tmp_path / "log")
    assert daemon.process.wait(timeout=60) == 1
    assert "Check that the server runs" in daemon.log.read_text()


def test_a_leader_whose_engine_is_spark_starts_it_before_there_is_work(db: Database, tmp_path: Path) -> None:
    begun, environment = _java_that_never_does_anything(tmp_path)
    daemon = Daemon(db.dsn, tmp_path / "daemon.log", PYTRICKLE_ENGINE="spark", **environment)
    try:
        wait_for(begun.exists, "Java to be started")
        assert daemon.leads
        assert daemon.end(signal.SIGTERM) == 0
    finally:
        daemon.end(signal.SIGKILL)
    assert "Traceback" not in daemon.log.read_text()


@pytest.mark.parametrize("number", first(1, (signal.SIGTERM, signal.SIGINT), then=0))
@pytest.mark.parametrize("tables", first(1, (1, 2)), ids=["in the main thread", "in a lane"])
def test_a_second_signal_ends_a_daemon_while_its_java_starts(
    shop: Database, tmp_path: Path, number: signal.Signals, tables: int
) -> None:
    if tables == 2:
        shop.execute("SELECT pgtrickle.create_stream_table('counts', 'SELECT count(*) FROM orders')")
    shop.execute("INSERT INTO orders VALUES (400, 1, 5)")
    begun, environment = _java_that_never_does_anything(tmp_path)
    daemon = Daemon(shop.dsn, tmp_path / "daemon.log", PYTRICKLE_DIRECT_DELTA_ROWS="0", **environment)
    try:
        wait_for(begun.exists, "Java to be started")
        daemon.process.send_signal(number)
        wait_for(lambda: "Stopping" in daemon.log.read_text(), "the first signal to be taken in")
        daemon.process.send_signal(number)
        assert daemon.process.wait(timeout=15) == 0
    finally:
        daemon.end(signal.SIGKILL)
    said = daemon.log.read_text()
    assert "Traceback" not in said and "Stopped" in said, said
    assert shop.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE initiated_by = 'SCHEDULER'") == 1
