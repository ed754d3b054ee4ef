"""Units that do not read each other are refreshed at the same time, each on a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, get_ident

import pytest

import pytrickle
from pytrickle.catalog import session_settings
from pytrickle.errors import ConnectionLost
from tests.acceptance.conftest import Shop, at
from tests.waiting import PATIENCE, wait_for, wait_until_blocked

REFRESHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
REFRESHERS += " AND application_name ^@ 'pytrickle/refresher'"
TABLES = {
    "left_report": "SELECT id, amount FROM orders",
    "right_report": "SELECT id, customer FROM orders",
    "merged": "SELECT l.id, l.amount, r.customer FROM left_report l JOIN right_report r USING (id)",
    "deeper": "SELECT id, amount FROM left_report WHERE amount > 0",
}


@pytest.fixture
def shop(local_shop: Shop) -> Shop:
    """Where Spark takes part, it does by clients of its own."""
    return local_shop


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a refresh wait for the locks by which these tests stop it for as long as they want."""
    monkeypatch.setattr(session_settings, "PATIENCE", "60s")


@pytest.fixture
def reports(shop: Shop, connect: Callable[..., pytrickle.Client]) -> Shop:
    """Two reports that do not read each other, one over both and one over the first, up to three at a time."""
    shop = Shop(shop.db, connect(max_concurrent_refreshes=3, direct_delta_rows=1_000))
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    for name, query in TABLES.items():
        shop.pt.create_stream_table(name, query, diamond_consistency="none")
    shop.tick()
    shop.assert_verified()
    return shop


@contextmanager
def ticking_against(
    shop: Shop, locked: str, on_result: Callable[[pytrickle.RefreshResult], None] = lambda result: None
) -> Iterator[Future[tuple[pytrickle.RefreshResult, ...]]]:
    """Have a tick hang when it writes the locked table, for the length of the block."""
    with shop.db.connect() as holder, ThreadPoolExecutor(1) as thread:
        with holder.transaction():
            holder.execute(f"LOCK TABLE {locked} IN EXCLUSIVE MODE".encode())
            running = thread.submit(shop.pt.tick, on_result)
            wait_until_blocked(shop.db, locked, lambda: not running.done())
            yield running
        running.exception()


def test_a_table_that_hangs_keeps_only_its_readers_waiting(reports: Shop) -> None:
    reports.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
    with ticking_against(reports, "left_report") as running:
        wait_for(
            lambda: reports.rows("right_report") == {(1, 1), (2, 2)}, "the other report", lambda: not running.done()
        )
        assert reports.rows("merged") == {(1, 10, 1)}
        assert not running.done()
    assert {result.action for result in running.result()} == {"DIFFERENTIAL"}
    assert [result.stream_table for result in running.result()] == [result.stream_table for result in reports.pt.tick()]
    assert reports.rows("merged") == {(1, 10, 1), (2, 20, 2)}
    assert reports.rows("deeper") == {(1, 10), (2, 20)}
    reports.assert_verified()


def test_interrupting_does_not_wait_for_a_lane_that_hangs(reports: Shop) -> None:
    go_on = Event()

    def interrupt(result: pytrickle.RefreshResult) -> None:
        go_on.wait()
        raise KeyboardInterrupt

    reports.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
    with ticking_against(reports, "left_report", interrupt) as running:
        go_on.set()
        with pytest.raises(KeyboardInterrupt):
            running.result(timeout=PATIENCE)
        assert reports.rows("left_report") == {(1, 10)}
    reports.tick()
    reports.assert_verified()
    assert reports.rows("merged") == {(1, 10, 1), (2, 20, 2)}


def test_explain_says_what_is_refreshed_with_a_table_and_beside_it(reports: Shop) -> None:
    assert reports.pt.explain("merged").data["beside"] == "the one unit that neither reads it nor is read by it"
    assert reports.pt.explain("left_report").data["together_with"] is None
    reports.pt.alter_stream_table("merged", diamond_consistency="atomic")
    explanation = reports.pt.explain("right_report")
    assert explanation.data["together_with"] == "public.left_report, public.merged (diamond below public.merged)"
    assert explanation.data["beside"] == "none, all others read it or are read by it"
    assert "at the same time as: none, all others" in str(explanation)


def test_one_at_a_time_is_one_connection_that_writes(shop: Shop, connect: Callable[..., pytrickle.Client]) -> None:
    one = Shop(shop.db, connect(max_concurrent_refreshes=1))
    for name, query in TABLES.items():
        one.pt.create_stream_table(name, query)
    one.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
    before = int(one.db.value(REFRESHERS))
    one.tick()
    assert one.pt.explain("deeper").data["beside"] == "none, max_concurrent_refreshes is 1"
    assert int(one.db.value(REFRESHERS)) == before
    one.assert_verified()


def test_a_chain_needs_no_further_connection(shop: Shop, connect: Callable[..., pytrickle.Client]) -> None:
    chain = Shop(shop.db, connect(max_concurrent_refreshes=4))
    for depth, source in enumerate(("orders", "chain_0", "chain_1")):
        chain.pt.create_stream_table(f"chain_{depth}", f"SELECT id, amount FROM {source}")
    before = int(chain.db.value(REFRESHERS))
    for number in (1, 2):
        chain.db.execute("INSERT INTO orders VALUES (%s, 1, 10)", number)
        assert {result.rows_inserted for result in chain.tick().values()} == {1}
    assert int(chain.db.value(REFRESHERS)) == before


def test_results_are_reported_in_the_thread_that_ticks(reports: Shop) -> None:
    reports.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
    seen: dict[str, int] = {}
    results = reports.pt.tick(lambda result: seen.update({result.stream_table: get_ident()}))
    assert set(seen) == {result.stream_table for result in results} == {f"public.{name}" for name in TABLES}
    assert set(seen.values()) == {get_ident()}


def test_a_failure_in_one_lane_leaves_the_others_alone(reports: Shop) -> None:
    reports.pt.create_stream_table("poisoned", "SELECT id, 100 / amount AS share FROM orders")
    reports.pt.create_stream_table("beneath", "SELECT id FROM poisoned")
    reports.tick()
    reports.db.execute("INSERT INTO orders VALUES (2, 2, 0)")
    actions = {result.stream_table.partition(".")[2]: result.action for result in reports.pt.tick()}
    assert actions == {**dict.fromkeys(TABLES, "DIFFERENTIAL"), "deeper": "DIFFERENTIAL"} | {
        "poisoned": "FAILED",
        "beneath": "SKIP",
    }
    assert reports.rows("merged") == {(1, 10, 1), (2, 0, 2)}
    reports.db.execute("DELETE FROM orders WHERE amount = 0")
    reports.tick()
    reports.assert_verified()


def test_a_lane_whose_connection_is_lost_is_opened_anew(reports: Shop) -> None:
    reports.db.execute("INSERT INTO orders VALUES (2, 2, 20)")
    with ticking_against(reports, "right_report") as running:
        wait_for(lambda: reports.rows("deeper") == {(1, 10), (2, 20)}, "the other lane", lambda: not running.done())
        blocked = wait_until_blocked(reports.db, "right_report")
        assert reports.db.value("SELECT pg_terminate_backend(%s)", blocked)
        assert isinstance(running.exception(), ConnectionLost)
    reports.tick()
    assert reports.rows("merged") == {(1, 10, 1), (2, 20, 2)}
    reports.assert_verified()


def test_what_is_quiet_is_settled_beside_a_refresh_that_hangs(reports: Shop) -> None:
    reports.pt.create_watermark_group("names", ["customers"])
    reports.pt.create_stream_table("names", "SELECT id, name FROM customers", watermark_gating="gate")
    for clock in ("12:00", "12:05"):
        reports.pt.advance_watermark("customers", at(clock))
        reports.db.execute("INSERT INTO orders VALUES (%s, 2, 20)", int(clock[-2:]) + 2)
        with ticking_against(reports, "left_report") as running:
            wait_for(
                lambda wanted=clock: reached(reports).endswith(wanted), "the watermark", lambda: not running.done()
            )
        assert not running.exception()
    reports.assert_verified()


def reached(shop: Shop) -> str:
    query = (
        "SELECT to_char(effective_watermark AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') FROM pgtrickle.pgt_stream_tables"
    )
    return str(shop.db.value(f"{query} WHERE pgt_name = 'names'"))


def test_a_lane_that_is_stuck_in_a_pipeline_is_opened_anew(reports: Shop) -> None:
    """So libpq may leave a connection that was lost there: neither closed nor known as broken."""
    for lane in reports.pt._ticker.lanes.further:
        lane.connection.pgconn.enter_pipeline_mode()
        lane.connection.pgconn.send_query_params(b"SELECT 1", None)
        reports.db.execute("SELECT pg_terminate_backend(%s, 10000)", lane.connection.info.backend_pid)
    assert reports.pt._ticker.lanes.further
    reports.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    assert {result.action for result in reports.pt.tick()} == {"DIFFERENTIAL"}
    reports.assert_verified()


END = "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = current_database()"
END += " AND application_name ^@ %s"
WITH_ERROR = "SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE last_error IS NOT NULL"


def test_after_all_sessions_have_ended_one_tick_finds_that_out(reports: Shop) -> None:
    """As when the server restarts: what ended the caller's session has ended those of the lanes."""
    assert len(reports.pt._ticker.lanes.further) > 1
    reports.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    assert reports.db.execute(END, "pytrickle/")
    with pytest.raises(ConnectionLost):
        reports.pt.tick()
    reports.tick()
    reports.assert_verified()


def test_the_end_of_the_snapshot_is_the_failure_of_one_stream_table_at_most(
    shop: Shop, connect: Callable[..., pytrickle.Client]
) -> None:
    shop = Shop(shop.db, connect(max_concurrent_refreshes=1, direct_delta_rows=1_000))
    for number in range(5):
        shop.pt.create_stream_table(f"report{number}", f"SELECT id, amount + {number} AS amount FROM orders")
    shop.tick()
    shop.db.execute("INSERT INTO orders SELECT n, n, n FROM generate_series(1, 5000) AS n")
    with pytest.raises(ConnectionLost, match="holds the snapshot"):
        shop.pt.tick(lambda result: bool(shop.db.execute(END, "pytrickle/snapshot")))
    assert shop.db.value(WITH_ERROR) <= 1
    shop.db.execute("SELECT pgtrickle.resume_stream_table()")
    shop.tick()
    shop.assert_verified()
