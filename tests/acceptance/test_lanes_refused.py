"""A server with no connection left for another lane, or beside them: what lanes there are do the work, or the tick."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

import pytrickle
from pytrickle.catalog import install as migrate
from pytrickle.client.client import Client
from pytrickle.schedule.lanes import FEWER_FOR
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = ("one", "two", "three")
LANES = "SELECT count(*) FROM pg_stat_activity WHERE application_name ^@ 'pytrickle/refresher'"


@contextmanager
def _owned(db: Database) -> Iterator[str]:
    """Let a role that a connection limit can bind own the database and three tables; yield its connection string."""
    role = db.create_role("refresher")
    db.execute(f"ALTER DATABASE {db.value('SELECT current_database()')} OWNER TO {role}")
    dsn = make_conninfo(db.dsn, user=role)
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate.install(connection)
        connection.execute("CREATE SCHEMA shop")
        for name in SOURCES:
            connection.execute(f"CREATE TABLE shop.{name} (id int PRIMARY KEY)".encode())
    yield dsn
    db.execute(f"ALTER DATABASE {db.value('SELECT current_database()')} OWNER TO CURRENT_USER")


def _load(client: Client) -> None:
    for name in SOURCES:
        client.create_stream_table(f"shop.{name}_copy", f"SELECT id FROM shop.{name}")
        client.tick()


@pytest.fixture
def owned(empty_db: Database) -> Iterator[tuple[Database, Client]]:
    """Three stream tables that do not read each other, and the client of their owner, which computes where it reads."""
    with _owned(empty_db) as dsn, local_client(dsn, max_concurrent_refreshes=3) as (client, _):
        _load(client)
        yield empty_db, client


@pytest.fixture
def reading(empty_db: Database) -> Iterator[tuple[Database, Client]]:
    """The same, where each refresh is computed by the engine, which reads by a connection of its own."""
    with _owned(empty_db) as dsn, local_client(dsn, max_concurrent_refreshes=3, engine="spark") as (client, engine):
        engine.running = True
        _load(client)
        assert len(engine.plans) == len(SOURCES)
        yield empty_db, client


def _limit(db: Database, room: int) -> None:
    used = db.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'refresher'")
    db.execute(f"ALTER ROLE refresher CONNECTION LIMIT {used + room}")


def _change(db: Database, number: int) -> None:
    for name in SOURCES:
        db.execute(f"INSERT INTO shop.{name} VALUES ({number})")


@pytest.mark.parametrize("room", first(2, (0, 3, 1, 2, 4)))
def test_a_lane_that_the_server_refuses_is_done_without(
    owned: tuple[Database, Client], room: int, caplog: pytest.LogCaptureFixture
) -> None:
    db, client = owned
    _limit(db, room)
    for number in (1, 2):
        _change(db, number)
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
    before = db.value(LANES)
    for number, limit in ((1, "0"), (2, "-1"), (3, "-1")):
        if limit == "-1":
            db.execute("ALTER ROLE refresher CONNECTION LIMIT -1")
        else:
            _limit(db, 0)
        _change(db, number)
        assert not [each.error for each in client.tick() if each.error]
    assert db.value(LANES) == before + len(SOURCES)
    assert len(caplog.records) == 1


@pytest.mark.parametrize("limit", first(3, (6, 3, 8, 4, 5, 7, 9)))
def test_lanes_leave_connections_to_compute_by(reading: tuple[Database, Client], limit: int) -> None:
    """The tick's two connections and one to compute by are enough."""
    db, client = reading
    db.execute(f"ALTER ROLE refresher CONNECTION LIMIT {limit}")
    for number in (1, 2):
        _change(db, number)
        results = client.tick()
        assert [(each.action, each.rows_inserted, each.error) for each in results] == [("DIFFERENTIAL", 1, None)] * 3
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'") == 0


def test_after_a_while_one_more_lane_is_tried(
    reading: tuple[Database, Client], caplog: pytest.LogCaptureFixture
) -> None:
    db, client = reading
    db.execute("ALTER ROLE refresher CONNECTION LIMIT 4")
    _change(db, 1)
    client.tick()
    db.execute("ALTER ROLE refresher CONNECTION LIMIT -1")
    lanes = client._ticker.lanes
    found = []
    for number, later in ((2, 0.0), (3, FEWER_FOR), (4, 0.0), (5, FEWER_FOR)):
        lanes.fewer_until -= later
        _change(db, number)
        assert not [each.error for each in client.tick() if each.error]
        found.append(len(lanes.further))
    assert found == [0, 2, 2, 3]
    assert len(caplog.records) == 1


def test_a_refresh_alone_takes_back_the_connections_of_idle_lanes(reading: tuple[Database, Client]) -> None:
    db, client = reading
    _change(db, 1)
    client.tick()
    assert len(client._ticker.lanes.further) == len(SOURCES)
    _limit(db, 0)
    _change(db, 2)
    assert client.refresh("shop.one_copy").rows_inserted == 1
    assert not client._ticker.lanes.further


def test_what_finds_no_connection_even_alone_fails(reading: tuple[Database, Client]) -> None:
    db, client = reading
    db.execute("ALTER ROLE refresher CONNECTION LIMIT 2")
    _change(db, 1)
    results = client.tick()
    assert [each.action for each in results] == ["FAILED"] * 3
    assert db.execute("SELECT DISTINCT sqlstate FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'") == [
        ("SQLSTATE 53300",)
    ]
    db.execute("ALTER ROLE refresher CONNECTION LIMIT -1")
    assert [each.action for each in client.tick()] == ["DIFFERENTIAL"] * 3


def test_spark_finds_a_connection_beside_the_lanes(empty_db: Database, spark: SparkSession) -> None:
    with (
        _owned(empty_db) as dsn,
        pytrickle.connect(dsn, spark=spark, engine="spark", max_concurrent_refreshes=3) as client,
    ):
        _load(client)
        empty_db.execute("ALTER ROLE refresher CONNECTION LIMIT 4")
        _change(empty_db, 1)
        assert [(each.action, each.rows_inserted, each.error) for each in client.tick()] == [
            ("DIFFERENTIAL", 1, None)
        ] * 3
