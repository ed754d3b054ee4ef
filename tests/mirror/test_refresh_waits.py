"""A refresh asked for from SQL is waited for: whoever refreshes and then reads sees the rows."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.conftest import Database
from tests.mirror.conftest import Mirror
from tests.repeats import first
from tests.waiting import wait_for

REFRESH = "SELECT pgtrickle.refresh_stream_table('totals')"
HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"


@pytest.fixture
def totals(mirror: Mirror) -> Mirror:
    """A filled stream table whose own schedule brings no refresh within a test."""
    mirror.run("CREATE TABLE sales (id int PRIMARY KEY, amount int)", "INSERT INTO sales VALUES (1, 10)")
    mirror.filled("SELECT pgtrickle.create_stream_table('totals', 'SELECT sum(amount) AS s FROM sales', '1 day')")
    return mirror


def told(db: Database, *statements: str, **options: Any) -> list[str]:
    """Run statements in one session; return the notices."""
    notices: list[str] = []
    connection = db.connect(**options)
    connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
    for statement in statements:
        connection.execute(statement.encode())
    if not connection.autocommit:
        connection.commit()
    return notices


def test_the_rows_are_there_when_the_call_returns(totals: Mirror) -> None:
    with totals.refresher():
        for amount in (20, 30):
            totals.run(f"INSERT INTO sales VALUES ({amount}, {amount})")
            assert totals.value(REFRESH) is None, "nothing is left to be served"
            totals.assert_equal("totals", "SELECT sum(amount) FROM sales")
        assert totals.rows("SELECT * FROM pgtrickle.pgt_refresh_requests") == []
        history = "SELECT action, initiated_by FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 2"
        assert totals.rows(history) == [("DIFFERENTIAL", "REQUEST")] * 2
    totals.run("SELECT pgtrickle_private.forget_answers()")
    assert totals.rows("SELECT * FROM pgtrickle.pgt_refresh_answers") == []
    assert totals.value(HELD) == 0


def test_one_transaction_may_refresh_and_read_twice(totals: Mirror) -> None:
    with totals.refresher():
        asker = totals.db.connect(autocommit=False)
        for amount in (20, 30):
            totals.run(f"INSERT INTO sales VALUES ({amount}, {amount})")
            asker.execute(REFRESH)
            assert asker.execute("TABLE totals").fetchone() == (10 + sum({20, amount}),)
        asker.rollback()


def test_several_sessions_wait_for_one_stream_table(totals: Mirror) -> None:
    totals.run("INSERT INTO sales VALUES (2, 20)")

    def ask(number: int) -> object:
        with psycopg.connect(totals.db.dsn, autocommit=True) as connection:
            connection.execute(REFRESH)
            row = connection.execute("TABLE totals").fetchone()
            return row and row[0]

    with totals.refresher(), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(ask, range(4))) == [30] * 4


def test_a_gated_table_is_refreshed_when_it_is_asked_for(totals: Mirror) -> None:
    totals.run("SELECT pgtrickle.gate_source('sales')", "INSERT INTO sales VALUES (2, 20)")
    assert [result.action for result in totals.tick()] in ([], ["SKIP"])
    with totals.refresher():
        assert told(totals.db, REFRESH) == []
    assert totals.rows("TABLE totals") == [(30,)]


def test_a_request_that_was_filed_passes_a_gate_as_well(totals: Mirror) -> None:
    totals.run("SELECT pgtrickle.gate_source('sales')", "INSERT INTO sales VALUES (2, 20)")
    assert totals.value("SELECT pgtrickle.refresh_stream_table('totals', wait => false)") > 0
    assert [result.action for result in totals.tick()] == ["DIFFERENTIAL"]
    assert totals.rows("TABLE totals") == [(30,)]


def test_without_a_refresher_a_notice_says_so_and_the_request_is_kept(totals: Mirror) -> None:
    assert told(totals.db, REFRESH) == ["no refresher runs: the request is served when one does"]
    assert totals.value("SELECT count(*) FROM pgtrickle.pgt_refresh_requests") == 1


@pytest.mark.parametrize(
    ("before", "notice"),
    first(
        3,
        (
            ("SELECT pgtrickle.create_stream_table('totals2', 'SELECT id FROM sales')", "has created or changed"),
            ("SELECT pgtrickle.pause_stream_table('totals')", "has created or changed"),
            ("LOCK TABLE sales IN ACCESS EXCLUSIVE MODE", "holds a lock on public.sales"),
            ("LOCK TABLE totals IN SHARE MODE", "holds a lock on public.totals"),
            ("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", "at isolation level REPEATABLE READ"),
        ),
    ),
)
def test_what_holds_the_refresher_back_is_told_and_the_request_is_served_later(
    totals: Mirror, before: str, notice: str
) -> None:
    with totals.refresher():
        (sentence,) = told(totals.db, before, REFRESH, autocommit=False)
        assert notice in sentence and "is served after" in sentence
        wait_for(lambda: totals.value("SELECT count(*) FROM pgtrickle.pgt_refresh_requests") == 0, "it is served")


def test_rows_of_the_own_transaction_are_not_in_it_and_a_notice_names_their_table(totals: Mirror) -> None:
    with totals.refresher():
        notices = told(totals.db, "INSERT INTO sales VALUES (2, 20)", REFRESH, autocommit=False)
    assert notices == ["what this transaction wrote to public.sales is not in the refresh"]
    assert totals.rows("TABLE totals") == [(10,)]


def test_a_failure_is_an_error_and_a_skip_a_notice(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE a (x int)", "INSERT INTO a VALUES (0)")
    mirror.run("SELECT pgtrickle.create_stream_table('inverse', 'SELECT 1 / x AS y FROM a', '1 day')")
    mirror.run("SELECT pgtrickle.create_stream_table('above', 'SELECT y FROM inverse', '1 day')")
    with mirror.refresher():
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="the refresh of inverse failed"):
            mirror.run("SELECT pgtrickle.refresh_stream_table('inverse')")
        (notice,) = told(mirror.db, "SELECT pgtrickle.refresh_stream_table('above')")
    assert re.search(r"above was not refreshed: public\.inverse (failed|has not been loaded)", notice)


def test_the_wait_ends_in_time_and_leaves_nothing(totals: Mirror) -> None:
    totals.run("INSERT INTO sales VALUES (2, 20)")
    blocker = totals.db.connect(autocommit=False)
    with totals.refresher():
        blocker.execute("LOCK TABLE pgtrickle.pgt_refresh_history IN EXCLUSIVE MODE")
        with pytest.raises(psycopg.errors.QueryCanceled, match=r"was not refreshed within 300 ms"):
            totals.run("SELECT pgtrickle.refresh_stream_table('totals', timeout => '0.3 s')")
        assert totals.value(HELD) == 0
        totals.run("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match="statement timeout"):
            totals.run(REFRESH)
        totals.run("RESET statement_timeout", "SET pgtrickle.refresh_timeout = '200ms'")
        with pytest.raises(psycopg.errors.QueryCanceled, match=re.escape("within 200 ms")):
            totals.run(REFRESH)
        assert totals.value(HELD) == 0
        blocker.rollback()


def test_a_lock_that_somebody_else_takes_asks_for_nothing(totals: Mirror) -> None:
    """The key of a call is made of what only its transaction has: seen in pg_locks, it serves nobody else."""
    mallory = totals.db.connect(autocommit=False, user=totals.db.create_role("mallory"))
    key = "SELECT pgtrickle_private.request_key(%s, %s)"
    number = totals.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
    own = "SELECT virtualtransaction FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'virtualxid'"
    (transaction,) = mallory.execute(own).fetchone() or ("",)
    seen = [totals.db.value(key, asked, "1/1") for asked in (number, -2)]
    mallory.execute("SELECT pg_advisory_xact_lock(%s), pg_advisory_xact_lock(%s)", seen)
    waiting = "SELECT count(*) FROM pgtrickle_private.waiting_requests()"
    assert totals.value(waiting) == 0
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        mallory.execute(key.encode(), (number, transaction))
    mallory.rollback()
    (transaction,) = mallory.execute(own).fetchone() or ("",)
    for asked, found in ((number, 0), (-2, 1)):
        mallory.execute("SELECT pg_advisory_xact_lock(%s)", (totals.db.value(key, asked, transaction),))
        assert totals.value(waiting) == found, "so it is the secret that keeps others out"


def test_the_locks_of_applications_cost_a_tick_one_key_for_each_session(totals: Mirror) -> None:
    """Not one for each of their locks, nor for each stream table."""
    totals.run("CREATE TABLE other (id int)")
    for number in range(20):
        totals.run(f"SELECT pgtrickle.create_stream_table('other_{number}', 'SELECT id FROM other')")
    sessions = [totals.db.connect(autocommit=False) for _ in range(3)]
    for session in sessions:
        session.execute("SELECT pg_advisory_xact_lock_shared(g) FROM generate_series(1, 50) AS g")
    totals.run("SET track_functions = 'all'", "BEGIN", "SELECT pgtrickle_private.waiting_requests()")
    calls = "SELECT pg_stat_get_xact_function_calls('pgtrickle_private.request_key(bigint, text)'::regprocedure)"
    assert totals.value(calls) == len(sessions)
    totals.run("ROLLBACK")


def test_refresh_if_stale_refreshes_what_is_old(totals: Mirror) -> None:
    with totals.refresher():
        totals.run("INSERT INTO sales VALUES (2, 20)")
        assert not totals.value("SELECT pgtrickle.refresh_if_stale('totals')")
        assert totals.rows("TABLE totals") == [(10,)]
        assert totals.value("SELECT pgtrickle.refresh_if_stale('totals', '0 s')")
        assert totals.rows("TABLE totals") == [(30,)]
