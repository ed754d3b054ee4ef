"""Waiting for a stream table's effective watermark."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import create, refused
from tests.sql.reports import at, load, refresh
from tests.waiting import wait_for

FRESH = "SELECT pgtrickle.assert_fresh('report', '10 minutes')"


def reach(db: Database, clock: str) -> None:
    """Store what a refresh that reaches an event time stores about it."""
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET effective_watermark = %s", at(clock))


def wait(db: Database, clock: str, timeout: str = "0", name: str = "report") -> str:
    query = "SELECT to_char(pgtrickle.wait_for(%s, %s, %s) AT TIME ZONE 'UTC', 'HH24:MI')"
    return str(db.value(query, name, at(clock), timeout))


@contextmanager
def waiting(db: Database, clock: str, timeout: str = "1 hour", **options: Any) -> Iterator[Future[Any]]:
    """Let another session wait, and enter the block when it does; a session left waiting at the end is cancelled."""
    session = db.connect(**options)
    query = "SELECT pgtrickle.wait_for('report', %s, %s)"
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(lambda: session.execute(query, (at(clock), timeout)).fetchall())
        asleep = "SELECT count(*) FROM pg_stat_activity WHERE pid = %s AND wait_event = 'PgSleep'"
        wait_for(lambda: db.value(asleep, session.info.backend_pid), "a session that waits", lambda: not answer.done())
        try:
            yield answer
        finally:
            db.execute("SELECT pg_cancel_backend(%s)", session.info.backend_pid)


def test_what_is_reached_already_is_returned_at_once(gated: Database) -> None:
    load(gated, "12:00")
    refresh(gated)
    assert wait(gated, "11:00") == wait(gated, "12:00") == "12:00"


def test_a_commit_of_another_session_ends_the_wait(gated: Database) -> None:
    with waiting(gated, "12:00") as answer:
        reach(gated, "11:59")
        other = gated.connect(autocommit=False)
        other.execute("UPDATE pgtrickle.pgt_stream_tables SET effective_watermark = %s", (at("12:05"),))
        with refused("57014", message="is not complete through 2026-03-01 12:00:00+00"):
            wait(gated, "12:00")
        assert not answer.done(), "an event time that is too early, or not committed, ended the wait"
        other.commit()
        ((reached,),) = answer.result(timeout=60)
    assert reached.isoformat().startswith("2026-03-01T12:05")


def test_loaders_and_a_refresher_end_the_wait(gated: Database) -> None:
    with waiting(gated, "12:00") as answer:
        load(gated, "12:00")
        refresh(gated)
        assert len(answer.result(timeout=60)) == 1


def test_the_wait_also_sees_commits_within_an_open_transaction(gated: Database) -> None:
    with waiting(gated, "12:00", autocommit=False) as answer:
        reach(gated, "12:00")
        assert len(answer.result(timeout=60)) == 1


def test_an_exhausted_stream_table_can_be_waited_for(gated: Database) -> None:
    load(gated, "infinity")
    refresh(gated)
    assert gated.value("SELECT pgtrickle.wait_for('report', 'infinity', '0') = 'infinity'")
    assert gated.value("SELECT pgtrickle.wait_for('report', '-infinity', '0') = 'infinity'")


def test_a_timeout_names_what_is_waited_for(gated: Database) -> None:
    load(gated, "12:00")
    refresh(gated)
    load(gated, "12:05", "orders")
    with refused("57014", "pytrickle run", "wait_timeout", "public.order_lines is 5 min behind public.orders"):
        wait(gated, "12:05", "20 milliseconds")
    load(gated, "12:05", "order_lines")
    with refused("57014", "pytrickle run", "wait_timeout", "nothing stands in its way"):
        wait(gated, "12:05")
    with refused("57014", "pytrickle run", "wait_timeout", "pipeline: aligned at 2026-03-01 12:05:00+00"):
        wait(gated, "12:10")


def test_a_timeout_tells_where_the_stream_table_stands(gated: Database) -> None:
    with pytest.raises(psycopg.errors.QueryCanceled) as never:
        wait(gated, "12:00")
    assert never.value.diag.message_detail == "It has no effective watermark yet."
    load(gated, "11:00")
    refresh(gated)
    with pytest.raises(psycopg.errors.QueryCanceled) as early:
        gated.execute("SET TimeZone = 'Asia/Tokyo'")
        wait(gated, "12:00")
    assert early.value.diag.message_detail == "It is complete through 2026-03-01 11:00:00+00."
    assert "is not complete through 2026-03-01 12:00:00+00 after 0 s" in str(early.value)


def test_a_timeout_tells_that_refreshes_fail_or_are_skipped(gated: Database) -> None:
    load(gated, "12:00")
    gated.execute("UPDATE pgtrickle.pgt_stream_tables SET last_skip_reason = 'order_summary was not refreshed'")
    with refused("57014", message="its last refresh was skipped: order_summary was not refreshed"):
        wait(gated, "12:00")
    gated.execute("UPDATE pgtrickle.pgt_stream_tables SET last_error = 'of 77', last_sqlstate = 'SQLSTATE 22012'")
    with refused("57014", message="its last refresh failed: SQLSTATE 22012; who may read all its sources"):
        wait(gated, "12:00")


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("paused = true", "it is paused"),
        ("tier = 'frozen'", "its tier is frozen"),
        (
            "status = 'SUSPENDED', consecutive_failures = 10, last_error = 'x', last_sqlstate = 'SQLSTATE 22012'",
            "it is suspended after 10 failed refreshes: SQLSTATE 22012; who may read all its sources sees the message",
        ),
    ],
)
def test_a_timeout_tells_that_no_tick_will_take_the_table(gated: Database, state: str, said: str) -> None:
    gated.execute(f"UPDATE pgtrickle.pgt_stream_tables SET {state}")
    with refused("57014", message=said):
        wait(gated, "12:00")


def test_a_snapshot_that_does_not_move_is_refused_at_once(gated: Database) -> None:
    load(gated, "12:00")
    refresh(gated)
    for level in (psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE):
        session = gated.connect(autocommit=False)
        session.isolation_level = level
        with refused("25001", "READ COMMITTED", "invalid_argument"):
            session.execute("SELECT pgtrickle.wait_for('report', %s, '5 seconds')", (at("12:00"),))


def test_a_loader_that_waits_for_its_own_advance_is_told_to_commit(gated: Database) -> None:
    loader = gated.connect(autocommit=False)
    with loader.transaction():
        loader.execute("SAVEPOINT loaded")
        loader.execute("SELECT pgtrickle.advance_watermark('orders', %s)", (at("12:00"),))
    loader.execute("SELECT pgtrickle.advance_watermark('order_lines', %s)", (at("12:00"),))
    with refused("25001", "Commit first", "invalid_argument", "this transaction has advanced a watermark"):
        loader.execute("SELECT pgtrickle.wait_for('report', %s, '5 seconds')", (at("12:00"),))


def test_what_no_watermark_moves_is_refused_at_once_unless_it_is_there(gated: Database) -> None:
    create(gated, "SELECT id FROM orders", "alone")
    with refused("55000", "watermark group", "invalid_argument", "public.alone heeds no watermark group"):
        wait(gated, "12:00", "5 seconds", "alone")
    reach(gated, "12:00")
    assert wait(gated, "12:00", "0", "alone") == "12:00"


@pytest.mark.parametrize(
    ("call", "sqlstate", "constraint"),
    [
        ("wait_for(NULL, now())", "42704", "unknown_stream_table"),
        ("wait_for('orders', now())", "42704", "unknown_stream_table"),
        ("wait_for('nowhere', now())", "42704", "unknown_stream_table"),
        ("wait_for('report', NULL)", "22004", "invalid_argument"),
        ("wait_for('report', now(), NULL)", "22004", "invalid_argument"),
        ("wait_for('report', now(), '-1 second')", "22023", "invalid_argument"),
        ("assert_fresh(NULL, '1 hour')", "42704", "unknown_stream_table"),
        ("assert_fresh('orders', '1 hour')", "42704", "unknown_stream_table"),
        ("assert_fresh('report', NULL)", "22004", "invalid_argument"),
        ("assert_fresh('report', '-1 second')", "22023", "invalid_argument"),
    ],
)
def test_bad_arguments_are_typed_errors(gated: Database, call: str, sqlstate: str, constraint: str) -> None:
    with refused(sqlstate, constraint=constraint):
        gated.execute(f"SELECT pgtrickle.{call}")


def test_a_timeout_may_be_longer_than_the_calendar(gated: Database) -> None:
    with waiting(gated, "12:00", "2000000 years") as answer:
        reach(gated, "12:00")
        assert len(answer.result(timeout=60)) == 1


def test_a_waiting_session_holds_no_lock_that_hinders_anybody(gated: Database) -> None:
    with waiting(gated, "12:00", autocommit=False) as answer:
        held = gated.execute(
            "SELECT DISTINCT mode, relation = 'report'::regclass"
            " FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid)"
            " WHERE a.wait_event = 'PgSleep' AND l.locktype <> 'virtualxid'"
        )
        assert held == [("AccessShareLock", False)]
        gated.execute("SELECT pgtrickle.drop_stream_table('report')")
        with pytest.raises(psycopg.errors.UndefinedObject, match="was dropped while it was waited for"):
            answer.result(timeout=60)


def reader(db: Database) -> psycopg.Connection[Any]:
    db.create_role("analyst")
    session = db.connect()
    session.execute("SET SESSION AUTHORIZATION analyst")
    return session


@pytest.mark.parametrize("call", ["wait_for('report', '-infinity')", "assert_fresh('report', '1 hour')"])
def test_who_may_read_the_stream_table_may_ask_about_it(gated: Database, call: str) -> None:
    load(gated, "12:00")
    refresh(gated)
    session = reader(gated)
    with refused("42501", "GRANT SELECT ON public.report TO analyst.", "insufficient_privilege"):
        session.execute(f"SELECT pgtrickle.{call}")
    gated.execute("GRANT SELECT ON report TO analyst")
    assert len(session.execute(f"SELECT pgtrickle.{call}").fetchall()) == 1


def test_the_role_that_is_set_counts(gated: Database) -> None:
    load(gated, "12:00")
    refresh(gated)
    gated.create_role("analyst")
    session = gated.connect()
    session.execute("SET ROLE analyst")
    with refused("42501"):
        session.execute(FRESH)


def test_both_work_in_a_transaction_that_may_not_write(gated: Database) -> None:
    load(gated, "12:00")
    refresh(gated)
    session = gated.connect(autocommit=False)
    session.read_only = True
    session.execute("SELECT pgtrickle.wait_for('report', %s, '0')", (at("12:00"),))
    session.execute(FRESH)
