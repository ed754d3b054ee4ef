"""What the catalog reports arrives in Python typed, frozen and ordered, and its errors arrive as ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import Connection

from pytrickle.catalog import late_reports, read_reports, reports
from pytrickle.database import Single
from pytrickle.errors import InvalidArgument, NotInstalled, UnknownStreamTable
from tests.conftest import Database

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FOREVER = datetime.max.replace(tzinfo=UTC)


def open_catalog(dsn: str) -> Iterator[Connection]:
    with closing(Single(dsn)) as lender, lender.borrow() as connection:
        yield connection


@pytest.fixture
def catalog(every_db: Database) -> Iterator[Connection]:
    yield from open_catalog(every_db.dsn)


@pytest.fixture
def shop(every_db: Database) -> Database:
    """Two sources in one group, five minutes apart, and a stream table over both that is gated by them."""
    every_db.execute("CREATE TABLE orders (id int PRIMARY KEY, region text)")
    every_db.execute('CREATE TABLE "order Lines" (order_id int, amount numeric)')
    every_db.execute(
        "SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', '\"order Lines\"'], '1 minute')"
    )
    every_db.execute(
        "SELECT pgtrickle.create_stream_table('report', 'SELECT region, sum(amount) AS total"
        ' FROM orders JOIN "order Lines" ON order_id = id GROUP BY region\')'
    )
    every_db.execute("SELECT pgtrickle.advance_watermark('orders', %s)", NOON - timedelta(hours=1))
    every_db.execute("SELECT pgtrickle.advance_watermark('orders', %s)", NOON)
    every_db.execute("SELECT pgtrickle.advance_watermark('\"order Lines\"', %s)", NOON - timedelta(minutes=5))
    return every_db


def test_an_empty_catalog_is_reported_as_empty(catalog: Connection) -> None:
    state = read_reports.status(catalog)
    assert (state.stream_tables, state.groups, state.watermarks) == ((), (), ())
    assert read_reports.watermark_groups(catalog) == ()
    assert read_reports.history(catalog) == ()
    assert read_reports.dependencies(catalog) == ()
    catalog.rollback()
    graph = read_reports.dag(catalog)
    assert (graph.relations, graph.stream_tables, graph.groups) == ((), (), ())


def test_watermarks_arrive_typed_and_ordered(shop: Database, catalog: Connection) -> None:
    lines, orders = read_reports.watermarks(catalog)
    assert (lines.source, orders.source) == ('public."order Lines"', "public.orders")
    assert (orders.watermark, orders.advanced_by) == (NOON, "postgres")
    assert orders.advanced_at <= orders.last_seen_at
    assert "/" in (orders.lsn or "")


def test_an_exhausted_source_is_datetime_max(shop: Database, catalog: Connection) -> None:
    shop.execute("SELECT pgtrickle.advance_watermark('orders', 'infinity')")
    assert read_reports.watermarks(catalog)[1].watermark == FOREVER
    assert read_reports.watermark_history(catalog, "orders")[0].watermark == FOREVER


def test_watermark_history_is_newest_first(shop: Database, catalog: Connection) -> None:
    entries = read_reports.watermark_history(catalog, "public.orders")
    assert [entry.watermark for entry in entries] == [NOON, NOON - timedelta(hours=1)]
    assert read_reports.watermark_history(catalog, '"order Lines"')[0].advanced_by == "postgres"


def test_groups_hold_their_sources_as_a_tuple(shop: Database, catalog: Connection) -> None:
    (group,) = read_reports.watermark_groups(catalog)
    assert group.sources == ("public.orders", 'public."order Lines"')
    assert (group.group_name, group.tolerance) == ("pipeline", timedelta(minutes=1))


def test_status_says_which_group_is_apart_and_which_table_waits_for_it(shop: Database, catalog: Connection) -> None:
    state = read_reports.status(catalog)
    (group,), (table,) = state.groups, state.stream_tables
    assert (group.aligned, group.lag, group.min_watermark) == (False, timedelta(minutes=5), NOON - timedelta(minutes=5))
    assert "order Lines" in (group.waiting_for or "")
    assert (table.stream_table, table.status, table.decision) == ("public.report", "INITIALIZING", "gated")
    assert (table.watermark_gating, table.staleness, table.last_action) == ("gate", None, None)
    assert "behind" in (table.reason or "")


def test_status_is_one_snapshot(shop: Database, catalog: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    read_groups = read_reports.watermark_status

    def advance_in_between(connection: Connection) -> Any:
        shop.execute("SELECT pgtrickle.advance_watermark('orders', %s)", NOON + timedelta(hours=1))
        return read_groups(connection)

    monkeypatch.setattr(read_reports, "watermark_status", advance_in_between)
    state = read_reports.status(catalog)
    assert state.groups[0].max_watermark == NOON
    assert {row.watermark for row in state.watermarks} == {NOON, NOON - timedelta(minutes=5)}
    assert abs(datetime.now(UTC) - state.as_of) < timedelta(minutes=1)


def test_history_is_newest_first_and_limited(shop: Database, catalog: Connection) -> None:
    shop.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history"
        " (pgt_id, action, status, initiated_by, reason, started_at, finished_at, rows_inserted, rows_deleted)"
        " SELECT pgt_id, 'FULL', 'COMPLETED', 'MANUAL', n::text, now(), now(), n, 0"
        " FROM pgtrickle.pgt_stream_tables, generate_series(1, 3) AS n"
    )
    rows = read_reports.history(catalog, "report", 2)
    assert [(row.stream_table, row.rows_inserted) for row in rows] == [("public.report", 3), ("public.report", 2)]
    assert len(read_reports.history(catalog)) == 3


def test_dependencies_name_what_a_table_reads(shop: Database, catalog: Connection) -> None:
    assert {row.source for row in read_reports.dependencies(catalog)} == {"public.orders", 'public."order Lines"'}


def test_the_graph_has_relations_tables_and_groups_in_one_snapshot(shop: Database, catalog: Connection) -> None:
    graph = read_reports.dag(catalog)
    rows = {row.relation: row for row in graph.relations}
    assert rows["public.report"].reads == ('public."order Lines"', "public.orders")
    assert rows["public.orders"].watermark_groups == ("pipeline",)
    assert [table.stream_table for table in graph.stream_tables] == ["public.report"]
    assert graph.groups[0].aligned is False


def test_the_graph_is_one_snapshot(shop: Database, catalog: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    read_groups = read_reports.watermark_status

    def advance_in_between(connection: Connection) -> Any:
        shop.execute("SELECT pgtrickle.advance_watermark('orders', %s)", NOON + timedelta(hours=1))
        return read_groups(connection)

    monkeypatch.setattr(read_reports, "watermark_status", advance_in_between)
    assert read_reports.dag(catalog).groups[0].max_watermark == NOON


def test_unknown_names_are_typed_errors(shop: Database, catalog: Connection) -> None:
    with pytest.raises(InvalidArgument, match="nowhere") as unknown_table:
        read_reports.watermark_history(catalog, "nowhere")
    assert unknown_table.value.sqlstate == "42P01"
    catalog.rollback()
    with pytest.raises(UnknownStreamTable, match="nowhere"):
        read_reports.history(catalog, "nowhere")


def test_a_database_without_catalog_says_so(empty_db: Database) -> None:
    for connection in open_catalog(empty_db.dsn):
        with pytest.raises(NotInstalled):
            read_reports.status(connection)


RESULT_COLUMNS = """
    SELECT a.name FROM pg_proc, unnest(proargnames, proargmodes) AS a(name, mode)
    WHERE proname = %s AND pronamespace = 'pgtrickle'::regnamespace AND mode = 't'
"""


# Columns under pg_trickle's names that say what another one does, or that the client has no use for.
SAID_TWICE = {
    "watermarks": {"source_table", "schema_name", "updated_at", "wal_lsn"},
    "watermark_groups": {"source_count", "tolerance_secs"},
    "watermark_status": {"lag_secs"},
    "pgt_status": {"name", "is_populated", "consecutive_errors", "scc_id"},
    "source_gates": {"source_table", "schema_name", "gated", "ungated_at"},
    "refresh_groups": {"group_id", "member_count"},
}


@pytest.mark.parametrize(
    ("function", "row"),
    [
        ("watermarks", reports.WatermarkRow),
        ("watermark_history", reports.HistoryEntry),
        ("watermark_groups", reports.WatermarkGroupRow),
        ("watermark_status", reports.WatermarkStatusRow),
        ("pgt_status", reports.StreamTableStatus),
        ("refresh_history", reports.HistoryRow),
        ("dependencies", reports.DependencyRow),
        ("bootstrap_status", reports.BootstrapRow),
        ("source_gates", reports.SourceGateRow),
        ("refresh_groups", reports.RefreshGroupRow),
        ("dag", reports.DagRow),
        ("event_times", late_reports.EventTimeRow),
        ("late_rows", late_reports.LateRow),
        ("watermark_metrics", late_reports.WatermarkMetrics),
    ],
)
def test_the_fields_of_a_value_are_the_columns_of_its_function(db: Database, function: str, row: type) -> None:
    columns = {name for (name,) in db.execute(RESULT_COLUMNS, function)}
    assert {field.name for field in fields(row)} == columns - SAID_TWICE.get(function, set())
