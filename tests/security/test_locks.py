"""Locks, open transactions and floods of strangers, loaders, readers and operators keep nobody else waiting."""

from __future__ import annotations

import threading
from datetime import timedelta
from time import monotonic

import psycopg
import pytest

from pytrickle.schedule.daemon import Daemon
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.security.attempts import stopped
from tests.security.roles import House, ask
from tests.waiting import wait_for


def fill(home: House, number: int) -> None:
    home.etl.execute("INSERT INTO orders VALUES (%s, %s)", (number, number))


def test_locks_on_many_staging_tables_hold_the_trimming_no_longer_than_a_few_do(home: House) -> None:
    """Each may be waited for a moment; a stranger may have thousands."""
    mallory = home.session("mallory")
    holder = home.db.connect(user="mallory", autocommit=False)
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    staged = [
        ask(mallory, "SELECT pgtrickle.create_sink_staging('mallory.mine', %s, ARRAY['id'])", f"s{number}")[0][0]
        for number in range(60)
    ]
    for name in staged:
        holder.execute(f"SELECT * FROM pgtrickle_sinks.{name}".encode())
    mallory.execute("DROP TABLE mallory.mine")
    loader = home.session("loader", "INSERT ON orders")
    ask(loader, "SELECT pgtrickle.create_sink_staging('public.orders', 'gone', ARRAY['id'])")
    began = monotonic()
    home.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    assert 0.9 < monotonic() - began < 4, "ten locks are waited for, not sixty"
    left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'sink\\_%' AND relkind = 'r'"
    assert home.db.value(left) == 61
    holder.rollback()
    home.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    assert home.db.value(left) == 1, "what nobody holds is dropped, and what a sink uses is not"


KEEP_ONE = """
CREATE FUNCTION keep_one() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM pg_event_trigger_dropped_objects() AS d WHERE d.object_identity = '{}') THEN
        RAISE EXCEPTION 'out of shared memory' USING ERRCODE = '53200';
    END IF;
END $$;
CREATE EVENT TRIGGER keep_one ON sql_drop EXECUTE FUNCTION keep_one()
"""


def test_a_staging_table_that_cannot_be_dropped_keeps_no_other_and_no_history(home: House) -> None:
    """Such as one on which more depends than can be locked at once."""
    mallory = home.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    for name in ("held", "left_1", "left_2"):
        ask(mallory, "SELECT pgtrickle.create_sink_staging('mallory.mine', %s, ARRAY['id'])", name)
    mallory.execute("DROP TABLE mallory.mine")
    tables = "SELECT relname FROM pg_class WHERE relname LIKE 'sink\\_%' AND relkind = 'r' ORDER BY oid"
    ((held,), *others) = home.db.execute(tables)
    assert len(others) == 2
    home.db.execute(KEEP_ONE.format(f"pgtrickle_sinks.{held}"))
    ask(home.etl, "SELECT pgtrickle.trim_history('1 day')")
    assert home.db.execute(tables) == [(held,)]
    home.db.execute("DROP EVENT TRIGGER keep_one")
    ask(home.etl, "SELECT pgtrickle.trim_history('1 day')")
    assert home.db.execute(tables) == []


def test_a_right_to_speak_that_is_taken_back_in_an_open_transaction_does_not_hold_the_trimming(home: House) -> None:
    mallory = home.session("mallory")
    for name in ("mine", "yours"):
        mallory.execute(f"CREATE TABLE mallory.{name} (id integer)".encode())
        mallory.execute("SELECT pgtrickle.grant_loader(%s, 'mallory')", (f"mallory.{name}",))
    holder = home.db.connect(user="mallory", autocommit=False)
    holder.execute("SELECT pgtrickle.revoke_loader('mallory.mine', 'mallory')")
    mallory.execute("DROP TABLE mallory.mine, mallory.yours")
    home.etl.execute("SET lock_timeout = '5s'")
    home.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    assert home.db.value("SELECT count(*) FROM pgtrickle.pgt_loaders") == 1, "the held one is left for the next time"
    holder.rollback()
    home.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    assert home.db.value("SELECT count(*) FROM pgtrickle.pgt_loaders") == 0


def test_a_reader_who_never_ends_holds_neither_a_whole_nor_a_differential_refresh(home: House) -> None:
    reader = home.session("reader", "SELECT ON totals", autocommit=False)
    reader.execute("LOCK TABLE totals IN ACCESS SHARE MODE")
    reader.execute("DECLARE c CURSOR WITH HOLD FOR SELECT * FROM totals")
    with local_client(home.refresher) as (client, _):
        fill(home, 1)
        assert [str(result.action) for result in client.tick()] == ["FULL"]
        fill(home, 2)
        assert [str(result.action) for result in client.tick()] == ["DIFFERENTIAL"]
        home.etl.execute("SELECT pgtrickle.repair_capture('orders')")
        assert [str(result.action) for result in client.tick()] == ["REINITIALIZE"]
    assert stopped(reader, "SELECT * FROM totals FOR KEY SHARE") == "42501"
    assert ask(home.etl, "SELECT count(*) FROM totals") == [(2,)]


def test_a_loader_who_never_commits_holds_what_reads_his_own_table_only(home: House) -> None:
    """His lock keeps capture from being repaired; a tick gives way, and says so."""
    home.etl.execute("CREATE TABLE items (id integer PRIMARY KEY)")
    home.etl.execute("SELECT pgtrickle.create_stream_table('others', 'SELECT id FROM items')")
    loader = home.session("loader", "INSERT ON orders", autocommit=False)
    with local_client(home.refresher) as (client, _):
        client.tick()
        home.etl.execute("ALTER TABLE orders DISABLE TRIGGER USER")
        loader.execute("INSERT INTO orders VALUES (1, 1)")
        home.etl.execute("INSERT INTO items VALUES (1)")
        began = monotonic()
        results = {result.stream_table: str(result.action) for result in client.tick()}
        assert monotonic() - began < 20
        assert results["public.others"] == "DIFFERENTIAL"
        assert results.get("public.totals") != "REINITIALIZE"
        loader.commit()
        assert "REINITIALIZE" in {str(result.action) for result in client.tick()}
    assert ask(home.etl, "SELECT id FROM totals") == [(1,)]


@pytest.mark.parametrize("isolation", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_transaction_of_a_stranger_that_stays_open_holds_no_refresh_and_no_trimming(
    home: House, isolation: str
) -> None:
    mallory = home.session("mallory", autocommit=False)
    mallory.execute(f"SET TRANSACTION ISOLATION LEVEL {isolation}".encode())
    for statement in (
        "SELECT pg_export_snapshot()",
        "SELECT * FROM pgtrickle.pgt_status()",
        "SELECT * FROM pgtrickle.refresh_history()",
        "CREATE TABLE mallory.mine (id integer)",
        "SELECT pgtrickle.advance_watermark('mallory.mine', '2026-03-01')",
    ):
        mallory.execute(statement.encode())
    with local_client(home.refresher) as (client, _):
        for number, action in enumerate(("FULL", "DIFFERENTIAL", "DIFFERENTIAL")):
            fill(home, number)
            assert [str(result.action) for result in client.tick()] == [action]
    home.etl.execute("SET lock_timeout = '5s'")
    home.etl.execute("SELECT pgtrickle.trim_history('1 second')")
    assert ask(home.etl, "SELECT count(*) FROM totals") == [(3,)]
    assert home.db.value("SELECT count(*) FROM pg_stat_activity WHERE usename = 'mallory' AND state ~ '^idle in'") == 1


def test_a_prepared_advance_of_one_source_leaves_the_groups_and_ticks_of_others_alone(home: House) -> None:
    mallory = home.session("mallory", autocommit=False)
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    mallory.commit()
    mallory.execute("SET LOCAL pgtrickle.notify = off")
    mallory.execute("SELECT pgtrickle.advance_watermark('mallory.mine', '2026-03-01')")
    mallory.execute("SELECT pgtrickle.claim_sink_batch('mallory.mine', 's', 'q', 0)")
    mallory.execute("PREPARE TRANSACTION 'kept'")
    try:
        home.etl.execute("SET lock_timeout = '5s'")
        ask(home.etl, "SELECT pgtrickle.create_watermark_group('alone', ARRAY['orders'])")
        ask(home.etl, "SELECT pgtrickle.advance_watermark('orders', '2026-03-01')")
        fill(home, 1)
        with local_client(home.refresher) as (client, _):
            assert [str(result.action) for result in client.tick()] == ["FULL"]
        ask(home.etl, "SELECT pgtrickle.trim_history('1 day')")
    finally:
        home.db.execute("ROLLBACK PREPARED 'kept'")
    assert home.db.execute("SELECT source FROM pgtrickle.watermarks()") == [("public.orders",)]


PAYLOADS = (
    "",
    "{",
    '{"pgt_id": -1, "request_id": 9}',
    "null",
    "\x1b[2J'; DROP TABLE orders; --",
    "x" * 7999,
    '{"source": 1}',
    "NaN",
)


@pytest.mark.parametrize("channel", first(1, ("pgtrickle_refresh", "pgtrickle_watermark", "pgtrickle_alert")))
def test_a_false_notification_wakes_a_daemon_and_nothing_is_believed_of_it(home: House, channel: str) -> None:
    errors: list[object] = []
    with local_client(home.refresher) as (client, _):
        ticks: list[str] = []

        def tick() -> None:
            ticks.extend(str(result.action) for result in client.tick())
            ticks.append("done")

        daemon = Daemon(home.refresher, timedelta(seconds=0.3), tick, errors.append, lambda leads: None)
        thread = threading.Thread(target=daemon.run)
        mallory = home.session("mallory")
        thread.start()
        try:
            wait_for(lambda: ticks, "the daemon to lead")
            for payload in PAYLOADS:
                mallory.execute("SELECT pg_notify(%s, %s)", (channel, payload))
            seen = len(ticks)
            wait_for(lambda: len(ticks) > seen + 1, "ticks after the notifications", thread.is_alive)
            fill(home, 1)
            wait_for(lambda: "DIFFERENTIAL" in ticks or ticks.count("FULL") > 1, "a refresh", thread.is_alive)
        finally:
            daemon.stop.set()
            thread.join(timeout=30)
    assert errors == []
    assert ask(home.etl, "SELECT id FROM totals") == [(1,)]


def test_a_flood_of_requests_of_an_operator_makes_one_refresh(home: House) -> None:
    number = home.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
    with local_client(home.refresher) as (client, _):
        fill(home, 1)
        client.tick()
        operator = home.session("operator", "USAGE ON SCHEMA pgtrickle")
        home.db.execute("GRANT INSERT (pgt_id), SELECT (request_id) ON pgtrickle.pgt_refresh_requests TO operator")
        operator.execute(
            "INSERT INTO pgtrickle.pgt_refresh_requests (pgt_id) SELECT %s FROM generate_series(1, 5000)", (number,)
        )
        assert stopped(operator, "INSERT INTO pgtrickle.pgt_refresh_requests (pgt_id) VALUES (4711)") == "23503"
        fill(home, 2)
        assert [str(result.action) for result in client.tick()] == ["DIFFERENTIAL"]
        assert client.tick() == () or {str(result.action) for result in client.tick()} <= {"NO_DATA", "SKIP"}
    assert home.db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_requests") == 0


def test_a_view_that_never_ends_fails_its_own_stream_table_and_keeps_no_other(home: House) -> None:
    mallory = home.session("mallory")
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    mallory.execute("INSERT INTO mallory.mine VALUES (1)")
    mallory.execute("CREATE VIEW mallory.v AS SELECT id FROM mallory.mine")
    home.db.execute("GRANT mallory TO steward")
    ask(
        home.etl,
        "SELECT pgtrickle.create_stream_table('slow', 'SELECT id FROM mallory.v', statement_timeout => '1 second')",
    )
    mallory.execute("CREATE OR REPLACE VIEW mallory.v AS SELECT id FROM mallory.mine WHERE pg_sleep(3600) IS NOT NULL")
    with local_client(home.refresher) as (client, _):
        fill(home, 1)
        began = monotonic()
        actions = {result.stream_table: str(result.action) for result in client.tick()}
        assert monotonic() - began < 60
    assert actions == {"public.totals": "FULL", "public.slow": "FAILED"}


def test_a_stranger_ends_no_session_of_a_refresher_and_reads_no_statement_of_it(home: House) -> None:
    mallory = home.session("mallory")
    home.etl.execute("SELECT 'a statement of the steward'")
    number = home.etl.info.backend_pid
    for function in ("pg_terminate_backend", "pg_cancel_backend"):
        assert stopped(mallory, f"SELECT {function}(%s)", number) == "42501"
    ((query,),) = ask(mallory, "SELECT query FROM pg_stat_activity WHERE pid = %s", number)
    assert query == "<insufficient privilege>"
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mallory.execute("SELECT * FROM pg_stat_get_wal_receiver(), pg_ls_waldir()")
