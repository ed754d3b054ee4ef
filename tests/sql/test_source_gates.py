"""Source gates: what is made of a gated source waits, who may gate, and what an operator sees meanwhile."""

import json
from datetime import datetime

import pytest

from tests.conftest import Database
from tests.sql.checks import catalog_state, create, decide, refused
from tests.sql.loaders import QUERY, advance, pipeline


@pytest.fixture
def dag(db: Database) -> Database:
    """Orders, lines and rates; a summary over orders, a report over that and lines, and one over rates alone."""
    pipeline(db)
    create(db, "SELECT id, count(*) AS n FROM orders GROUP BY id", "summary")
    create(db, "SELECT id, n FROM summary JOIN lines USING (id)", "report")
    create(db, "SELECT id FROM rates", "alone")
    return db


@pytest.mark.parametrize("mode", ["auto", "none", "gate", "hold_back"])
def test_what_is_made_of_a_gated_source_waits_whatever_its_mode(db: Database, mode: str) -> None:
    pipeline(db)
    create(db, QUERY, "report", watermark_gating=mode)
    advance(db, orders="12:00", lines="12:00")
    before = decide(db, "report")
    db.execute("SELECT pgtrickle.gate_source('orders', 'reload of 2025')")
    decision = decide(db, "report")
    since = db.value("SELECT date_trunc('second', gated_at)::text FROM pgtrickle.source_gates()")
    assert decision["decision"] == "gated"
    assert decision["reason"].startswith(f"public.orders is gated by postgres since {since[:19]}")
    assert ": reload of 2025" in decision["reason"]
    assert decision["waiting_for"] == "public.orders"
    assert decision["caps"] == before["caps"], "a refresh by hand passes the gate, never a cap"
    db.execute("SELECT pgtrickle.ungate_source('orders')")
    assert decide(db, "report") == before


def test_a_source_gate_reaches_through_stream_tables_and_no_further(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.gate_source('orders')")
    assert [decide(dag, name)["decision"] for name in ("summary", "report", "alone")] == ["gated", "gated", "run"]
    dag.execute("SELECT pgtrickle.gate_source('lines')")
    assert decide(dag, "report")["waiting_for"] == "public.lines, public.orders"
    dag.execute("SELECT pgtrickle.ungate_source('orders')")
    assert [decide(dag, name)["decision"] for name in ("summary", "report")] == ["run", "gated"]


def test_a_wait_for_a_cut_is_not_passed_through_a_source_gate(db: Database) -> None:
    pipeline(db)
    create(db, QUERY, "report", watermark_gating="hold_back", require_watermark=True)
    db.execute("SELECT pgtrickle.gate_source('orders')")
    assert decide(db, "report")["decision"] == "waiting"
    assert "is gated by" in decide(db, "report")["reason"]


def test_gating_is_part_of_the_callers_transaction(dag: Database) -> None:
    loader = dag.connect(autocommit=False)
    loader.execute("SELECT pgtrickle.gate_source('orders')")
    assert decide(dag, "summary")["decision"] == "run"
    loader.rollback()
    assert dag.execute("SELECT * FROM pgtrickle.source_gates() WHERE gated") == []
    loader.execute("SELECT pgtrickle.gate_source('orders')")
    loader.commit()
    assert decide(dag, "summary")["decision"] == "gated"


def test_gating_twice_keeps_who_and_when_and_ungating_twice_does_no_harm(dag: Database) -> None:
    seen = "SELECT gated_at, gated_by, reason FROM pgtrickle.source_gates() WHERE gated"
    dag.execute("SELECT pgtrickle.gate_source('orders', 'first')")
    ((gated_at, gated_by, reason),) = dag.execute(seen)
    dag.execute("SELECT pgtrickle.gate_source('orders')")
    assert dag.execute(seen) == [(gated_at, gated_by, "first")]
    dag.execute("SELECT pgtrickle.gate_source('orders', 'second')")
    assert dag.execute(seen) == [(gated_at, gated_by, "second")]
    for _ in range(2):
        dag.execute("SELECT pgtrickle.ungate_source('orders')")
        assert dag.execute(seen) == []
    dag.execute("SELECT pgtrickle.gate_source('orders')")
    ((again, _, reason),) = dag.execute(seen)
    assert again > gated_at and reason is None


def test_only_ungating_wakes_the_refresher(dag: Database) -> None:
    listener = dag.connect()
    listener.execute("LISTEN pgtrickle_watermark")
    dag.execute("SELECT pgtrickle.gate_source('orders')")
    dag.execute("SELECT pgtrickle.ungate_source('orders')")
    dag.execute("SELECT pgtrickle.ungate_source('orders')")
    payloads = [json.loads(notice.payload) for notice in listener.notifies(timeout=1, stop_after=2)]
    assert payloads == [{"source": "public.orders", "ungated": True}]


def test_source_gates_lists_what_each_holds(dag: Database) -> None:
    dag.execute("CREATE TABLE unread (id integer)")
    for source in ("orders", "unread"):
        dag.execute("SELECT pgtrickle.gate_source(%s, 'why')", source)
    rows = dag.execute("SELECT source, gated_by, reason, stream_tables FROM pgtrickle.source_gates() WHERE gated")
    assert rows == [
        ("public.orders", "postgres", "why", ["public.report", "public.summary"]),
        ("public.unread", "postgres", "why", []),
    ]


@pytest.mark.parametrize("call", ["gate_source", "ungate_source", "mark_idle"])
@pytest.mark.parametrize(
    ("argument", "sqlstate"),
    [("NULL", "22004"), ("12345::regclass", "42P01"), ("'summary'", "42809"), ("'pg_stat_activity'", "42809")],
)
def test_bad_sources_are_refused_and_change_nothing(dag: Database, call: str, argument: str, sqlstate: str) -> None:
    before = catalog_state(dag)
    with refused(sqlstate):
        dag.execute(f"SELECT pgtrickle.{call}({argument})")
    assert catalog_state(dag) == before and dag.execute("SELECT * FROM pgtrickle.pgt_source_gates") == []


def test_a_loader_needs_insert_on_the_source_and_nothing_else(dag: Database) -> None:
    dag.create_role("loader")
    dag.create_role("stranger")
    dag.execute("GRANT INSERT ON orders TO loader")
    advance(dag, orders="12:00")
    session = dag.connect()
    for call in ("gate_source", "ungate_source", "mark_idle"):
        session.execute("SET SESSION AUTHORIZATION stranger")
        with refused("42501", "GRANT INSERT ON public.orders TO stranger.", "insufficient_privilege"):
            session.execute(f"SELECT pgtrickle.{call}('orders')")
        session.execute("SET SESSION AUTHORIZATION loader")
        session.execute(f"SELECT pgtrickle.{call}('orders')")
    assert dag.value("SELECT gated_by FROM pgtrickle.pgt_source_gates") == "loader"
    assert dag.value("SELECT marked_idle_by FROM pgtrickle.pgt_watermarks") == "loader"
    for forbidden in ("set_source_limits('orders', '1 hour')", "raise_alerts()", "alert('x', 'x', true, 'x')"):
        with refused_quietly():
            session.execute(f"SELECT pgtrickle.{forbidden}")


def refused_quietly() -> pytest.RaisesExc:
    import psycopg

    return pytest.raises(psycopg.errors.InsufficientPrivilege)


def test_bootstrap_status_shows_what_a_new_warehouse_waits_for(dag: Database) -> None:
    dag.execute("CREATE TABLE unread (id integer)")
    dag.execute("SELECT pgtrickle.gate_source('unread')")
    dag.execute("SELECT pgtrickle.gate_source('lines', 'load')")
    advance(dag, orders="12:00")
    query = (
        "SELECT source, gated, watermark, stream_table, filled, decision, waits_for FROM pgtrickle.bootstrap_status()"
    )
    noon = datetime.fromisoformat("2026-03-01T12:00Z")
    rows = dag.execute(query)
    waits = rows[0][-1]
    assert waits.startswith("public.lines is gated by postgres") and ": load" in waits
    assert rows == [
        ("public.lines", True, None, "public.report", False, "gated", waits),
        ("public.orders", False, noon, "public.report", False, "gated", waits),
        ("public.orders", False, noon, "public.summary", False, "run", "the next tick"),
        ("public.rates", False, None, "public.alone", False, "run", "the next tick"),
        ("public.unread", True, None, None, None, None, None),
    ]
    dag.execute("SELECT pgtrickle.ungate_source('lines')")
    dag.execute("UPDATE pgtrickle.pgt_stream_tables SET frontier_version = 1 WHERE pgt_name = 'alone'")
    found = {(row[0], row[3]): row[4:] for row in dag.execute(query)}
    assert found["public.lines", "public.report"] == (False, "run", "public.summary to be filled")
    assert found["public.rates", "public.alone"] == (True, "run", None)
    assert dag.value("SELECT ungated_at > gated_at FROM pgtrickle.bootstrap_status() WHERE source = 'public.lines'")


def test_a_gate_goes_with_its_table(dag: Database) -> None:
    dag.execute("CREATE TABLE gone (id integer)")
    dag.execute("SELECT pgtrickle.gate_source('gone'), pgtrickle.set_source_limits('gone', '1 hour')")
    dag.execute("DROP TABLE gone")
    assert dag.value("SELECT pgtrickle.trim_history('30 days')") == 0
    assert dag.execute("SELECT * FROM pgtrickle.source_gates()") == []
    assert dag.execute("SELECT * FROM pgtrickle.pgt_source_limits") == []
