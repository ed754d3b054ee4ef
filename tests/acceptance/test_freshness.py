"""Why a stream table is behind: its lag, divided among the causes, and how long changes took to become visible."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from psycopg.rows import dict_row

from pytrickle.catalog import install as migrate
from pytrickle.refresh.under_way import under_way
from tests.acceptance.conftest import JOIN, SHOP, Shop
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.repeats import first
from tests.servers import OLDEST, Server

PARTS = ("waiting_for_watermark", "at_gate", "before_schedule", "in_queue", "in_refresh", "inherited", "stopped")
TOTALS = "SELECT customer, count(*) AS orders FROM orders GROUP BY customer"
MINUTE = timedelta(minutes=1)
ABOUT = timedelta(seconds=30)


def freshness(shop: Shop, name: str) -> dict[str, Any]:
    """Return one row of freshness(), after checking that its parts add up to its lag."""
    with shop.db.connect(row_factory=dict_row) as connection:
        rows = connection.execute("SELECT * FROM pgtrickle.freshness()").fetchall()
    for row in rows:
        assert sum((row[part] for part in PARTS), timedelta(0)) == row["lag"], row
        assert all(row[part] >= timedelta(0) for part in PARTS), row
    (found,) = (row for row in rows if row["stream_table"] == f"public.{name}")
    return found


def came(shop: Shop, source: str, minutes: int) -> None:
    """Let the changes that wait of a source have come so many minutes ago."""
    relid = shop.db.value("SELECT %s::regclass::oid::bigint", source)
    shop.db.execute(f"UPDATE pgtrickle_changes.changes_{relid} SET pgt_at = now() - interval '{minutes} minutes'")


def aged(shop: Shop, column: str, minutes: int) -> None:
    """Let what the catalog remembers of all stream tables have been so many minutes ago."""
    shop.db.execute(f"UPDATE pgtrickle.pgt_stream_tables SET {column} = now() - interval '{minutes} minutes'")


def close_to(length: timedelta, minutes: int) -> bool:
    return abs(length - minutes * MINUTE) < ABOUT


@pytest.fixture
def one(local_shop: Shop) -> Shop:
    """One filled stream table over the orders, which has read all of them."""
    local_shop.pt.create_stream_table("totals", TOTALS)
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    local_shop.tick()
    return local_shop


def test_a_table_that_shows_everything_is_fresh_however_long_ago_its_sources_changed(one: Shop) -> None:
    for column in ("data_timestamp", "last_refresh_at", "created_at"):
        aged(one, column, 600)
    found = freshness(one, "totals")
    assert (found["status"], found["lag"], found["cause"]) == ("fresh", timedelta(0), None)
    assert found["reason"] == "it shows all that its sources have"
    one.pt.create_stream_table("another", TOTALS)
    assert freshness(one, "another")["status"] == "unfilled"
    assert freshness(one, "another")["clock"] == "creation"


def test_what_is_due_waits_in_the_queue_and_before_that_for_its_schedule(one: Shop) -> None:
    one.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    came(one, "orders", 10)
    found = freshness(one, "totals")
    assert (found["cause"], found["culprit"], found["clock"]) == ("queue", "no refresher runs", "capture")
    assert close_to(found["lag"], 10) and found["status"] == "behind"
    one.db.execute("SELECT pgtrickle.alter_stream_table('totals', schedule => '12 minutes')")
    aged(one, "last_refresh_at", 15)
    found = freshness(one, "totals")
    assert found["cause"] == "schedule" and found["culprit"] == "12 min"
    assert close_to(found["before_schedule"], 7) and close_to(found["in_queue"], 3)
    assert found["reason"].startswith("behind: ") and " until its schedule: 12 min, " in found["reason"]
    one.db.execute("SELECT pgtrickle.pause_stream_table('totals')")
    found = freshness(one, "totals")
    assert (found["cause"], found["culprit"], found["stopped"]) == ("stopped", "it is paused", found["lag"])


def test_a_change_is_told_from_those_that_are_shown(one: Shop) -> None:
    one.pt.create_stream_table("idle", TOTALS, tier="frozen")
    one.pt.refresh("idle")
    one.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    one.tick()
    assert freshness(one, "totals")["status"] == "fresh", "the buffer keeps for another table what this one shows"
    assert freshness(one, "idle")["culprit"] == "its tier is frozen"


def test_a_source_gate_and_then_the_watermark_of_the_slower_source_hold_it(local_shop: Shop) -> None:
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.pt.create_stream_table("lines", JOIN)
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 1))
    shop.tick()
    shop.load("orders", "12:10", (2, 1, 10))
    came(shop, "orders", 20)
    assert shop.tick()["lines"].action == "SKIP"
    aged(shop, "gated_since", 8)
    found = freshness(shop, "lines")
    assert (found["cause"], found["culprit"]) == ("queue", "no refresher runs"), "nobody noticed before"
    assert close_to(found["waiting_for_watermark"], 8) and close_to(found["in_queue"], 12)
    aged(shop, "gated_since", 19)
    found = freshness(shop, "lines")
    assert (found["cause"], found["culprit"]) == ("watermark", "public.order_lines")
    shop.pt.gate_source("customers", "of another table")
    shop.pt.gate_source("orders", "a load")
    shop.db.execute("UPDATE pgtrickle.pgt_source_gates SET gated_at = now() - interval '15 minutes'")
    found = freshness(shop, "lines")
    assert (found["cause"], found["culprit"]) == ("gate", "public.orders")
    assert close_to(found["at_gate"], 15) and found["waiting_for_watermark"] == timedelta(0)


def test_what_lies_beyond_the_cut_waits_for_the_watermark_that_ends_it(local_shop: Shop) -> None:
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.pt.create_stream_table("lines", JOIN, watermark_gating="hold_back")
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 1))
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    shop.tick()
    found = freshness(shop, "lines")
    assert (found["cause"], found["culprit"]) == ("watermark", "public.orders"), "its own loader comes first"
    shop.load("orders", "12:10")
    assert freshness(shop, "lines")["culprit"] == "public.order_lines"
    shop.load("order_lines", "12:10")
    assert freshness(shop, "lines")["cause"] == "queue"
    shop.tick()
    assert freshness(shop, "lines")["status"] == "fresh"


def test_a_table_inherits_the_lag_of_its_input_and_blames_what_holds_that(one: Shop) -> None:
    one.pt.create_stream_table("above", "SELECT count(*) AS customers FROM totals", schedule="1 hour")
    one.tick()
    one.db.execute("INSERT INTO orders VALUES (2, 2, 10)")
    came(one, "orders", 10)
    one.db.execute("SELECT pgtrickle.pause_stream_table('totals')")
    found = freshness(one, "above")
    assert (found["cause"], found["culprit"], found["inherited"]) == ("inherited", "public.totals", found["lag"])
    assert found["reason"].endswith("stopped: it is paused)")
    one.db.execute("SELECT pgtrickle.resume_stream_table('totals')")
    one.pt.refresh("totals")
    found = freshness(one, "above")
    assert freshness(one, "totals")["status"] == "fresh"
    assert found["cause"] == "inherited" and close_to(found["inherited"], 10), (
        "the change came before its input read it"
    )
    assert timedelta(0) < found["before_schedule"] < MINUTE
    one.pt.refresh("above")
    ((through,),) = one.db.execute("SELECT commit_to_visible FROM pgtrickle.refresh_history('above', 1)")
    assert close_to(through, 10), "from the base table on"


def test_a_failing_table_and_a_refresh_under_way_are_told_from_a_queue(one: Shop) -> None:
    one.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    with one.db.connect() as refreshing:
        pgt_id = one.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables")
        with under_way(refreshing, pgt_id):
            found = freshness(one, "totals")
            assert found["in_refresh"] > timedelta(0) and " under refresh, " in found["reason"]
        assert freshness(one, "totals")["in_refresh"] == timedelta(0)
    aged(one, "last_error_at", 2)
    one.db.execute("UPDATE pgtrickle.pgt_stream_tables SET last_error = 'secret', last_sqlstate = 'SQLSTATE 22012'")
    came(one, "orders", 5)
    found = freshness(one, "totals")
    assert close_to(found["stopped"], 2) and close_to(found["in_queue"], 3)
    assert "its last refresh failed" in found["reason"] and "secret" not in found["reason"]


@pytest.mark.parametrize("seed", first(1, range(6)))
def test_the_parts_add_up_to_the_lag_whatever_happened(one: Shop, seed: int) -> None:
    random = Random(seed)
    one.pt.create_stream_table("above", "SELECT count(*) AS customers FROM totals")
    one.tick()
    one.pt.create_watermark_group("pipeline", ["orders"])
    one.load("orders", "12:00", (2, 1, 10))
    one.pt.gate_source("orders")
    moments = {
        "pgt_stream_tables": ("gated_since", "last_refresh_at", "data_timestamp", "fuse_blown_at", "last_error_at"),
        "pgt_source_gates": ("gated_at", "ungated_at"),
        "pgt_watermarks": ("advanced_at",),
    }
    causes = set()
    for _ in range(60):
        table = random.choice(list(moments))
        moment = random.choice(["NULL", f"now() - {random.uniform(-1e3, 1e5)} * interval '1 second'"])
        column = random.choice(moments[table])
        if moment != "NULL" or column not in ("gated_at", "advanced_at"):
            one.db.execute(f"UPDATE pgtrickle.{table} SET {column} = {moment}")
        came(one, "orders", random.randrange(-5, 1000))
        schedule = random.choice(["calculated", "10 minutes", "1 day"])
        one.db.execute("UPDATE pgtrickle.pgt_stream_tables SET schedule = %s", schedule)
        causes |= {freshness(one, name)["cause"] for name in ("totals", "above")}
    assert len(causes - {None}) > 3, causes


@pytest.mark.parametrize("indexed", [True, False])
def test_few_changes_are_found_among_many_without_reading_them_all(one: Shop, indexed: bool) -> None:
    one.pt.create_stream_table("alike", "SELECT id FROM orders")
    one.tick()
    for number in range(10, 60):
        one.db.execute("INSERT INTO orders SELECT -%s, 1, 1", number)
    one.db.execute("INSERT INTO orders SELECT n, 1, 1 FROM generate_series(10, 20000) AS n")
    relid = one.db.value("SELECT 'orders'::regclass::oid::bigint")
    one.db.execute(f"ANALYZE pgtrickle_changes.changes_{relid}")
    if indexed:
        assert one.db.value(f"SELECT pgtrickle_private.index_change_buffer('pgtrickle_changes.changes_{relid}', 1)")
    with one.db.connect() as connection:
        read_by = "coalesce(idx_tup_fetch, 0) + seq_tup_read"
        before = f"SELECT {read_by} FROM pg_stat_xact_user_tables WHERE relid = %s::regclass"
        connection.autocommit = False
        buffer = f"pgtrickle_changes.changes_{relid}"
        lags = "SELECT count(*) FROM pgtrickle_private.missing_changes(NULL) AS m WHERE m.source = 'orders'::regclass"
        assert connection.execute(lags).fetchone() == (2,)
        ((read,),) = connection.execute(before, (buffer,)).fetchall()
    # Without an index all is read once, whatever transactions it is of, and however many stream tables stand alike.
    assert (0 < read < 200) if indexed else (0 < read < 2 * 20050)


def test_a_buffer_that_somebody_alters_is_not_waited_for(one: Shop) -> None:
    relid = one.db.value("SELECT 'orders'::regclass::oid::bigint")
    one.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    with one.db.connect(autocommit=False) as altering:
        altering.execute(f"LOCK TABLE pgtrickle_changes.changes_{relid}".encode())
        found = freshness(one, "totals")
    assert (found["clock"], found["reason"].partition(":")[0]) == ("refresh", "perhaps behind")


def test_history_says_what_a_refresh_took_and_when_its_changes_came(one: Shop) -> None:
    columns = "commit_to_visible, change_clock, phases, staged_bytes, amplification, delta_rows, engine"
    history = f"SELECT {columns} FROM pgtrickle.refresh_history('totals', 1)"
    assert one.db.execute(history)[0][:2] == (None, None), "a first load takes in no changes"
    for number in (2, 3, 4):
        one.db.execute("INSERT INTO orders VALUES (%s, 1, 10), (%s, 2, 10)", number, number + 10)
        came(one, "orders", number)
        one.tick()
        ((visible, clock, phases, size, amplification, rows, engine),) = one.db.execute(history)
        assert close_to(visible, number) and (clock, rows, engine) == ("capture", 2, "postgres")
        assert set(phases) - {"choose"} == {"plan", "compute", "apply"} and all(spent > 0 for spent in phases.values())
        assert size > 0 and amplification in (1.5, 2)
    found = freshness(one, "totals")
    assert [close_to(found[place], minutes) for place, minutes in (("p50", 3), ("p95", 4), ("p99", 4))] == [True] * 3
    ((samples, median, mode),) = one.db.execute(
        "SELECT samples, p50_ms, tracking_mode FROM pgtrickle.commit_latency_stats()"
    )
    assert (samples, mode) == (3, "capture") and close_to(timedelta(milliseconds=median), 3)


@pytest.fixture
def timed() -> Iterator[Shop]:
    """The shop on a server that keeps the times of commits."""
    server = Server(OLDEST, track_commit_timestamp="on")
    try:
        database = Database(server.create("timed"), OLDEST)
        with database.connect() as connection:
            migrate.install(connection)
        database.execute(SHOP)
        with local_client(database.dsn) as (client, _):
            yield Shop(database, client)
        database.close()
    finally:
        server.stop()


def test_the_times_of_commits_are_taken_where_the_server_keeps_them(timed: Shop) -> None:
    timed.pt.create_stream_table("totals", TOTALS)
    timed.tick()
    first, second = (timed.db.connect(autocommit=False) for _ in range(2))
    first.execute("INSERT INTO orders VALUES (1, 1, 10)")
    second.execute("INSERT INTO orders VALUES (2, 1, 10)")
    ((late,),) = second.execute("SELECT pg_current_xact_id()::text::bigint::text::xid").fetchall()
    second.commit()
    first.commit()
    came(timed, "orders", 50)
    found = freshness(timed, "totals")
    committed = timed.db.value("SELECT pg_xact_commit_timestamp(%s::text::xid)", str(late))
    assert (found["clock"], found["behind_since"]) == ("commit", committed), "the younger one committed first"
    timed.tick()
    ((visible, clock),) = timed.db.execute(
        "SELECT oldest_change_at, change_clock FROM pgtrickle.refresh_history('totals', 1)"
    )
    assert (visible, clock) == (committed, "commit")
