"""A catalog from before batch numbers is upgraded with all that it holds, and goes on as it was."""

from __future__ import annotations

import pytest

from pytrickle.catalog import install as migrate
from tests.conftest import Database

BATCHES = 6
OLDER = """
SET TimeZone = 'UTC';
CREATE TABLE orders (id integer);
CREATE TABLE report (id integer);
CREATE VIEW body AS SELECT id FROM orders;
INSERT INTO pgtrickle.pgt_watermarks (source_relid, source_name, watermark, cut, advanced_at, last_seen_at, advanced_by)
SELECT 'orders'::regclass, 'public.orders', '2026-03-02', ROW('10:10:', NULL, NULL, NULL)::pgtrickle.cut, now(), now(),
    'loader';
INSERT INTO pgtrickle.pgt_watermark_history (source_relid, watermark, cut, advanced_at, advanced_by)
SELECT source_relid, day, cut, advanced_at, advanced_by
FROM pgtrickle.pgt_watermarks, (VALUES ('2026-03-01'::timestamptz), ('2026-03-02')) AS d (day);
INSERT INTO pgtrickle.pgt_watermark_groups (group_name, sources) VALUES ('g', '{orders}'::regclass[]);
INSERT INTO pgtrickle.pgt_watermark_groups (group_name, sources, tolerance)
VALUES ('h', '{orders}'::regclass[], '1 day');
INSERT INTO pgtrickle.pgt_stream_tables (
    pgt_relid, pgt_schema, pgt_name, defining_query, view_relid, session_settings, effective_watermark,
    watermark_tolerance, watermark_gating, system_identifier)
SELECT 'report'::regclass, 'public', 'report', 'SELECT id FROM orders', 'body'::regclass, '{}', '2026-03-01',
    '1 minute', 'gate', 1;
INSERT INTO pgtrickle.pgt_change_tracking (source_relid, source_name, buffer, capture_mode, captured_columns, relations)
SELECT 'orders'::regclass, 'public.orders', 'pgtrickle_changes.changes_1', 'statement', '{"id": "7"}', '{}';
INSERT INTO pgtrickle.pgt_dependencies (pgt_id, source_relid, source_name, source_type, columns_used, captured_xid)
SELECT pgt_id, 'orders'::regclass, 'public.orders', 'TABLE', '{id}', '7' FROM pgtrickle.pgt_stream_tables;
-- Of an earlier version: it reports other columns, and CREATE OR REPLACE alone would be refused.
CREATE FUNCTION pgtrickle.group_members(integer) RETURNS TABLE (watermark timestamptz) LANGUAGE sql AS 'SELECT now()';
"""


@pytest.fixture
def upgraded(every_empty_db: Database) -> Database:
    before = [script for script in migrate.scripts() if 0 < script.version < BATCHES]
    assert before
    for script in before:
        every_empty_db.execute(script.text)
        every_empty_db.execute(script.record)
    every_empty_db.execute(OLDER)
    assert "0006_batch_watermarks" in migrate.install(every_empty_db.connect())
    return every_empty_db


def test_an_older_catalog_keeps_its_event_times(upgraded: Database) -> None:
    migrate.verify(upgraded.connect())
    assert upgraded.execute("SELECT watermark::date::text, batch FROM pgtrickle.watermarks()") == [("2026-03-02", None)]
    history = "SELECT watermark::date::text, batch FROM pgtrickle.watermark_history('orders')"
    assert upgraded.execute(history) == [("2026-03-02", None), ("2026-03-01", None)]
    groups = "SELECT group_name, tolerance::text, batch_tolerance FROM pgtrickle.watermark_groups()"
    assert upgraded.execute(groups) == [("g", "00:00:00", None), ("h", "1 day", None)]
    columns = "effective_watermark::date::text, watermark_tolerance::text, effective_batch"
    assert upgraded.execute(f"SELECT {columns} FROM pgtrickle.pgt_stream_tables") == [("2026-03-01", "00:01:00", None)]
    moments = "effective_watermark::date::text, agreed_watermark::date::text"
    status = f"SELECT {moments}, agreed_batch, aligned FROM pgtrickle.watermark_status()"
    assert upgraded.execute(status) == [("2026-03-01", "2026-03-02", None, True)] * 2
    captured = upgraded.value("SELECT captured_columns FROM pgtrickle.pgt_change_tracking")
    assert captured == {"id": {"xid": "7", "attnum": 1}}


def test_an_older_catalog_goes_on_by_event_time(upgraded: Database) -> None:
    with pytest.raises(Exception, match="goes by event time, not by batch numbers"):
        upgraded.execute("SELECT pgtrickle.advance_batch('orders', 1)")
    upgraded.execute("SELECT pgtrickle.advance_watermark('orders', '2026-03-03')")
    assert upgraded.value("SELECT watermark::date::text FROM pgtrickle.watermarks()") == "2026-03-03"
    upgraded.execute("CREATE TABLE lines (id integer)")
    upgraded.execute("SELECT pgtrickle.create_watermark_group('batches', ARRAY['lines'], batch_tolerance => 1)")
    upgraded.execute("SELECT pgtrickle.advance_batch('lines', 1)")
