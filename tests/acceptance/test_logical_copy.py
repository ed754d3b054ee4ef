"""A database that a subscription copies whole: it follows the refreshes of the other server, and then goes on alone."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from pytrickle.errors import RestoreUnderWay
from tests.conftest import TEMPLATE, Database, fresh
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.servers import NEWEST, OLDEST, Server, binaries
from tests.waiting import wait_for

QUERIES = {
    "totals": "SELECT customer, count(*) AS n, sum(amount) AS amount FROM orders GROUP BY customer",
    "best": "SELECT id, amount FROM orders ORDER BY amount DESC, id LIMIT 2",
    "sizes": "SELECT n, count(*) AS customers FROM totals GROUP BY n",
    "held": "SELECT id, amount FROM orders WHERE amount > 1",
}
SOURCE = """
CREATE TABLE marks (mark int PRIMARY KEY);
CREATE TABLE orders (id int PRIMARY KEY, customer int, amount int, at timestamptz DEFAULT '2026-01-01Z');
INSERT INTO orders SELECT id, id % 3, id FROM generate_series(1, 9) AS id;
SELECT pgtrickle.create_watermark_group('loads', ARRAY['orders']);
"""
JUDGED = "SELECT pgtrickle.set_event_time('orders', 'at', too_late => '1 hour')"
ADVANCE = "SELECT pgtrickle.advance_watermark('orders', %s::timestamptz)"
CHANGES = (
    "INSERT INTO orders VALUES (10, 1, 10, '2026-05-01Z'), (11, 4, 20, '2026-05-01Z')",
    "UPDATE orders SET amount = amount + 5 WHERE id < 4",
    "DELETE FROM orders WHERE id IN (2, 11)",
    "INSERT INTO orders VALUES (12, 4, 10, '2026-05-01Z'), (13, 1, 10, '2026-01-01Z')",
    "SELECT pgtrickle.discard_late_rows('orders', (SELECT array_agg(late_id) FROM pgtrickle.pgt_late_rows))",
    "TRUNCATE orders",
    "INSERT INTO orders SELECT id, id % 2, id, '2026-05-01Z' FROM generate_series(20, 29) AS id",
)
# Filled on another server alone, and made anew where the copy is adopted.
NEVER_COPIED = """
SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname IN ('pgtrickle_changes', 'pgtrickle_state') AND c.relkind = 'r'
"""
# Their rows are the same on both servers.
CATALOG = (
    "pgt_stream_tables",
    "pgt_dependencies",
    "pgt_versions",
    "pgt_watermark_history",
    "pgt_refresh_history",
    "pgt_late_rows",
)


@dataclass(frozen=True)
class Copy:
    """Two databases, the second of which a subscription fills with all that is in the first."""

    blue: Database
    green: Database

    def follow(self, green: Database) -> None:
        """Wait until all that was committed on blue is on green."""
        mark = self.blue.value("INSERT INTO marks SELECT count(*) FROM marks RETURNING mark")
        wait_for(lambda: green.execute("SELECT FROM marks WHERE mark = %s", mark), "the copy to follow", patience=20)

    def assert_same(self) -> None:
        self.follow(self.green)
        for name in ("orders", *QUERIES, *(f"pgtrickle.{table}" for table in CATALOG)):
            assert rows(self.green, name) == rows(self.blue, name), name


def rows(db: Database, name: str) -> list[tuple[Any, ...]]:
    return db.execute(f"SELECT t::text FROM {name} AS t ORDER BY 1")


@pytest.fixture(scope="module", params=first(1, (OLDEST, NEWEST)), ids="to-pg{}".format)
def other_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The server that is to go on, be it of a later version."""
    workers = {"max_sync_workers_per_subscription": "6", "max_logical_replication_workers": "8"}
    server = Server(request.param, wal_retrieve_retry_interval="100ms", **workers)
    yield server
    server.stop()


@pytest.fixture
def blue(servers: Callable[[int], Server]) -> Iterator[Database]:
    """A database with stream tables, one of which is held back, with a feed, and with old orders that came in time."""
    with fresh(servers(OLDEST), TEMPLATE) as blue:
        blue.execute(SOURCE)
        for name, query in QUERIES.items():
            gating = "hold_back" if name == "held" else "none"
            blue.execute("SELECT pgtrickle.create_stream_table(%s, %s, watermark_gating => %s)", name, query, gating)
        blue.execute("SELECT pgtrickle.create_refresh_group('pair', ARRAY['totals', 'best'])")
        for relation in ("orders", "totals"):
            blue.execute("SELECT pgtrickle.create_feed(%s, %s)", f"feed_of_{relation}", relation)
        blue.execute("SELECT pgtrickle.subscribe('totals', 'told')")
        blue.execute(ADVANCE, "2026-02-01Z")
        blue.execute(JUDGED)
        tick(blue)
        yield blue


@pytest.fixture
def begun(blue: Database, other_server: Server) -> Iterator[Copy]:
    """Such a database, and one to which a subscription has not brought anything yet."""
    programs = binaries(other_server.version)
    with fresh(other_server, "template0") as green:
        blue.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        dump = [str(programs / "pg_dump"), "--schema-only", "--no-publications", blue.dsn]
        schema = subprocess.run(dump, check=True, capture_output=True).stdout
        restore = [str(programs / "psql"), "-q", "-v", "ON_ERROR_STOP=1", green.dsn]
        subprocess.run(restore, check=True, capture_output=True, input=schema)
        green.execute(f"CREATE SUBSCRIPTION moves CONNECTION '{blue.dsn}' PUBLICATION everything WITH (enabled = off)")
        yield Copy(blue, green)
        green.execute("DROP SUBSCRIPTION IF EXISTS moves")


@pytest.fixture
def copy(begun: Copy) -> Copy:
    """Such a database and its copy, which has all that was there."""
    begun.green.execute("ALTER SUBSCRIPTION moves ENABLE")
    arrived = "SELECT bool_and(srsubstate = 'r') FROM pg_subscription_rel"
    wait_for(lambda: begun.green.value(arrived), "the rows of all tables", patience=30)
    return begun


def tick(db: Database) -> dict[str, str]:
    with local_client(db.dsn) as (client, _):
        results = client.tick()
    assert {result.error for result in results} <= {None}
    return {result.stream_table.removeprefix("public."): result.action for result in results}


def test_a_copy_without_rows_waits_for_them(begun: Copy) -> None:
    with pytest.raises(RestoreUnderWay, match="the subscription moves copies it from another server"):
        local_client(begun.green.dsn).__enter__()


def test_a_whole_copy_follows_every_refresh(copy: Copy) -> None:
    copy.assert_same()
    listener = copy.green.connect()
    listener.execute("LISTEN told; LISTEN pgtrickle_refresh")
    for day, change in enumerate(CHANGES, start=2):
        copy.blue.execute(change)
        copy.blue.execute(ADVANCE, f"2026-02-0{day}Z")
        tick(copy.blue)
        copy.assert_same()
    assert {copy.green.value(f"SELECT count(*) FROM {name}") for (name,) in copy.green.execute(NEVER_COPIED)} == {0}
    assert list(listener.notifies(timeout=0)) == []


def assert_left_alone(copy: Copy) -> None:
    with (
        pytest.raises(RestoreUnderWay, match="the subscription moves copies it from another server") as told,
        local_client(copy.green.dsn) as (client, _),
    ):
        client.tick()
    assert "DROP SUBSCRIPTION moves" in str(told.value.hint)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="the subscription moves"):
        copy.green.execute("SELECT pgtrickle.adopt_cluster()")
    with copy.green.connect() as loader:
        loader.execute("SET session_replication_role = replica")
        for name in ("totals", *(name for (name,) in copy.green.execute(NEVER_COPIED) if "state" in name)):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=r"only .* may change it"):
                loader.execute(f"INSERT INTO {name} SELECT (NULL::{name}).*")
    copy.assert_same()


def test_a_copy_that_nothing_brings_any_more_goes_on_alone(copy: Copy) -> None:
    blue, green = copy.blue, copy.green
    assert_left_alone(copy)
    blue.execute(CHANGES[0])
    tick(blue)
    copy.follow(green)
    green.execute("DROP SUBSCRIPTION moves")
    read = {name: green.value("SELECT max(version) FROM pgtrickle.versions(%s)", name) for name in ("orders", "totals")}
    before = green.value("SELECT max(refresh_id) FROM pgtrickle.pgt_refresh_history")
    assert tick(green) == {**dict.fromkeys(QUERIES, "REINITIALIZE"), "held": "SKIP"}
    assert_verified(green)
    for change in CHANGES[1:3]:
        green.execute(change)
        assert set(tick(green).values()) == {"DIFFERENTIAL", "SKIP"}
        assert_verified(green)
    green.execute("SELECT pgtrickle.create_stream_table('all_of_them', 'SELECT count(*) AS n FROM orders')")
    for name in read:
        green.execute("SELECT pgtrickle.create_feed('again_' || %s, %s)", name, name)
    green.execute(CHANGES[3])
    green.execute(ADVANCE, "2026-03-01Z")
    assert tick(green).items() >= {"held": "REINITIALIZE", "all_of_them": "FULL", "totals": "DIFFERENTIAL"}.items()
    assert rows(green, "held") == rows(green, f"({QUERIES['held']})")
    for name, version in read.items():
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match=f"has no version {version}"):
            green.execute("SELECT pgtrickle_private.check_version(%s::regclass, %s)", name, version)
        assert green.value("SELECT min(version) FROM pgtrickle.versions(%s)", name) > version
    assert green.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE refresh_id > %s", before) > 9
    for name in ("all_of_them", "sizes", "totals"):
        green.execute("SELECT pgtrickle.drop_stream_table(%s)", name)


def assert_verified(db: Database) -> None:
    with local_client(db.dsn) as (client, _):
        assert [name for name in QUERIES if name != "held" and not client.verify(name).matches] == []


def test_a_refresher_that_runs_stops_where_a_subscription_begins_to_bring_the_catalog(
    blue: Database, other_server: Server
) -> None:
    with fresh(other_server, "template0") as elsewhere, local_client(blue.dsn) as (client, _):
        elsewhere.execute("CREATE SCHEMA pgtrickle; CREATE TABLE pgtrickle.pgt_stream_tables (); CREATE PUBLICATION it")
        elsewhere.execute("ALTER PUBLICATION it ADD TABLE pgtrickle.pgt_stream_tables")
        client.tick()
        blue.execute(f"CREATE SUBSCRIPTION it CONNECTION '{elsewhere.dsn}' PUBLICATION it WITH (enabled = off)")
        try:
            with pytest.raises(RestoreUnderWay):
                client.tick()
        finally:
            blue.execute("DROP SUBSCRIPTION it")
        client.tick()


def test_what_earlier_versions_made_keeps_copies_out_too(blue: Database) -> None:
    out = "(tgname, tgenabled) = ('pgtrickle_copied', 'R')"
    kept = f"SELECT tgrelid::regclass::text FROM pg_trigger WHERE {out} ORDER BY 1"
    before = blue.execute(kept)
    assert before == sorted(blue.execute(NEVER_COPIED))
    for (name,) in before:
        blue.execute(f"DROP TRIGGER pgtrickle_copied ON {name}")
    blue.execute("SELECT pgtrickle.settle_grants()")
    assert blue.execute(kept) == before


def test_a_subscription_that_brings_a_stream_table_alone_is_refused(
    blue: Database, servers: Callable[[int], Server], other_server: Server
) -> None:
    with fresh(other_server, "template0") as elsewhere:
        elsewhere.execute("CREATE TABLE totals (customer int, n bigint, amount bigint); INSERT INTO totals VALUES (9)")
        elsewhere.execute("CREATE PUBLICATION totals FOR TABLE totals")
        shown = rows(blue, "totals")
        blue.execute(f"CREATE SUBSCRIPTION totals CONNECTION '{elsewhere.dsn}' PUBLICATION totals")
        try:
            failed = "SELECT sync_error_count > 0 FROM pg_stat_subscription_stats"
            wait_for(lambda: blue.value(failed), "the subscription to fail")
            blue.execute("INSERT INTO orders VALUES (12, 1, 10, '2026-05-01Z')")
            assert rows(blue, "totals") == shown
            assert tick(blue)["totals"] == "DIFFERENTIAL"
        finally:
            blue.execute("DROP SUBSCRIPTION totals")
