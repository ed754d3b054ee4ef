"""Two refreshers at once: the one that comes second skips, and neither forgets what the other wrote down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

import pytrickle
from pytrickle.catalog.server_probe import ServerProbe
from pytrickle.errors import ConnectionLost
from pytrickle.plan.analysis import analyse
from pytrickle.refresh import planner
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

KEPT = (
    "SELECT pgt_name, status, consecutive_failures, last_error, retry_at FROM pgtrickle.pgt_stream_tables"
    " WHERE pgt_name <> 'apart' ORDER BY pgt_id"
)
COUNT = "SELECT consecutive_failures FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'shares'"
REASON = "SELECT reinitialize_reason FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'shares'"
NO_RULE: dict[str, Any] = {"grouped": None, "full_reason": "it is not sure"}
ANEW = "SELECT pgtrickle_private.mark_reinitialize(pgt_id, 'asked for') FROM pgtrickle.pgt_stream_tables"
ELAPSED = "UPDATE pgtrickle.pgt_stream_tables SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL"


@pytest.fixture
def pt(db: Database) -> Iterator[pytrickle.Client]:
    """A refresher that does one thing after the other, `apart` first, over orders and customers."""
    db.execute("CREATE TABLE customers (id int PRIMARY KEY)")
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, amount int NOT NULL)")
    db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        client.create_stream_table("apart", "SELECT id FROM customers")
        yield client


def tick(pt: pytrickle.Client, meanwhile: Callable[[], Any]) -> dict[str, pytrickle.RefreshResult]:
    """Tick, and after `apart` was refreshed let something else happen that the tick's snapshot does not show."""
    pt._call("INSERT INTO customers SELECT count(*) FROM customers RETURNING id")
    happened = []

    def between(result: pytrickle.RefreshResult) -> None:
        if result.stream_table == "public.apart":
            happened.append(meanwhile())

    results = pt.tick(between)
    assert happened, "apart must come first"
    return {result.stream_table.partition(".")[2]: result for result in results}


@pytest.fixture
def unit(pt: pytrickle.Client) -> pytrickle.Client:
    """A filled diamond: `merged` reads `sums` and `counts`, which read orders."""
    pt.create_stream_table("sums", "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer")
    pt.create_stream_table("counts", "SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    pt.create_stream_table("merged", "SELECT s.customer, s.amount, c.n FROM sums s JOIN counts c USING (customer)")
    pt.tick()
    return pt


def test_the_second_refresher_of_an_atomic_unit_skips_it(db: Database, unit: pytrickle.Client) -> None:
    before = db.execute(KEPT)
    assert {row[1:] for row in before} == {("ACTIVE", 0, None, None)}
    with local_client(db.dsn, max_concurrent_refreshes=1) as (other, _):
        for number in range(10, 14):
            db.execute(f"INSERT INTO orders VALUES ({number}, 1, 5)")
            results = tick(unit, other.tick)
            assert [results[name].action for name in ("sums", "counts", "merged")] == ["SKIP"] * 3
            assert not any(result.error for result in results.values())
            assert "nother" in results["merged"].reason
            assert db.execute(KEPT) == before
    assert {result.action for result in unit.tick()} <= {"NO_DATA", "DIFFERENTIAL"}
    assert db.execute("SELECT * FROM merged ORDER BY 1") == [(1, 30, 5), (2, 20, 1)]


@pytest.fixture
def failing(db: Database, pt: pytrickle.Client) -> pytrickle.Client:
    """A stream table `shares` that failed three times since an amount is zero."""
    pt.create_stream_table("shares", "SELECT id, 100 / amount AS share FROM orders")
    pt.tick()
    db.execute("INSERT INTO orders VALUES (3, 1, 0)")
    for failures in range(1, 4):
        pt.tick()
        db.execute(ELAPSED)
        assert db.value(COUNT) == failures
    return pt


def test_a_failure_is_counted_from_what_the_row_says_then(db: Database, failing: pytrickle.Client) -> None:
    results = tick(failing, lambda: db.execute("SELECT pgtrickle.resume_stream_table('shares')"))
    assert results["shares"].action == "FAILED"
    assert db.value(COUNT) == 1


def test_a_failure_behind_the_success_of_another_refresher_is_not_counted(
    db: Database, failing: pytrickle.Client
) -> None:
    def mend() -> None:
        db.execute("DELETE FROM orders WHERE amount = 0")
        with local_client(db.dsn) as (other, _):
            other.refresh("shares")

    assert tick(failing, mend)["shares"].action == "FAILED"
    assert db.execute(KEPT) == [("shares", "ACTIVE", 0, None, None)]


def test_a_failure_keeps_the_reason_to_reinitialize_that_came_meanwhile(
    db: Database, failing: pytrickle.Client
) -> None:
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET reinitialize_reason = NULL")
    assert tick(failing, lambda: db.execute(ANEW))["shares"].action == "FAILED"
    assert db.value(REASON) == "asked for"


def test_a_refresh_keeps_the_reason_to_reinitialize_that_came_meanwhile(db: Database, pt: pytrickle.Client) -> None:
    pt.create_stream_table("shares", "SELECT id, 100 / amount AS share FROM orders")
    pt.tick()
    db.execute("INSERT INTO orders VALUES (3, 1, 5)")
    assert tick(pt, lambda: db.execute(ANEW))["shares"].action == "DIFFERENTIAL"
    assert db.value(REASON) == "asked for"
    assert {result.stream_table: result.action for result in pt.tick()}["public.shares"] == "REINITIALIZE"
    assert db.value(REASON) is None


def test_a_skip_behind_the_refresh_of_another_refresher_leaves_no_reason(db: Database, pt: pytrickle.Client) -> None:
    pt.create_stream_table("shares", "SELECT id, 100 / amount AS share FROM orders", fuse_ceiling=1)
    pt.tick()
    db.execute("INSERT INTO orders VALUES (3, 1, 5), (4, 1, 5)")

    def decide() -> None:
        with local_client(db.dsn) as (other, _):
            other.tick()
            other.reset_fuse("shares")
            other.tick()

    assert tick(pt, decide)["shares"].action == "SKIP"
    kept = "SELECT last_skip_reason, fuse_blown_at FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'shares'"
    assert db.execute(kept) == [(None, None)]


SUMS = "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer"


def test_deltas_do_not_build_on_state_that_another_refresher_let_grow_old(
    db: Database, pt: pytrickle.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pt.create_stream_table("sums", SUMS)
    pt.tick()
    with local_client(db.dsn) as (other, _):
        monkeypatch.setattr(planner, "analyse", lambda *given: replace(analyse(*given), query=None, **NO_RULE))
        for number in range(3, 7):
            db.execute("INSERT INTO orders VALUES (%s, 1, 10)", number)
            assert other.refresh("sums").action == "FULL"
    db.execute("DELETE FROM orders WHERE id IN (1, 3)")
    pt.tick()
    assert sorted(db.execute("TABLE sums")) == [(1, 30), (2, 20)]
    assert pt.verify("sums").matches


def test_a_connection_that_is_lost_while_a_query_is_analysed_says_nothing_about_it(
    db: Database, pt: pytrickle.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(*_: object) -> str:
        raise psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly")

    pt.create_stream_table("sums", SUMS)
    with monkeypatch.context() as patched:
        patched.setattr(ServerProbe, "_printed", lose)
        assert [result.action for result in pt.tick() if result.stream_table == "public.sums"] == ["FAILED"]
    db.execute(ELAPSED)
    pt.tick()
    db.execute("INSERT INTO orders VALUES (3, 1, 10)")
    assert [result.action for result in pt.tick() if result.stream_table == "public.sums"] == ["DIFFERENTIAL"]


def test_a_connection_that_is_stuck_in_a_pipeline_is_opened_anew(db: Database, pt: pytrickle.Client) -> None:
    pt.tick()
    stuck = pt._connection().pgconn
    stuck.enter_pipeline_mode()
    stuck.send_query_params(b"SELECT 1", None)
    with pytest.raises(ConnectionLost):
        pt.tick()
    db.execute("INSERT INTO customers VALUES (1)")
    assert [result.rows_inserted for result in pt.tick()] == [1]
