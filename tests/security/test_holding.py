"""No stranger can hold the refresher, an install, or another loader."""

import threading
from collections import Counter
from datetime import timedelta
from functools import partial

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pytrickle.apply.staging_table import STAGING_LOCK, _take
from pytrickle.schedule.daemon import Daemon
from tests.equivalence.local_engine import local_client
from tests.security.roles import House, ask
from tests.sql.checks import refused
from tests.waiting import wait_for

# The keys that earlier versions took, which anybody can take as well.
LEADER, TABLE = 0x70677464, 0x70677472


def test_advisory_locks_of_a_stranger_hold_neither_a_tick_nor_a_leader(house: House) -> None:
    house.etl.execute("SELECT pgtrickle.create_stream_table('totals', 'SELECT id, amount FROM orders')")
    number = house.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
    mallory = house.session("mallory")
    for key, second in ((LEADER, 0), (TABLE, number), (STAGING_LOCK, number)):
        mallory.execute("SELECT pg_advisory_lock(%s, %s)", (key, second))
    house.etl.execute("SET lock_timeout = '5s'")
    assert _take(house.etl, number)
    with local_client(make_conninfo(house.db.dsn, user="etl", options="-c lock_timeout=5s")) as (client, _):
        assert {result.action for result in client.tick()} == {"FULL"}
    daemon = Daemon(
        make_conninfo(house.db.dsn, user="etl"), timedelta(seconds=1), lambda: daemon.stop.set(), print, print
    )
    daemon.run()


def test_a_second_refresher_of_the_owner_still_waits_its_turn_for_a_staging_table(house: House) -> None:
    assert _take(house.etl, 1)
    assert not _take(house.db.connect(user="etl"), 1)


def test_a_daemon_leads_while_it_lives_and_strangers_cannot_lock_its_seat(house: House) -> None:
    roles: dict[int, list[bool]] = {0: [], 1: []}
    dsn, ticks = make_conninfo(house.db.dsn, user="etl"), Counter[str]()
    tick = partial(ticks.update, ["tick"])
    daemons = [Daemon(dsn, timedelta(seconds=0.05), tick, lambda error: None, roles[i].append) for i in roles]
    threads = [threading.Thread(target=daemon.run) for daemon in daemons]
    mallory = house.session("mallory", autocommit=False)
    try:
        threads[0].start()
        wait_for(lambda: roles[0] == [True], "the first daemon to lead")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            mallory.execute("LOCK TABLE pgtrickle.pgt_leader IN ACCESS SHARE MODE")
        threads[1].start()
        wait_for(lambda: roles[1] == [False], "the second daemon to stand by")
        wait_for(lambda: ticks["tick"] > 12, "the leader to ask for its seat so often that it could be prepared")
        idle = "SELECT backend_xmin IS NULL AND backend_xid IS NULL FROM pg_stat_activity WHERE application_name = %s"
        assert house.db.execute(idle, "pytrickle/leader")[0] == (True,), "the seat holds no row of the database back"
        keeper = house.db.connect()
        keeper.execute("SET lock_timeout = '10s'")
        rebuild = f'REINDEX (CONCURRENTLY) DATABASE "{keeper.info.dbname}"'
        for work in ("VACUUM (ANALYZE)", "VACUUM FULL", rebuild.replace("(CONCURRENTLY) ", ""), rebuild):
            keeper.execute(work)
        assert roles[0] == [True], "who keeps the whole database in order waits for no leader, nor ends its lead"
        daemons[0].stop.set()
        wait_for(lambda: roles[1] == [False, True], "the second daemon to take over")
    finally:
        for daemon, thread in zip(daemons, threads, strict=True):
            daemon.stop.set()
            thread.join(timeout=30)


def test_a_leader_whose_seat_was_taken_away_does_not_go_on_leading(house: House) -> None:
    roles: list[bool] = []
    errors: list[object] = []
    daemon = Daemon(
        make_conninfo(house.db.dsn, user="etl"), timedelta(seconds=0.1), lambda: None, errors.append, roles.append
    )
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        wait_for(lambda: roles == [True], "the daemon to lead")
        house.db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pytrickle/leader'"
        )
        wait_for(lambda: roles == [True, True], "the daemon to lead again")
        assert len(errors) == 1
    finally:
        daemon.stop.set()
        thread.join(timeout=30)


def test_a_flood_of_notifications_makes_few_ticks(house: House) -> None:
    ticks: list[float] = []
    daemon = Daemon(
        make_conninfo(house.db.dsn, user="etl"), timedelta(seconds=60), lambda: ticks.append(1), print, print
    )
    thread = threading.Thread(target=daemon.run)
    mallory = house.session("mallory")
    thread.start()
    try:
        wait_for(lambda: ticks, "the daemon to lead")
        first = len(ticks)
        for number in range(2000):
            mallory.execute("SELECT pg_notify('pgtrickle_watermark', %s)", (str(number),))
        wait_for(lambda: len(ticks) > first, "the flood to be noticed")
        took = mallory.execute("SELECT extract(epoch FROM clock_timestamp() - backend_start)::float8 FROM "
                               "pg_stat_activity WHERE pid = pg_backend_pid()").fetchone()  # fmt: skip
        assert took is not None
        assert len(ticks) - first <= took[0] * 4 + 2
    finally:
        daemon.stop.set()
        thread.join(timeout=30)


def test_a_gate_left_open_in_a_transaction_does_not_hold_the_trimming(house: House) -> None:
    mallory = house.session("mallory")
    for name in ("mine", "yours"):
        mallory.execute(f"CREATE TABLE mallory.{name} (id integer, at timestamptz)".encode())
        mallory.execute("SELECT pgtrickle.gate_source(%s)", (f"mallory.{name}",))
        mallory.execute("SELECT pgtrickle.claim_sink_batch(%s, 'files', 'q', 0)", (f"mallory.{name}",))
        mallory.execute("SELECT pgtrickle.advance_watermark(%s, '2026-03-01')", (f"mallory.{name}",))
    holder = house.db.connect(user="mallory", autocommit=False)
    holder.execute("SELECT pgtrickle.gate_source('mallory.mine', 'for ever')")
    holder.execute("SELECT pgtrickle.claim_sink_batch('mallory.mine', 'files', 'q', 1)")
    holder.execute("SELECT pgtrickle.advance_watermark('mallory.mine', '2026-03-02')")
    mallory.execute("DROP TABLE mallory.mine, mallory.yours")
    house.etl.execute("SET statement_timeout = '20s'")
    house.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    counts = "SELECT (SELECT count(*) FROM pgtrickle.{}), (SELECT count(*) FROM pgtrickle.{})"
    gates_and_sinks = counts.format("pgt_source_gates", "pgt_sink_batches")
    assert house.db.execute(gates_and_sinks) == [(1, 1)], "what is held is left for the next time"
    holder.rollback()
    house.etl.execute("SELECT pgtrickle.trim_history('1 day')")
    assert house.db.execute(gates_and_sinks) == [(0, 0)]
    assert house.db.execute(counts.format("pgt_watermarks", "pgt_watermark_history")) == [(0, 0)]


def test_a_first_advance_left_open_holds_no_group_of_other_tables_and_no_other_loader(house: House) -> None:
    mallory = house.session("mallory", autocommit=False)
    mallory.execute("CREATE TABLE mallory.mine (id integer)")
    mallory.commit()
    mallory.execute("SELECT pgtrickle.advance_watermark('mallory.mine', '2026-03-01')")
    loader = house.session("loader", "INSERT ON orders")
    for session in (house.etl, loader):
        session.execute("SET statement_timeout = '20s'")
    ask(house.etl, "SELECT pgtrickle.create_watermark_group('alone', ARRAY['orders'])")
    ask(loader, "SELECT pgtrickle.advance_watermark('orders', '2026-03-01')")
    # It waits for ten seconds, of which one will do.
    hold = "SELECT pg_get_functiondef('pgtrickle_private.hold_first_watermarks'::regproc)"
    house.db.execute(house.db.value(hold).replace("interval '10 seconds'", "interval '1 second'"))
    with refused("55P03", "end its session", "first_watermark"):
        ask(house.db.connect(), "SELECT pgtrickle.create_watermark_group('theirs', ARRAY['mallory.mine'])")


def test_a_prepared_transaction_of_a_stranger_holds_no_tick(house: House) -> None:
    house.etl.execute("SELECT pgtrickle.create_stream_table('totals', 'SELECT id, amount FROM orders')")
    mallory = house.session("mallory", "INSERT ON orders", autocommit=False)
    mallory.execute("SELECT pg_advisory_xact_lock(%s, 1), pg_advisory_xact_lock(%s, 0)", (TABLE, LEADER))
    mallory.execute("SELECT pgtrickle.gate_source('public.orders')")
    mallory.execute("INSERT INTO orders VALUES (1, 1)")
    mallory.execute("PREPARE TRANSACTION 'for ever'")
    mallory.close()
    try:
        with local_client(make_conninfo(house.db.dsn, user="etl", options="-c lock_timeout=5s")) as (client, _):
            assert {result.action for result in client.tick()} == {"FULL"}
    finally:
        house.db.execute("ROLLBACK PREPARED 'for ever'")
