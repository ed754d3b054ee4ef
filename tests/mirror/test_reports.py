"""What the reports under pg_trickle's names say, over real refreshes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.mirror.conftest import Mirror
from tests.sql.checks import refused

REACHES = (
    "SELECT a, b FROM edges UNION SELECT e.a, {other}.b FROM edges AS e JOIN {other} ON {other}.a = e.b"
)  # fmt: skip


@pytest.fixture
def chain(mirror: Mirror) -> Mirror:
    """Sums over orders, and what is made of them, both filled and then refreshed once more."""
    mirror.run(
        "CREATE TABLE orders (id integer PRIMARY KEY, customer text, amount integer)",
        "CREATE TABLE rates (customer text)",
        "INSERT INTO orders VALUES (1, 'ada', 10), (2, 'bob', 20)",
        "SELECT pgtrickle.create_stream_table('sums',"
        " 'SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer', '1h')",
    )
    mirror.filled(
        "SELECT pgtrickle.create_stream_table('large',"
        " 'SELECT customer FROM sums JOIN rates USING (customer) WHERE amount > 5 ORDER BY customer LIMIT 3')"
    )
    mirror.run("INSERT INTO orders VALUES (3, 'ada', 5)")
    result = mirror.client.refresh("sums")
    assert (str(result.action), result.error) == ("DIFFERENTIAL", None)
    return mirror


def one(mirror: Mirror, query: str) -> tuple[Any, ...]:
    (row,) = mirror.rows(query)
    return row


def test_the_catalog_says_how_a_stream_table_was_refreshed_and_how_far_it_read(chain: Mirror) -> None:
    mode, reason, frontier = one(
        chain,
        "SELECT effective_refresh_mode, refresh_reason = (SELECT reason FROM pgtrickle.refresh_history('sums', 1)),"
        " frontier FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'sums'",
    )
    assert (mode, reason) == ("DIFFERENTIAL", True)
    ((source, position),) = frontier["sources"].items()
    assert int(source) == chain.value("SELECT 'orders'::regclass::oid::bigint")
    kept = "SELECT (frontier).lsn::text FROM pgtrickle.pgt_dependencies WHERE source_relid = 'orders'::regclass"
    assert position["lsn"] == chain.value(kept) and position["snapshot_ts"] == frontier["data_timestamp"]


def test_an_error_has_a_time_until_the_next_good_refresh(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE t (v integer)", "INSERT INTO t VALUES (0)")
    mirror.run("SELECT pgtrickle.create_stream_table('s', 'SELECT 1 / v AS x FROM t')")
    assert mirror.tick()[0].error
    seen = "SELECT now() - last_error_at < '1 hour', last_error_code FROM pgtrickle.stream_tables_info"
    assert mirror.rows(seen) == [(True, "PERMANENT")]
    assert mirror.rows("SELECT error_type, error_message FROM pgtrickle.diagnose_errors('s')") == [
        ("user", mirror.value("SELECT last_error FROM pgtrickle.pgt_stream_tables"))
    ]
    assert mirror.value("SELECT status FROM pgtrickle.quick_health") == "WARNING"
    mirror.run("UPDATE t SET v = 1")
    mirror.client.refresh("s")
    assert mirror.rows(seen) == [(None, None)]


def test_a_cycle_has_one_number_and_the_rounds_it_took_until_it_is_broken(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE edges (a integer, b integer)", "INSERT INTO edges VALUES (1, 2), (2, 3), (3, 4)")
    for name, query in (("x", "SELECT a, b FROM edges"), ("y", REACHES.format(other="x"))):
        mirror.db.execute("SELECT pgtrickle.create_stream_table(%s, %s, allow_circular => true)", name, query)
    numbers = "SELECT count(DISTINCT scc_id), count(scc_id) FROM pgtrickle.pgt_stream_tables"
    assert one(mirror, numbers) == (0, 0)
    mirror.db.execute("SELECT pgtrickle.alter_stream_table('x', query => %s)", REACHES.format(other="y"))
    assert one(mirror, numbers) == (1, 2)
    assert not [result for result in mirror.tick() if result.error]
    status = "SELECT scc_id, member_count, members, last_iterations, last_converged_at FROM pgtrickle.pgt_scc_status()"
    number, count, members, rounds, converged = one(mirror, status)
    assert (count, members) == (2, ["public.x", "public.y"]) and rounds > 1 and converged is not None
    assert mirror.rows("SELECT DISTINCT scc_id FROM pgtrickle.pgt_status()") == [(number,)]
    last = "SELECT DISTINCT last_fixpoint_iterations FROM pgtrickle.pgt_stream_tables"
    assert mirror.rows(last) == mirror.rows("SELECT DISTINCT fixpoint_iteration FROM pgtrickle.pgt_refresh_history")
    mirror.run("SELECT pgtrickle.alter_stream_table('x', query => 'SELECT a, b FROM edges')")
    assert one(mirror, numbers) == (0, 0)


def test_a_catalog_whose_cycles_were_not_numbered_numbers_them(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE edges (a integer, b integer)")
    for name, query in (("x", "SELECT a, b FROM edges"), ("y", REACHES.format(other="x"))):
        mirror.db.execute("SELECT pgtrickle.create_stream_table(%s, %s, allow_circular => true)", name, query)
    mirror.db.execute("SELECT pgtrickle.alter_stream_table('x', query => %s)", REACHES.format(other="y"))
    mirror.run("UPDATE pgtrickle.pgt_stream_tables SET scc_id = NULL", "SELECT pgtrickle_private.number_cycles()")
    assert mirror.value("SELECT count(DISTINCT scc_id) FROM pgtrickle.pgt_stream_tables WHERE scc_id IS NOT NULL") == 1


def test_the_history_of_a_stream_table_and_of_all_has_pg_trickles_columns(chain: Mirror) -> None:
    newest, first = chain.rows("SELECT * FROM pgtrickle.get_refresh_history('sums')")
    ours = "SELECT refresh_id, data_timestamp, started_at, finished_at, action, status"
    ours += " FROM pgtrickle.refresh_history('sums', 1)"
    assert newest[:6] == one(chain, ours)
    assert (newest[6:9], first[4]) == ((1, 0, 1), "FULL") and newest[9] > 0
    assert chain.value("SELECT count(*) FROM pgtrickle.get_refresh_history('sums', 1)") == 1
    timeline = "SELECT stream_table, action, status FROM pgtrickle.refresh_timeline(2)"
    assert chain.rows(timeline) == [("public.sums", "DIFFERENTIAL", "COMPLETED"), ("public.large", "FULL", "COMPLETED")]
    with refused("42704"):
        chain.rows("SELECT * FROM pgtrickle.get_refresh_history('nothing')")


def test_sums_over_refreshes_agree_with_the_history(chain: Mirror) -> None:
    sums = (
        "SELECT total_refreshes, successful_refreshes, failed_refreshes, total_rows_inserted, total_rows_deleted"
        " FROM pgtrickle.{} WHERE pgt_name = 'sums'"
    )
    assert one(chain, sums.format("pg_stat_stream_tables")) == (2, 2, 0, 3, 1)
    assert one(chain, sums.format("st_refresh_stats()")) == (2, 2, 0, 3, 1)
    counts = "total_full_refreshes, total_diff_refreshes, total_delta_rows_processed"
    assert one(chain, f"SELECT {counts} FROM pgtrickle.pg_stat_pgtrickle WHERE table_name = 'sums'") == (1, 1, 1)
    stats = "SELECT mode, refresh_count, avg_ms > 0 FROM pgtrickle.pgtrickle_refresh_stats()"
    stats += " WHERE stream_table = 'public.sums'"
    assert chain.rows(stats) == [("DIFFERENTIAL", 1, True), ("FULL", 1, True)]
    efficiency = (
        "SELECT diff_count, full_count, diff_speedup FROM pgtrickle.refresh_efficiency() WHERE pgt_name = 'sums'"
    )
    diffs, fulls, speedup = one(chain, efficiency)
    assert (diffs, fulls, speedup[-1]) == (1, 1, "x")
    assert one(chain, "SELECT samples FROM pgtrickle.commit_latency_stats() WHERE pgt_name = 'sums'") == (1,)
    metrics = "SELECT total_stream_tables, total_refreshes, total_rows_processed, active_workers"
    assert one(chain, f"{metrics} FROM pgtrickle.metrics_summary()") == (2, 3, 4, 0)


def test_health_says_what_is_wrong(chain: Mirror) -> None:
    checks = "SELECT severity, detail FROM pgtrickle.health_check() WHERE check_name = %s"
    assert chain.db.execute(checks, "error_tables") == [("OK", "none")]
    assert chain.db.execute(checks, "scheduler_running") == [("ERROR", "pytrickle run is not running")]
    with chain.refresher():
        assert chain.db.execute(checks, "scheduler_running") == [("OK", "none")]
        assert chain.value("SELECT scheduler_status FROM pgtrickle.health_summary()") == "ACTIVE"
    chain.run("UPDATE pgtrickle.pgt_stream_tables SET last_refresh_at = now() - interval '2 hours'")
    chain.run("ALTER TABLE orders DISABLE TRIGGER USER")
    assert chain.db.execute(checks, "stale_tables") == [("WARN", "public.sums")]
    ((severity, detail),) = chain.db.execute(checks, "capture")
    assert severity == "ERROR" and detail.startswith("public.orders: capture trigger")
    assert chain.value("SELECT alert FROM pgtrickle.check_cdc_health() WHERE source_table = 'public.orders'") in detail
    assert chain.rows(
        "SELECT DISTINCT enabled FROM pgtrickle.trigger_inventory() WHERE source_table = 'public.orders'"
    ) == [(False,)]
    counts = "SELECT total_stream_tables, active_count, stale_count, suspended_count FROM pgtrickle.health_summary()"
    assert one(chain, counts) == (2, 2, 1, 0)
    chain.run("SELECT pgtrickle.pause_stream_table('sums')")
    assert one(chain, counts) == (2, 1, 1, 1)
    assert chain.value("SELECT status FROM pgtrickle.pgt_status() WHERE name = 'public.sums'") == "SUSPENDED"
    assert chain.value("SELECT status FROM pgtrickle.quick_health") == "CRITICAL"


def test_sources_and_buffers_are_listed_with_their_numbers(chain: Mirror) -> None:
    sources = "SELECT source_table, source_type, cdc_mode, columns_used FROM pgtrickle.list_sources('large')"
    assert chain.rows(sources) == [
        ("public.rates", "TABLE", "TRIGGER", "customer"),
        ("public.sums", "STREAM_TABLE", "TRIGGER", "customer, amount"),
    ]
    sizes = "SELECT stream_table, source_table, buffer_bytes > 0 FROM pgtrickle.change_buffer_sizes()"
    assert chain.rows(sizes) == [
        ("public.large", "public.rates", True),
        ("public.large", "public.sums", True),
        ("public.sums", "public.orders", True),
    ]
    shared = "SELECT source_table, consumer_count, consumers FROM pgtrickle.shared_buffer_stats()"
    assert ("public.sums", 1, "public.large") in chain.rows(shared)
    status = "SELECT source_name::text, cdc_mode, slot_name FROM pgtrickle.pgt_cdc_status ORDER BY 1"
    assert [row[:2] for row in chain.rows(status)] == [("orders", "TRIGGER"), ("rates", "TRIGGER")]
    triggers = "SELECT tgname FROM pg_trigger WHERE tgrelid = 'orders'::regclass"
    assert one(chain, "SELECT slot_name FROM pgtrickle.pgt_cdc_status WHERE source_name = 'orders'") in chain.rows(
        triggers
    )


def test_a_table_that_only_a_feed_reads_has_no_consumers(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE t (id integer)", "SELECT pgtrickle.create_stream_table('s', 'SELECT id FROM t')")
    mirror.run("SELECT pgtrickle.create_feed('f', 's')")
    shared = mirror.rows("SELECT source_table, consumer_count, consumers FROM pgtrickle.shared_buffer_stats()")
    assert ("public.s", 0, None) in shared and ("public.t", 1, "public.s") in shared


def test_a_source_whose_changes_are_not_captured_is_called_what_it_is(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE t (v integer)", "CREATE MATERIALIZED VIEW m AS SELECT v FROM t")
    mirror.run("SELECT pgtrickle.create_stream_table('s', 'SELECT v FROM m')")
    assert mirror.rows("SELECT source_type, cdc_mode FROM pgtrickle.list_sources('s')") == [("MATVIEW", None)]


def test_a_stream_table_that_is_large_stale_or_keyless_says_so(chain: Mirror) -> None:
    seen = "SELECT pgt_name, is_topk, has_keyless_source, stale, schedule FROM pgtrickle.stream_tables_info ORDER BY 1"
    assert chain.rows(seen) == [("large", True, True, None, None), ("sums", False, False, False, "1h")]
    assert chain.value("SELECT pgtrickle.get_staleness('sums') BETWEEN 0 AND 3600")
    assert chain.value("SELECT pgtrickle.get_staleness('nothing')") is None


def test_the_tree_has_each_stream_table_below_one_that_it_reads(chain: Mirror) -> None:
    assert chain.rows("SELECT tree_line, node_type, depth FROM pgtrickle.dependency_tree()") == [
        ("public.sums", "stream_table", 0),
        ("├── public.orders [src]", "source_table", 1),
        ("└── public.large", "stream_table", 1),
        ("    └── public.rates [src]", "source_table", 2),
    ]


def test_the_graph_is_drawn_for_mermaid_and_for_graphviz(chain: Mirror) -> None:
    (large,), (sums,) = chain.rows("SELECT pgt_id FROM pgtrickle.pgt_stream_tables ORDER BY pgt_name")
    mermaid, dot = one(chain, "SELECT pgtrickle.explain_dag(), pgtrickle.explain_dag('dot')")
    assert mermaid.startswith("graph TD\n") and f"n{sums} --> n{large}" in mermaid
    assert f'n{sums}["public.sums\\n[DIFFERENTIAL]"]:::blue' in mermaid
    assert dot.startswith("digraph dag {\n") and f"n{sums} -> n{large};" in dot


def test_a_stream_table_is_explained_by_properties(chain: Mirror) -> None:
    found = dict(chain.rows("SELECT property, value FROM pgtrickle.explain_st('sums')"))
    assert (found["pgt_name"], found["dvm_supported"], found["output_columns"]) == (
        "public.sums",
        "true",
        "customer, amount",
    )
    timing = json.loads(found["refresh_timing_stats"])
    assert (timing["samples"], timing["latest_action"]) == (2, "DIFFERENTIAL") and timing["max_ms"] >= timing["min_ms"]
    assert chain.rows("SELECT property FROM pgtrickle.explain_st('nothing')") == [("error",)]
    assert one(chain, "SELECT * FROM pgtrickle.explain_refresh_mode('sums')") == ("AUTO", "DIFFERENTIAL", None)


def test_the_fuse_of_each_stream_table_is_listed(chain: Mirror) -> None:
    chain.run("SELECT pgtrickle.alter_stream_table('sums', fuse_ceiling => 1)")
    chain.run("INSERT INTO orders SELECT g, 'ada', 1 FROM generate_series(10, 20) AS g")
    chain.client.refresh("sums")
    fuses = "SELECT stream_table, fuse_mode, fuse_state, effective_ceiling, blown_at < now()"
    fuses += " FROM pgtrickle.fuse_status()"
    assert chain.rows(fuses) == [
        ("public.large", "off", "armed", None, None),
        ("public.sums", "on", "blown", 1, True),
    ]
    assert "11 changed rows" in chain.value("SELECT blow_reason FROM pgtrickle.fuse_status() WHERE fuse_mode = 'on'")


def test_a_stream_table_is_explained_in_words_lines_and_as_an_object(chain: Mirror) -> None:
    words = chain.value("SELECT pgtrickle.explain_stream_table('sums')")
    assert words.startswith("public.sums is refreshed DIFFERENTIAL (AUTO was asked for), 1 h.")
    assert "It reads public.orders." in words
    assert chain.value("SELECT pgtrickle.explain_json('sums') ->> 'status'") == "ACTIVE"
    assert "\nstatus: ACTIVE\n" in chain.value("SELECT pgtrickle.explain('sums')")


def test_the_share_of_failures_is_that_of_the_history(chain: Mirror) -> None:
    columns = "p50_ms > 0, p99_ms >= p50_ms, freshness_lag_s BETWEEN 0 AND 3600, error_rate"
    summary = f"SELECT {columns} FROM pgtrickle.sla_summary() WHERE stream_table = 'public.sums'"
    assert chain.rows(summary) == [(True, True, True, 0.0)]


def test_a_skip_says_why_and_that_it_is_for_watermarks(chain: Mirror) -> None:
    chain.run(
        "SELECT pgtrickle.create_watermark_group('g', ARRAY['orders', 'rates'], interval '0')",
        "SELECT pgtrickle.alter_stream_table('large', watermark_gating => 'gate')",
        "SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00Z'::timestamptz)",
        "SELECT pgtrickle.advance_watermark('rates', '2026-03-01 11:00Z'::timestamptz)",
        "INSERT INTO rates VALUES ('ada')",
    )
    assert [str(result.action) for result in chain.tick() if result.stream_table == "public.large"] == ["SKIP"]
    newest = "SELECT action, status, error_message, refresh_reason FROM pgtrickle.get_refresh_history('large', 1)"
    action, status, message, reason = one(chain, newest)
    assert (action, status) == ("SKIP", "SKIPPED")
    assert message == f"watermarks: {reason}" and "public.rates is 1 h behind" in reason
    assert chain.rows("SELECT error_message FROM pgtrickle.refresh_timeline(1)") == [(message,)]
    kept = "SELECT error_message FROM pgtrickle.pgt_refresh_history ORDER BY refresh_id DESC LIMIT 1"
    assert chain.rows(kept) == [(message,)]
    chain.run("SELECT pgtrickle.gate_source('rates', 'a load')")
    chain.tick()
    assert one(chain, newest)[2].startswith("watermarks: public.rates is gated by")
