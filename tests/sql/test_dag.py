"""The graph of sources and stream tables as rows: each relation once, below what it reads."""

from __future__ import annotations

import pytest

from tests.conftest import Database
from tests.sql.checks import create


@pytest.fixture
def diamond(db: Database) -> Database:
    """Two tables, a summary of each, a report over both summaries; and a chain beside them, with names to quote."""
    for source in ("orders", "lines", "rates", '"Old orders"'):
        db.execute(f"CREATE TABLE {source} (id integer)")
    create(db, "SELECT id, count(*) AS n FROM orders GROUP BY id", "order_summary")
    create(db, "SELECT id, count(*) AS n FROM lines GROUP BY id", "line_summary")
    create(db, "SELECT o.n AS a, l.n AS b FROM order_summary AS o JOIN line_summary AS l USING (id)", "report")
    create(db, "SELECT a FROM report JOIN rates ON id = a", "priced")
    create(db, 'SELECT id FROM "Old orders"', '"Archive"')
    return db


def lines(db: Database) -> list[str]:
    return [line for (line,) in db.execute("SELECT tree FROM pgtrickle.dag()")]


def test_the_tree_shows_each_relation_once_below_what_it_reads(diamond: Database) -> None:
    assert lines(diamond) == [
        'public."Old orders"',
        '    public."Archive"',
        "public.lines",
        "    public.line_summary",
        "        public.report",
        "            public.priced",
        "public.orders",
        "    public.order_summary",
        "public.rates",
    ]


def test_every_relation_names_its_kind_and_all_that_it_reads(diamond: Database) -> None:
    rows = {row[0]: row[1:] for row in diamond.execute("SELECT relation, kind, reads FROM pgtrickle.dag()")}
    assert rows["public.report"] == ("STREAM_TABLE", ["public.line_summary", "public.order_summary"])
    assert rows["public.priced"] == ("STREAM_TABLE", ["public.rates", "public.report"])
    assert rows["public.orders"] == ("TABLE", [])
    diamond.execute("CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n FROM orders")
    create(diamond, "SELECT n FROM totals", "counted")
    assert diamond.value("SELECT kind FROM pgtrickle.dag() WHERE relation = 'public.totals'") == "UNCAPTURED"


def test_groups_and_watermarks_are_shown_at_their_sources(diamond: Database) -> None:
    diamond.execute("CREATE TABLE prices (id integer)")
    diamond.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'lines'])")
    diamond.execute("SELECT pgtrickle.create_watermark_group('all', ARRAY['orders', 'prices'])")
    diamond.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-01 12:00+00')")
    diamond.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET effective_watermark = '2026-03-01 11:00+00' WHERE pgt_name = 'report'"
    )
    rows = diamond.execute(
        "SELECT relation, watermark_groups, to_char(watermark AT TIME ZONE 'UTC', 'HH24:MI') FROM pgtrickle.dag()"
        " WHERE watermark_groups <> '{}' OR watermark IS NOT NULL ORDER BY 1"
    )
    assert rows == [
        ("public.lines", ["pipeline"], None),
        ("public.orders", ["all", "pipeline"], "12:00"),
        ("public.prices", ["all"], None),
        ("public.report", [], "11:00"),
    ]


def test_the_last_refresh_that_was_not_skipped_is_shown(diamond: Database) -> None:
    diamond.execute(
        "INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, initiated_by, started_at, finished_at)"
        " SELECT pgt_id, action, h.status, 'SCHEDULER', now(), now() + took FROM pgtrickle.pgt_stream_tables,"
        " (VALUES (1, 'FULL', 'COMPLETED', interval '9 s'), (2, 'DIFFERENTIAL', 'COMPLETED', '2 s'),"
        " (3, 'SKIP', 'SKIPPED', '1 s')) AS h(n, action, status, took) WHERE pgt_name = 'report' ORDER BY n"
    )
    query = (
        "SELECT status, last_action, extract(epoch FROM last_duration)::int FROM pgtrickle.dag() WHERE relation = %s"
    )
    assert diamond.execute(query, "public.report") == [("INITIALIZING", "DIFFERENTIAL", 2)]
    assert diamond.execute(query, "public.priced") == [("INITIALIZING", None, None)]
    assert diamond.execute(query, "public.orders") == [(None, None, None)]


def test_stream_tables_are_named_as_in_their_status_even_when_renamed_or_dropped(diamond: Database) -> None:
    diamond.execute("ALTER TABLE report RENAME TO renamed")
    diamond.execute("ALTER TABLE priced DISABLE TRIGGER ALL")
    diamond.execute("DROP TABLE priced")
    named = diamond.execute("SELECT relation FROM pgtrickle.dag() WHERE kind = 'STREAM_TABLE'")
    assert sorted(named) == sorted(diamond.execute("SELECT stream_table FROM pgtrickle.pgt_status()"))


def test_an_empty_catalog_has_no_rows(db: Database) -> None:
    assert lines(db) == []


def test_many_diamonds_in_a_row_stay_small(db: Database) -> None:
    """Their paths double with each diamond; what is listed does not."""
    db.execute("CREATE TABLE d0 (id integer)")
    for n in range(12):
        for side in ("a", "b"):
            create(db, f"SELECT id FROM d{n}", f"{side}{n}")
        create(db, f"SELECT a.id FROM a{n} AS a JOIN b{n} AS b USING (id)", f"d{n + 1}")
    drawn = lines(db)
    assert len(drawn) == len(set(drawn)) == 1 + 12 * 3
    assert "    " * 24 + "public.d12" in drawn


def test_a_circle_does_not_hang_it(diamond: Database) -> None:
    before = sorted(line.strip() for line in lines(diamond))
    diamond.execute(
        "INSERT INTO pgtrickle.pgt_dependencies (pgt_id, source_relid, source_name, source_type, columns_used)"
        " SELECT pgt_id, 'priced'::regclass, 'public.priced', 'STREAM_TABLE', '{}' FROM pgtrickle.pgt_stream_tables"
        " WHERE pgt_name = 'order_summary'"
    )
    assert sorted(line.strip() for line in lines(diamond)) == before
