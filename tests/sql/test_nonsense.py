"""Arguments that mean nothing: one sentence, a hint, and nothing changed."""

import psycopg
import pytest

from pytrickle.database import translate_errors
from pytrickle.errors import InvalidArgument
from tests.conftest import Database


@pytest.mark.parametrize(
    ("call", "sentence", "hint"),
    [
        ("alerts(max_rows => -1)", "max_rows", "0 or more"),
        ("refresh_history(max_rows => -1)", "max_rows", "0 or more"),
        ("refresh_timeline(max_rows => -1)", "max_rows", "0 or more"),
        ("get_refresh_history('copied', max_rows => -1)", "max_rows", "0 or more"),
        ("late_rows(max_rows => -1)", "max_rows", "0 or more"),
        ("late_changes(max_rows => -1)", "max_rows", "0 or more"),
        ("trim_history('-1 day')", "retention", "zero or more"),
        ("trim_history('-178000000 years')", "retention", "zero or more"),
        ("trim_history(NULL)", "retention", "zero or more"),
        ("refresh_if_stale('copied', '-1 day')", "p_max_age", "zero or more"),
        ("set_stream_table_sla('copied', '-1 day')", "sla", "zero or more"),
        ("set_stream_table_sla('copied', NULL)", "sla", "zero or more"),
        ("drain(-1)", "timeout_s", "0 seconds or more"),
        ("wait_for('copied', 'soon')", "watermark", "2026-03-01"),
        ("create_watermark_group('both', '{orders}', 'some')", "tolerance", "30 seconds"),
        ("set_orchestration_mode(0::regclass, 'EXTERNAL')", "no relation with OID 0", "Name the table"),
        ("set_orchestration_mode('copied', '')", "'' is not a valid orchestration_mode", "MANAGED or EXTERNAL"),
        ("late_rows(0::regclass)", "no relation with OID 0", "Name the table"),
        ("adopt_source(0::regclass)", "no relation with OID 0", "Name the table"),
    ],
)
def test_an_argument_that_means_nothing_is_refused_with_what_to_give(
    db: Database, call: str, sentence: str, hint: str
) -> None:
    db.execute("CREATE TABLE orders (id integer)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM orders')")
    with pytest.raises(InvalidArgument, match=sentence) as failure, translate_errors():
        db.execute(f"SELECT * FROM pgtrickle.{call}")
    assert hint in str(failure.value.hint)
    assert db.execute("SELECT tier FROM pgtrickle.pgt_stream_tables") == [("hot",)]


def test_reports_may_have_no_rows_or_all(db: Database) -> None:
    reader = db.create_role("reader")
    with db.connect(user=reader) as connection:
        for limit in ("0", "NULL"):
            for report in ("alerts", "refresh_history", "refresh_timeline", "late_rows", "late_changes"):
                found = connection.execute(f"SELECT * FROM pgtrickle.{report}(max_rows => {limit})".encode())
                assert isinstance(found, psycopg.Cursor) and found.fetchall() == []


@pytest.mark.parametrize(
    ("call", "sentence", "hint"),
    [
        ("explain_dag('nope')", "'nope' is not a valid format", "Use mermaid or dot."),
        ("explain_dag(NULL)", "format must not be NULL", "Use mermaid or dot."),
        ("subscribe('', 'told')", "stream_table", "Name a stream table."),
        ("subscribe(repeat('x', 1000), 'told')", "stream_table", "Name a stream table."),
        ("claim_sink_batch('orders', 's', '', 0)", "query_id", "checkpoint"),
        ("claim_sink_batch('orders', 's', 'q', 0, -1)", "'-1' is not a valid row_count", "staged_rows"),
        ("claim_sink_batch('orders', 's', 'q', 0, 1, 'NaN')", "'NaN' is not a valid row_digest", "staged_rows"),
        ("claim_sink_batch('orders', ' ', 'q', 0)", "sink", "Give the sink a name."),
        ("create_sink_staging('orders', 's', NULL)", "columns must not be NULL", "Name columns of public.orders."),
        ("create_sink_staging('orders', 's', '{}')", "'{}' is not a valid columns", "Name columns of public.orders."),
        ("create_sink_staging('orders', 's', '{NULL}')", "is not a valid columns", "Name columns of public.orders."),
        ("staged_rows('nope')", "'nope' is not a valid staging", "create_sink_staging"),
        ("staged_rows(NULL)", "staging must not be NULL", "create_sink_staging"),
        ("create_feed('f', 'pg_temp.passing')", "is not a valid relation", "temporary"),
        ("create_feed(' ', 'orders')", "' ' is not a valid name", "Give the feed a name."),
        ("create_feed('f', 'orders', owner => NULL)", "owner must not be NULL", "Name the role"),
        ("set_alert_limits('orders_pkey')", "'orders_pkey' is not a valid source", "a table that a loader fills"),
        ("set_alert_limits('pg_catalog.pg_class')", "is not a valid source", "a table that a loader fills"),
        ("advance_watermark('pg_catalog.pg_class', now())", "not a table that a loader fills", "a table of your own"),
        ("advance_batch('pgtrickle.pgt_watermarks', 5)", "not a table that a loader fills", "a table of your own"),
        ("gate_source('pg_catalog.pg_class')", "not a table that a loader fills", "a table of your own"),
        ("alert(' ', 'orders', true, 'hot')", "' ' is not a valid kind", "in a word"),
        ("alert('heat', '', true, 'hot')", "'' is not a valid subject", "with what"),
        ("alert('heat', 'orders', true, 'hot', since => '-infinity')", "is not a valid since", "leave it out"),
        ("repair_capture('orders_pkey')", "'public.orders_pkey' is not a valid source", "a stream table reads"),
        ("repair_capture('shown')", "'public.shown' is not a valid source", "a stream table reads"),
        ("repair_capture('pg_class'::regclass)", "'pg_class' is not a valid source", "or a feed reads"),
        ("create_feed('f', 'orders', owner => 'nobody else')", "'nobody else' is not a valid owner", "no such role"),
        ("repair_capture(NULL::regclass)", "source must not be NULL", "a stream table reads"),
        ("bulk_alter_stream_tables(NULL, '{}')", "list of stream tables must not be NULL", "an empty list"),
        ("bulk_drop_stream_tables(NULL)", "list of stream tables must not be NULL", "an empty list"),
        ("create_watermark_group('g', '{{orders},{copied}}')", "is not a valid list of sources", "in one list"),
        ("staged_event_time('orders', NULL)", "column_name must not be NULL", "the event time"),
        ("drop_stream_table('copied', NULL)", "cascade must not be NULL", "Use true or false."),
    ],
)
def test_nothing_is_kept_of_what_means_nothing(db: Database, call: str, sentence: str, hint: str) -> None:
    db.execute("CREATE TABLE orders (id integer PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM orders')")
    db.execute("CREATE VIEW shown AS SELECT id FROM orders")
    with db.connect() as caller:
        caller.execute("CREATE TEMPORARY TABLE passing (id integer PRIMARY KEY)")
        with pytest.raises(InvalidArgument, match=sentence) as failure, translate_errors():
            caller.execute(f"SELECT * FROM pgtrickle.{call}".encode())
    assert hint in str(failure.value.hint)
    for table in ("subscriptions", "sink_batches", "feeds", "alert_limits", "watermarks", "source_gates", "alerts"):
        assert db.value(f"SELECT count(*) FROM pgtrickle.pgt_{table}") == 0


def test_who_subscribes_to_what_is_not_there_yet_is_told(db: Database) -> None:
    said: list[str] = []
    with db.connect() as caller:
        caller.add_notice_handler(lambda notice: said.append(f"{notice.message_primary}. {notice.message_hint}"))
        caller.execute("SELECT pgtrickle.subscribe('nope', 'told')")
    (sentence,) = said
    assert sentence.startswith("there is no stream table 'nope' yet. The channel is told of its refreshes once it is")


def test_a_schedule_longer_than_any_can_be_harms_no_report(db: Database) -> None:
    db.execute("CREATE TABLE orders (id integer)")
    db.execute("SELECT pgtrickle.create_stream_table('copied', 'SELECT id FROM orders', schedule => '178000000 years')")
    db.execute("SELECT pgtrickle.alter_stream_table('copied', tier => 'cold')")
    for report in ("pgt_status", "freshness", "dag", "health_check", "sla_summary"):
        assert db.execute(f"SELECT * FROM pgtrickle.{report}()"), report
