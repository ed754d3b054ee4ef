"""What logical replication brings comes as a role as well: it is captured, judged and refused like any other write."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.security.attempts import catalog
from tests.security.roles import House, Session
from tests.waiting import wait_for

PUBLISHED = """
CREATE SCHEMA pgtrickle;
CREATE TABLE pgtrickle.pgt_calls (call_id bigint, caller name, call text, source oid);
CREATE TABLE orders (id integer PRIMARY KEY, amount integer, at timestamptz);
CREATE TABLE totals (id integer, amount integer);
CREATE PUBLICATION all_of_it FOR ALL TABLES;
"""
ERRORS = "SELECT apply_error_count FROM pg_stat_subscription_stats WHERE subname = 'brought'"


@contextmanager
def subscribed(home: House, owner: str) -> Iterator[Session]:
    """Subscribe as a role to a database beside, and yield a session in that."""
    home.db.execute("CREATE DATABASE publisher")
    publisher = make_conninfo(home.db.dsn, dbname="publisher")
    with psycopg.connect(publisher, autocommit=True) as beside:
        beside.execute(PUBLISHED.encode())
        beside.execute("SELECT pg_create_logical_replication_slot('brought', 'pgoutput')")
        home.db.execute(
            f"CREATE SUBSCRIPTION brought CONNECTION '{publisher}' PUBLICATION all_of_it WITH (connect = false)"
        )
        if home.db.version > 15:
            home.db.execute("ALTER SUBSCRIPTION brought SET (run_as_owner = true, password_required = false)")
            home.db.execute(f"GRANT pg_create_subscription TO {owner}")
        else:
            home.db.execute(f"ALTER ROLE {owner} SUPERUSER")
        home.db.execute(
            f"DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO {owner}', current_database()); END $$"
        )
        home.db.execute(f"ALTER SUBSCRIPTION brought OWNER TO {owner}")
        home.db.execute(f"ALTER ROLE {owner} NOSUPERUSER")
        home.db.execute("ALTER SUBSCRIPTION brought ENABLE")
        home.db.execute("ALTER SUBSCRIPTION brought REFRESH PUBLICATION WITH (copy_data = false)")
        try:
            yield beside
        finally:
            home.db.execute("ALTER SUBSCRIPTION brought DISABLE")
            home.db.execute("ALTER SUBSCRIPTION brought SET (slot_name = NONE)")
            home.db.execute("DROP SUBSCRIPTION brought")
    # Who sends ends a moment after the subscription.
    active = "SELECT count(*) FROM pg_replication_slots WHERE active"
    wait_for(lambda: home.db.value(active) == 0, "the publisher to leave the slot")
    home.db.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active")
    home.db.execute("DROP DATABASE publisher WITH (FORCE)")


def test_rows_that_a_subscription_brings_are_captured(home: House) -> None:
    home.session("courier", "INSERT ON orders")
    with subscribed(home, "courier") as beside, local_client(home.refresher) as (client, _):
        assert [str(result.action) for result in client.tick()] == ["FULL"]
        beside.execute("INSERT INTO orders VALUES (1, 5)")
        wait_for(lambda: home.db.value("SELECT count(*) FROM orders") == 1, "the row to arrive")
        assert [str(result.action) for result in client.tick()] == ["DIFFERENTIAL"]
    assert home.db.execute("SELECT id, amount FROM totals") == [(1, 5)]


@pytest.mark.parametrize(
    "row",
    first(
        1,
        (
            "INSERT INTO pgtrickle.pgt_calls VALUES (1, 'steward', 'gate_source', %s)",
            "INSERT INTO totals SELECT 1, 7 WHERE %s > 0",
        ),
    ),
    ids=["a call in another's name", "a row of a stream table"],
)
def test_a_subscription_of_a_stranger_writes_nothing_that_he_may_not_write(home: House, row: str) -> None:
    mallory = home.session("mallory")
    home.db.execute("GRANT ALL ON totals TO mallory")
    source = home.db.value("SELECT 'orders'::regclass::oid")
    with subscribed(home, "mallory") as beside:
        before = catalog(home.db)
        beside.execute(row.encode(), (source,))
        wait_for(lambda: home.db.value(ERRORS) > 0, "the subscription to fail")
        assert catalog(home.db) == before
    assert home.db.execute("SELECT * FROM pgtrickle.source_gates()") == home.db.execute("SELECT * FROM totals") == []
    assert not mallory.closed


def test_rows_of_a_subscription_that_came_and_went_between_two_ticks_are_captured(home: House) -> None:
    home.session("courier", "SELECT, INSERT, UPDATE ON orders")
    with local_client(home.refresher) as (client, _):
        client.tick()
        with subscribed(home, "courier") as beside:
            beside.execute("INSERT INTO orders VALUES (1, 5), (2, 6)")
            beside.execute("UPDATE orders SET amount = 7 WHERE id = 2")
            wait_for(lambda: home.db.value("SELECT sum(amount) FROM orders") == 12, "the rows to arrive")
        assert [str(result.action) for result in client.tick()] == ["DIFFERENTIAL"]
    assert sorted(home.db.execute("SELECT id, amount FROM totals")) == [(1, 5), (2, 7)]
