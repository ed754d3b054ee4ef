"""A physical standby: everything can be looked at there, nothing is refreshed, and once promoted it goes on."""

from collections.abc import Callable, Iterator
from threading import Thread

import psycopg
import pytest

import pytrickle
from pytrickle.errors import PytrickleError, ReadOnly
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.servers import OLDEST, Server
from tests.waiting import wait_for


def answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def standby(servers: Callable[[int], Server], db: Database) -> Iterator[str]:
    """The DSN of the database on a standby; it has one stream table, which is up to date."""
    db.execute("CREATE TABLE orders (id integer, customer integer); INSERT INTO orders VALUES (1, 1), (2, 1)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("totals", "SELECT customer, count(*) AS n FROM orders GROUP BY customer")
        client.tick()
    db.execute("SELECT pgtrickle.create_feed('f', 'orders')")
    with servers(OLDEST).standby() as dsn_of:
        dsn = dsn_of(db.connect().info.dbname)
        wait_for(lambda: answers(dsn), "the standby")
        yield dsn


def test_a_standby_is_looked_at_and_refreshes_once_it_is_promoted(standby: str) -> None:
    with pytrickle.connect(standby) as client:
        assert [table.stream_table for table in client.stream_tables()] == ["public.totals"]
        for attempt in (client.tick, lambda: client.refresh("totals")):
            with pytest.raises(ReadOnly, match="The server is a standby"):
                attempt()
        with pytest.raises(ReadOnly):
            client.verify("totals")
    run = commands(standby)
    assert {run(command).exit_code for command in ("status", "metrics", "freshness", "dag")} == {0}
    troubles: list[PytrickleError] = []
    results: list[object] = []
    with pytrickle.connect(standby) as client, psycopg.connect(standby, autocommit=True) as own:
        running = Thread(target=lambda: client.run(on_error=troubles.append, on_result=results.append))
        running.start()
        wait_for(lambda: troubles, "the refresher to find a standby")
        own.execute("SELECT pg_promote()")
        own.execute("INSERT INTO orders VALUES (3, 2)")
        wait_for(lambda: own.execute("SELECT FROM totals WHERE customer = 2").rowcount == 1, "a refresh")
        client.stop()
        running.join()
    assert isinstance(troubles[0], ReadOnly)


def test_versions_that_a_promoted_standby_never_got_are_not_given_again(db: Database, standby: str) -> None:
    changes = "SELECT (changed).id FROM pgtrickle.changes_of_versions(NULL::orders, %s, %s) ORDER BY 1"
    with psycopg.connect(standby, autocommit=True) as own:
        own.execute("SET statement_timeout = '30s'")
        # What the primary commits from here on is lost.
        own.execute("ALTER SYSTEM SET primary_conninfo = ''")
        own.execute("SELECT pg_reload_conf()")
        gone = "SELECT FROM pg_stat_wal_receiver"
        wait_for(lambda: not own.execute(gone).fetchall(), "the standby to lose its primary")
        for day in range(1, 40):  # Of 32 numbers a standby knows in advance.
            db.execute("SELECT pgtrickle.advance_watermark('orders', '2026-01-01'::date + %s)", day)
        read = db.value("SELECT max(version) FROM pgtrickle.versions('orders')")
        own.execute("SELECT pg_promote()")
        for day in range(1, 80):
            own.execute("SELECT pgtrickle.advance_watermark('orders', '2026-06-01'::date + %s)", [day])
        (newest,) = own.execute("SELECT max(version) FROM pgtrickle.versions('orders')").fetchone() or (0,)
        assert newest > read
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=f"has no version {read}"):
            own.execute(changes, (read, newest))
