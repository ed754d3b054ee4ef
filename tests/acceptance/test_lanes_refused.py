"""A server with no connection left for another lane: what lanes there are do the work, and else the tick itself."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pytrickle.catalog import install as migrate
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

SOURCES = ("one", "two", "three")


@pytest.fixture
def owned(empty_db: Database) -> Iterator[tuple[Database, Client]]:
    """Three stream tables that do not read each other, and the client of a role that a connection limit can bind."""
    role = empty_db.create_role("refresher")
    empty_db.execute(f"ALTER DATABASE {empty_db.value('SELECT current_database()')} OWNER TO {role}")
    dsn = make_conninfo(empty_db.dsn, user=role)
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate.install(connection)
        connection.execute("CREATE SCHEMA shop")
        for name in SOURCES:
            connection.execute(f"CREATE TABLE shop.{name} (id int PRIMARY KEY)".encode())
    with local_client(dsn, max_concurrent_refreshes=3) as (client, _):
        for name in SOURCES:
            client.create_stream_table(f"shop.{name}_copy", f"SELECT id FROM shop.{name}")
            client.tick()
        yield empty_db, client
    empty_db.execute(f"ALTER DATABASE {empty_db.value('SELECT current_database()')} OWNER TO CURRENT_USER")


def _limit(db: Database, room: int) -> None:
    used = db.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'refresher'")
    db.execute(f"ALTER ROLE refresher CONNECTION LIMIT {used + room}")


@pytest.mark.parametrize("room", first(2, (0, 3, 1, 2, 4)))
def test_a_lane_that_the_server_refuses_is_done_without(
    owned: tuple[Database, Client], room: int, caplog: pytest.LogCaptureFixture
) -> None:
    db, client = owned
    _limit(db, room)
    for number in (1, 2):
        for name in SOURCES:
            db.execute(f"INSERT INTO shop.{name} VALUES ({number})")
        with caplog.at_level(logging.WARNING):
            results = client.tick()
        assert {(each.action, each.rows_inserted) for each in results} == {("DIFFERENTIAL", 1)}
        assert len(results) == len(SOURCES)
    (told,) = (record.getMessage() for record in caplog.records)
    assert "too many connections" in told
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_requests") == 0


def test_lanes_that_were_refused_are_opened_once_there_is_room(
    owned: tuple[Database, Client], caplog: pytest.LogCaptureFixture
) -> None:
    db, client = owned
    lanes = "SELECT count(*) FROM pg_stat_activity WHERE application_name ^@ 'pytrickle/refresher'"
    before = db.value(lanes)
    for number, limit in ((1, "0"), (2, "-1"), (3, "-1")):
        if limit == "-1":
            db.execute("ALTER ROLE refresher CONNECTION LIMIT -1")
        else:
            _limit(db, 0)
        for name in SOURCES:
            db.execute(f"INSERT INTO shop.{name} VALUES ({number})")
        assert not [each.error for each in client.tick() if each.error]
    assert db.value(lanes) == before + len(SOURCES)
    assert len(caplog.records) == 1
