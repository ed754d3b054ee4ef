"""Refusing to read a stream table that is stale."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import psycopg
import pytest

from tests.conftest import Database
from tests.sql.checks import create, refused
from tests.sql.reports import load, refresh
from tests.waiting import wait_until_blocked

FRESH = "SELECT pgtrickle.assert_fresh('report', '10 minutes')"


def age(db: Database, minutes: float) -> None:
    then = "clock_timestamp() - %s * interval '1 minute'"
    db.execute(f"UPDATE pgtrickle.pgt_stream_tables SET data_timestamp = {then}", minutes)


def came(db: Database, source: str, minutes: int) -> None:
    """Have all changes of a source that are kept be so old."""
    relid = db.value("SELECT %s::regclass::oid::bigint", source)
    then = "clock_timestamp() - %s * interval '1 minute'"
    db.execute(f"UPDATE pgtrickle_changes.changes_{relid} SET pgt_at = {then}", minutes)


def fill(db: Database) -> None:
    """Have the report show a row of both sources, whose watermarks agree."""
    for source in ("orders", "order_lines"):
        db.execute(f"INSERT INTO {source} VALUES (1)")
    load(db, "12:00")
    refresh(db)


def test_a_fresh_stream_table_tells_its_age(gated: Database) -> None:
    age(gated, 3)
    staleness = gated.value(FRESH)
    assert timedelta(minutes=3) <= staleness < timedelta(minutes=4)


def test_a_stale_stream_table_is_a_retryable_error_that_says_why(gated: Database) -> None:
    age(gated, 12)
    with refused("40001", "Repeat", "not_fresh", "public.report shows data that is 12 min"):
        gated.execute(FRESH)
    load(gated, "12:05", "orders")
    load(gated, "12:00", "order_lines")
    with pytest.raises(psycopg.errors.SerializationFailure) as stale:
        gated.execute(FRESH)
    assert "at most 10 min was asked for" in str(stale.value)
    assert "order_lines is 5 min behind" in (stale.value.diag.message_detail or "")


def test_a_stream_table_that_was_never_filled_is_not_fresh(gated: Database) -> None:
    with refused("40001", constraint="not_fresh", message="public.report was never filled"):
        gated.execute("SELECT pgtrickle.assert_fresh('report', '1000 years')")


def test_the_age_is_that_of_the_rows_the_transaction_sees(gated: Database) -> None:
    age(gated, 12)
    session = gated.connect(autocommit=False)
    session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    session.execute("SELECT FROM report")
    age(gated, 0)
    assert gated.value(FRESH) < timedelta(minutes=1)
    with refused("40001"):
        session.execute(FRESH)


def test_the_age_is_that_of_the_rows_the_statement_sees(gated: Database) -> None:
    """A refresh that commits while the query runs makes none of its rows younger."""
    age(gated, 12)
    holder, session = gated.connect(), gated.connect()
    holder.execute("SELECT pg_advisory_lock(7)")
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(session.execute, FRESH.replace("SELECT ", "SELECT pg_advisory_lock(7), "))
        wait_until_blocked(gated, "pg_advisory_lock(7)", lambda: not answer.done())
        age(gated, 0)
        holder.execute("SELECT pg_advisory_unlock(7)")
        with refused("40001"):
            answer.result(timeout=60)


def test_a_view_can_refuse_to_show_stale_rows(gated: Database) -> None:
    gated.execute(
        "CREATE VIEW fresh_report AS SELECT * FROM report"
        " WHERE pgtrickle.assert_fresh('public.report', '10 minutes') IS NOT NULL"
    )
    fill(gated)
    assert gated.execute("SELECT * FROM fresh_report") == [(1,)]
    gated.execute("INSERT INTO orders VALUES (2)")
    came(gated, "orders", 12)
    age(gated, 12)
    with refused("40001"):
        gated.execute("SELECT * FROM fresh_report")


def test_quiet_sources_make_no_stream_table_stale(gated: Database) -> None:
    """No refresh comes where nothing changed: what was true then is true now."""
    fill(gated)
    age(gated, 12)
    assert gated.value(FRESH) == timedelta(0)
    assert gated.value("SELECT pgtrickle.assert_fresh('report', '15 minutes')") > timedelta(minutes=12)
    gated.execute("INSERT INTO orders VALUES (2)")
    assert timedelta(0) < gated.value(FRESH) < timedelta(minutes=1)
    came(gated, "orders", 11)
    with refused("40001", "Repeat", "not_fresh", "public.report shows data that is 11 min"):
        gated.execute(FRESH)
    age(gated, 10.5)
    with refused("40001", "Repeat", "not_fresh", "public.report shows data that is 10 min 30"):
        gated.execute(FRESH)


def test_a_stream_table_is_as_old_as_what_the_one_that_it_reads_lacks(gated: Database) -> None:
    create(gated, "SELECT count(*) AS n FROM report", "counted")
    fill(gated)
    age(gated, 12)
    fresh = FRESH.replace("report", "counted")
    assert gated.value(fresh) == timedelta(0)
    gated.execute("INSERT INTO orders VALUES (2)")
    came(gated, "orders", 11)
    with refused("40001", "Repeat", "not_fresh", "public.counted shows data that is 11 min"):
        gated.execute(fresh)


def test_quiet_sources_are_believed_only_as_long_as_they_are_captured(gated: Database) -> None:
    fill(gated)
    age(gated, 12)
    gated.execute("ALTER TABLE orders DISABLE TRIGGER ALL")
    with refused("40001", "Repeat", "not_fresh", "public.report shows data that is 12 min"):
        gated.execute(FRESH)


def test_whoever_may_only_read_the_stream_table_is_told_of_quiet_sources_too(gated: Database) -> None:
    fill(gated)
    age(gated, 12)
    gated.create_role("reader")
    gated.execute("GRANT SELECT ON report TO reader")
    reader = gated.connect(user="reader")
    assert reader.execute(FRESH).fetchall() == [(timedelta(0),)]


def test_an_older_snapshot_is_told_of_what_it_sees(gated: Database) -> None:
    fill(gated)
    gated.execute("INSERT INTO orders VALUES (2)")
    came(gated, "orders", 11)
    age(gated, 12)
    session = gated.connect(autocommit=False)
    session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    session.execute("SELECT FROM report")
    refresh(gated)
    age(gated, 0)
    with refused("40001", message="public.report shows data that is 11 min"):
        session.execute(FRESH)
    session.rollback()
    assert session.execute(FRESH).fetchall()[0][0] < timedelta(minutes=1)
