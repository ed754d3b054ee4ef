"""A physical standby: everything can be looked at there, nothing is refreshed, and once promoted it goes on."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

import pytrickle
from pytrickle.errors import ConnectionLost, PytrickleError, ReadOnly
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


def cut_off(standby: psycopg.Connection[Any]) -> None:
    """Have a standby get nothing more of what its primary commits."""
    standby.execute("ALTER SYSTEM SET primary_conninfo = ''")
    standby.execute("SELECT pg_reload_conf()")
    receiving = "SELECT FROM pg_stat_wal_receiver"
    wait_for(lambda: not standby.execute(receiving).fetchall(), "the standby to lose its primary")


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
        cut_off(own)
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


@pytest.fixture
def lone_server() -> Iterator[Server]:
    """A server that a test may stop; nothing but the test takes numbers of transactions there."""
    server = Server(OLDEST, autovacuum="off")
    yield server
    server.stop()


def test_versions_that_a_copy_of_the_files_lacks_are_not_given_again(lone_server: Server, tmp_path: Path) -> None:
    """Nothing tells such a copy from the server that was stopped but that it is started."""
    shop, numbers = lone_server.create("shop"), "SELECT version FROM pgtrickle.versions('orders') ORDER BY 1"
    pytrickle.install(shop)

    def advanced(month: int, days: int) -> list[int]:
        with psycopg.connect(shop, autocommit=True) as own:
            for day in range(days):
                own.execute("SELECT pgtrickle.advance_watermark('orders', make_date(2026, %s, 1) + %s)", [month, day])
            return [version for (version,) in own.execute(numbers)]

    with psycopg.connect(shop) as own:
        own.execute("CREATE TABLE orders (id int); SELECT pgtrickle.create_feed('f', 'orders')")
    assert advanced(1, 3) == [1, 2, 3], "numbers are small where the server was never started since"
    with lone_server.stopped() as data:
        subprocess.run(["cp", "-a", data, tmp_path / "copy"], check=True)
    read = advanced(2, 3)
    assert len(read) == 6, "a start makes nobody read anew"
    with lone_server.stopped() as data:
        shutil.rmtree(data)
        subprocess.run(["cp", "-a", tmp_path / "copy", data], check=True)
    assert set(advanced(3, 6)) & set(read) == {1, 2, 3}


@pytest.mark.parametrize("lanes_alone", [False, True], ids=["all that write", "the lanes alone"])
def test_what_one_server_shows_is_never_written_on_another(lone_server: Server, lanes_alone: bool) -> None:
    """After a failover an old primary may go on: connections that are kept lead there, new ones do not."""
    primary = lone_server.create("shop")
    pytrickle.install(primary)
    with psycopg.connect(primary, autocommit=True) as old:
        old.execute("CREATE TABLE orders AS SELECT generate_series(1, 9) AS id")
        with lone_server.standby() as dsn_of:
            wait_for(lambda: answers(dsn_of("shop")), "the standby")
            ports = ",".join(str(conninfo_to_dict(dsn)["port"]) for dsn in (primary, dsn_of("shop")))
            hosts = make_conninfo(primary, host="127.0.0.1,127.0.0.1", port=ports, target_session_attrs="read-write")
            with pytrickle.connect(hosts, engine="postgres", max_concurrent_refreshes=2) as client:
                for name in "st":
                    client.create_stream_table(name, "SELECT id FROM orders")
                assert {result.error for result in client.tick()} == {None}
                position = old.execute("SELECT pg_current_wal_lsn()").fetchone()
                with psycopg.connect(dsn_of("shop"), autocommit=True) as new:
                    behind = "SELECT pg_last_wal_replay_lsn() < %s"
                    wait_for(lambda: new.execute(behind, position).fetchone() == (False,), "the standby to follow")
                    cut_off(new)
                    new.execute("SELECT pg_promote()")
                    old.execute("INSERT INTO orders VALUES (10)")
                    new.execute("INSERT INTO orders VALUES (20)")
                    old.execute("ALTER DATABASE shop SET default_transaction_read_only = on")
                    ended = """
                        SELECT pg_terminate_backend(pid) FROM (
                            SELECT pid FROM pg_stat_activity WHERE application_name = 'pytrickle/refresher'
                            ORDER BY backend_start OFFSET %s) AS a"""
                    assert old.execute(ended, [int(lanes_alone)]).rowcount == 3 - lanes_alone
                    with pytest.raises(ConnectionLost):
                        client.tick()
                    # Lanes to the new server are refused: the old one may be followed once more, then the new one.
                    for _ in range(1 + lanes_alone):
                        assert {result.error for result in client.tick()} == {None}
                    assert {(found.stream_table, found.matches) for found in client.verify()} == {
                        ("public.s", True), ("public.t", True)
                    }  # fmt: skip
                    assert new.execute("SELECT max(id) FROM s").fetchone() == (20,)
                    assert old.execute("SELECT max(id) FROM s").fetchone() in {(9,), (10 if lanes_alone else 9,)}


def test_a_refresher_forgets_what_a_failover_lost(lone_server: Server) -> None:
    primary = lone_server.create("shop")
    pytrickle.install(primary)
    alter = "SELECT pgtrickle.alter_stream_table('s', query => 'SELECT id FROM orders WHERE id > %s')"
    with psycopg.connect(primary, autocommit=True) as own:
        own.execute("CREATE TABLE orders AS SELECT generate_series(1, 9) AS id")
        own.execute("SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM orders')")
    with lone_server.standby() as dsn_of:
        wait_for(lambda: answers(dsn_of("shop")), "the standby")
        ports = ",".join(str(conninfo_to_dict(dsn)["port"]) for dsn in (primary, dsn_of("shop")))
        hosts = make_conninfo(primary, host="127.0.0.1,127.0.0.1", port=ports, target_session_attrs="read-write")
        with (
            psycopg.connect(dsn_of("shop"), autocommit=True) as standby,
            pytrickle.connect(hosts, engine="postgres") as client,
        ):
            client.tick()
            with psycopg.connect(primary, autocommit=True) as own:
                position = own.execute("SELECT pg_current_wal_lsn()").fetchone()
                behind = "SELECT pg_last_wal_replay_lsn() < %s"
                wait_for(lambda: standby.execute(behind, position).fetchone() == (False,), "the standby to follow")
                cut_off(standby)
                own.execute(alter % 3)
            client.tick()
            lone_server.stop()
            standby.execute("SELECT pg_promote()")
            # The transaction has the number of the one that is lost.
            standby.execute(alter % 5)
            with pytest.raises(ConnectionLost):
                client.tick()
            client.tick()
            assert standby.execute("SELECT id FROM s ORDER BY id").fetchall() == [(6,), (7,), (8,), (9,)]
