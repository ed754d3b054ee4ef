"""A transaction that is left open holds up what it locks for a moment, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

import pytrickle
from pytrickle.catalog import change_ranges, session_settings
from pytrickle.database import lock_timeout
from pytrickle.errors import LockTimeout
from pytrickle.schedule import mending
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first, only

SCHEMA = """
CREATE TABLE orders (id int PRIMARY KEY, amount int NOT NULL);
CREATE TABLE events (id int NOT NULL, kind text, note text) PARTITION BY RANGE (id);
CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (10);
CREATE TABLE events_high PARTITION OF events FOR VALUES FROM (10) TO (20);
CREATE TABLE loose (id int NOT NULL, kind text, note text);
INSERT INTO loose VALUES (25, 'loose');
CREATE VIEW seen AS SELECT id, kind FROM events;
"""
TABLES = {
    "apart": "SELECT id, amount FROM orders",
    "happened": "SELECT id, kind FROM events",
    "viewed": "SELECT id FROM seen",
}
ATTACH = "ALTER TABLE events ATTACH PARTITION loose FOR VALUES FROM (20) TO (30)"
SWITCHED_OFF = "ALTER TABLE events DISABLE TRIGGER USER"
WRITE = "INSERT INTO events VALUES (1, 'open')"
NEW_VIEW = "CREATE OR REPLACE VIEW seen AS SELECT id + 100 AS id, kind FROM events"
WAIT = "SELECT retry_at > clock_timestamp() FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'happened'"
ELAPSED = "UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL"


@dataclass(frozen=True)
class World:
    """Stream tables over orders, where nothing stands still, and over events, where a transaction is left open."""

    db: Database
    pt: pytrickle.Client

    def tick(self) -> dict[str, pytrickle.RefreshResult]:
        """Tick within a few seconds, with an order that must reach `apart` meanwhile."""
        self.db.execute("INSERT INTO orders SELECT 1 + count(*), 1 FROM orders")
        with ThreadPoolExecutor(1) as pool:
            ticking = pool.submit(self.pt.tick)
            try:
                results = ticking.result(timeout=20)
            except TimeoutError:
                self.db.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND pid <> pg_backend_pid()"
                )
                raise
        assert self.db.execute("TABLE apart ORDER BY 1") == self.db.execute("TABLE orders ORDER BY 1")
        return {result.stream_table.partition(".")[2]: result for result in results}

    def open(self, *statements: str) -> psycopg.Connection[Any]:
        """Open a transaction, and leave it open."""
        connection = self.db.connect(autocommit=False)
        for statement in statements:
            connection.execute(statement.encode())
        return connection

    def assert_healed(self) -> None:
        """Once nothing is open, everything is refreshed, and right."""
        self.db.execute(ELAPSED)
        assert not [result for result in self.tick().values() if result.error]
        assert all(self.pt.verify(table.stream_table).matches for table in self.pt.stream_tables())
        kept = "SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE last_error IS NOT NULL OR status <> 'ACTIVE'"
        assert self.db.value(kept) == 0


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less long for a lock: almost all of these tests is waiting for one that is not given."""
    monkeypatch.setattr(lock_timeout, "PATIENCE", "300ms")
    monkeypatch.setattr(session_settings, "PATIENCE", "300ms")
    monkeypatch.setattr(change_ranges, "PATIENCE", "300ms")
    monkeypatch.setattr(mending, "PATIENCE", "200ms")


@pytest.fixture(params=first(1, (1, 4)), ids=["one lane", "four lanes"])
def world(db: Database, impatient: None, request: pytest.FixtureRequest) -> Iterator[World]:
    with db.connect() as connection:
        connection.execute(SCHEMA)
    with local_client(db.dsn, max_concurrent_refreshes=request.param) as (client, _):
        for name, query in TABLES.items():
            client.create_stream_table(name, query)
        client.tick()
        yield World(db, client)


def test_capture_that_cannot_be_repaired_holds_up_only_what_reads_its_source(world: World) -> None:
    world.db.execute(SWITCHED_OFF)
    writer = world.open(WRITE)
    for _ in range(2):
        results = world.tick()
        assert {results[name].action for name in ("happened", "viewed")} == {"FAILED"}
        assert "could not lock" in (results["happened"].error or "")
    while not world.db.value(WAIT):
        world.tick()
    assert set(world.tick()) == {"apart"}, "it is left alone for a while"
    writer.commit()
    world.assert_healed()
    assert world.db.execute("TABLE happened ORDER BY 1") == [(1, "open")]


def test_capture_is_not_repaired_while_what_reads_it_is_left_alone(world: World) -> None:
    """Otherwise every tick would wait for the lock for a moment, and hold up the writers that come after it."""
    world.db.execute(SWITCHED_OFF)
    writer = world.open(WRITE)
    world.tick()
    world.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = now() + '1 day' WHERE pgt_name <> 'apart'")
    writer.commit()
    assert set(world.tick()) == {"apart"}
    assert world.db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE reinitialize_reason IS NOT NULL") == 0
    assert world.pt.refresh("happened").action == "REINITIALIZE", "a refresh by hand does not wait"
    world.assert_healed()


def test_a_writer_does_not_keep_a_partition_from_being_followed_that_came(world: World) -> None:
    world.db.execute(ATTACH)
    writer = world.open(WRITE)
    results = world.tick()
    assert {results[name].action for name in ("happened", "viewed")} == {"REINITIALIZE"}
    assert world.db.execute("TABLE happened ORDER BY 1") == [(25, "loose")]
    writer.commit()
    world.assert_healed()
    assert world.db.execute("TABLE happened ORDER BY 1") == [(1, "open"), (25, "loose")]


def test_a_reader_of_a_former_partition_holds_up_only_what_read_it(world: World) -> None:
    world.db.execute("ALTER TABLE events DETACH PARTITION events_high")
    reader = world.open("SELECT FROM events_high")
    results = world.tick()
    assert {results[name].action for name in ("happened", "viewed")} == {"FAILED"}
    reader.rollback()
    world.assert_healed()


def test_a_replaced_view_is_taken_in_when_what_it_reads_can_be_locked(world: World) -> None:
    world.db.execute(NEW_VIEW)
    writer = world.open(WRITE)
    results = world.tick()
    assert results["viewed"].action == "FAILED"
    assert results["happened"].error is None, "its own query is what it was"
    writer.commit()
    world.assert_healed()
    assert world.db.execute("TABLE viewed") == [(101,)]


OPEN = {
    "events are altered": "ALTER TABLE events ADD COLUMN later int",
    "events are emptied": "TRUNCATE events",
    "a stream table is created": "SELECT pgtrickle.create_stream_table('more', 'SELECT kind FROM seen')",
    "a stream table that needs another column is created": "SELECT pgtrickle.create_stream_table('more',"
    " 'SELECT note FROM events')",
    "a stream table is altered": "SELECT pgtrickle.alter_stream_table('happened', schedule => '1s')",
    "a query is altered": "SELECT pgtrickle.alter_stream_table('happened', query => 'SELECT id, kind FROM seen')",
    "a stream table is dropped": "SELECT pgtrickle.drop_stream_table('happened')",
    "capture is repaired": "SELECT pgtrickle.repair_capture('events')",
    "a source is gated": "SELECT pgtrickle.gate_source('events')",
    "a watermark advances for the first time": "SELECT pgtrickle.advance_watermark('events', now())",
    "a refresh is asked for": "SELECT pgtrickle.refresh_stream_table('happened')",
    "alerts are raised": "SELECT pgtrickle.raise_alerts()",
    "the history is trimmed": "SELECT pgtrickle.trim_history('0')",
    "a stream table is paused": "SELECT pgtrickle.pause_stream_table('happened')",
    "another stream table over events is dropped": "SELECT pgtrickle.drop_stream_table('viewed')",
}


# One that changes a source, a query, capture, a watermark and a request.
OF_EACH_KIND = {
    *("events are altered", "capture is repaired", "a watermark advances for the first time"),
}


@pytest.mark.parametrize("case", only(OF_EACH_KIND, OPEN))
def test_no_open_transaction_stops_what_it_has_nothing_to_do_with(world: World, case: str) -> None:
    world.db.execute("INSERT INTO events VALUES (2, 'before')")
    world.db.execute("SELECT pgtrickle.refresh_stream_table('viewed')")
    open_one = world.open(OPEN[case])
    for _ in range(3):
        world.tick()
    open_one.rollback()
    world.assert_healed()
    assert world.db.execute("TABLE happened") == [(2, "before")]


IN_A_UNIT = ("events are altered", "a stream table is altered", "a stream table that needs another column is created")


@pytest.mark.parametrize("world", [1], indirect=True, ids=["one lane"])
@pytest.mark.parametrize("case", IN_A_UNIT)
def test_no_open_transaction_that_holds_an_atomic_unit_holds_anything_else(world: World, case: str) -> None:
    world.pt.create_refresh_group("pair", ["happened", "viewed"])
    world.db.execute("INSERT INTO events VALUES (2, 'before')")
    open_one = world.open(OPEN[case])
    results = world.tick()
    assert {results[name].action for name in ("happened", "viewed")} <= {"SKIP", "FAILED"}
    open_one.rollback()
    world.assert_healed()


@pytest.mark.parametrize("world", [1], indirect=True, ids=["one lane"])
def test_a_cycle_without_changes_that_somebody_alters_holds_nothing_else(world: World) -> None:
    world.pt.create_stream_table("reached", "SELECT id FROM events")
    world.pt.create_stream_table("further", "SELECT id FROM reached", allow_circular=True)
    both = "SELECT id FROM events UNION SELECT id FROM further"
    world.pt.alter_stream_table("reached", query=both, allow_circular=True)
    world.tick()
    world.pt.alter_stream_table("reached", schedule="1 second")
    world.db.execute("UPDATE pgtrickle.pgt_stream_tables SET last_refresh_at = last_refresh_at - interval '1 hour'")
    open_one = world.open(OPEN["a stream table is altered"].replace("happened", "reached"))
    assert world.tick()["reached"].action == "SKIP"
    open_one.rollback()
    world.assert_healed()


def test_a_refresh_by_hand_says_that_a_lock_keeps_it(world: World) -> None:
    world.db.execute("INSERT INTO events VALUES (2, 'before')")
    keeper = world.open("ALTER TABLE events ADD COLUMN later int")
    with pytest.raises(LockTimeout, match="lock") as refused:
        world.pt.refresh("happened")
    assert refused.value.retryable and "pg_stat_activity" in (refused.value.hint or "")
    keeper.rollback()
    world.assert_healed()
