"""The gating decision for gate and auto: which groups count, when a stream table waits, and why."""

import pytest

from tests.conftest import Database
from tests.sql.checks import create, decide, refused


@pytest.fixture
def dag(db: Database) -> Database:
    """The DAG of the design: a report over two summaries, each over one loaded table; one group over both tables."""
    for name in ("orders", "lines", "rates"):
        db.execute(f"CREATE TABLE {name} (id integer)")
    db.execute(
        "SELECT pgtrickle.create_stream_table('order_summary', 'SELECT id, count(*) AS n FROM orders GROUP BY id')"
    )
    db.execute(
        "SELECT pgtrickle.create_stream_table('line_summary', 'SELECT id, count(*) AS n FROM lines GROUP BY id')"
    )
    db.execute(
        "SELECT pgtrickle.create_stream_table('report', 'SELECT o.n AS a, l.n AS b FROM "
        "order_summary AS o JOIN line_summary AS l USING (id)')"
    )
    db.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'lines'])")
    return db


def advance(db: Database, **watermarks: str) -> None:
    for source, at in watermarks.items():
        db.execute(
            "SELECT pgtrickle.advance_watermark(%s, %s)", source, at if at == "infinity" else f"2026-03-01 {at}+00"
        )


def test_auto_gates_where_sources_of_a_group_meet_however_deep(dag: Database) -> None:
    advance(dag, orders="12:05", lines="11:55")
    assert decide(dag, "order_summary")["gating"] == "none"
    assert decide(dag, "report") == {
        "gating": "gate",
        "decision": "gated",
        "reason": "pipeline: public.lines is 10 min behind public.orders, tolerance 0 s",
        "waiting_for": "public.lines",
        "effective_watermark": "11:55",
        "caps": {},
    }
    advance(dag, lines="12:05")
    decision = decide(dag, "report")
    assert (decision["decision"], decision["effective_watermark"]) == ("run", "12:05")


def test_gate_counts_a_single_source(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.alter_stream_table('order_summary', watermark_gating => 'gate')")
    advance(dag, orders="12:05", lines="11:55")
    assert decide(dag, "order_summary")["decision"] == "gated"


def test_none_is_never_gated(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.alter_stream_table('report', watermark_gating => 'none')")
    advance(dag, orders="12:05", lines="11:55")
    assert decide(dag, "report")["decision"] == "run"
    assert decide(dag, "report")["reason"] == "not gated"


def test_without_a_group_nothing_is_gated(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.drop_watermark_group('pipeline')")
    dag.execute("SELECT pgtrickle.alter_stream_table('report', watermark_gating => 'gate')")
    assert decide(dag, "report")["decision"] == "run"
    assert decide(dag, "report")["reason"] == "no watermark group concerns it"


def test_a_source_that_never_advanced_does_not_gate_but_says_so(dag: Database) -> None:
    advance(dag, orders="12:05")
    decision = decide(dag, "report")
    assert (decision["decision"], decision["waiting_for"], decision["effective_watermark"]) == (
        "run",
        "public.lines",
        None,
    )
    assert decision["reason"] == "pipeline: public.lines never advanced"
    dag.execute("SELECT pgtrickle.alter_stream_table('report', require_watermark => true)")
    assert decide(dag, "report")["decision"] == "waiting"
    advance(dag, lines="12:05")
    assert decide(dag, "report")["decision"] == "run"


def test_the_tolerance_is_inclusive_and_acts_at_once(dag: Database) -> None:
    advance(dag, orders="12:05", lines="11:55")
    dag.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '9 minutes 59.999999 seconds')")
    assert decide(dag, "report")["decision"] == "gated"
    dag.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '10 minutes')")
    assert decide(dag, "report")["decision"] == "run"
    assert decide(dag, "report")["effective_watermark"] == "11:55"


def test_an_exhausted_source_agrees_with_all(dag: Database) -> None:
    advance(dag, orders="infinity", lines="11:55")
    assert decide(dag, "report")["decision"] == "run"
    assert decide(dag, "report")["effective_watermark"] == "11:55"


def test_a_member_the_table_does_not_read_counts_too(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.alter_watermark_group('pipeline', ARRAY['orders', 'lines', 'rates'])")
    advance(dag, orders="12:00", lines="12:00", rates="11:00")
    assert decide(dag, "report")["waiting_for"] == "public.rates"


def test_every_group_must_agree(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.create_stream_table('wide', 'SELECT o.id FROM orders AS o, lines AS l, rates AS r')")
    dag.execute("SELECT pgtrickle.create_watermark_group('pricing', ARRAY['orders', 'rates'], '1 hour')")
    advance(dag, orders="12:00", lines="12:00", rates="10:00")
    decision = decide(dag, "wide")
    assert (decision["decision"], decision["waiting_for"]) == ("gated", "public.rates")
    assert (
        "pipeline: aligned" in decision["reason"]
        and "pricing: public.rates is 2 h behind public.orders" in decision["reason"]
    )
    assert decision["effective_watermark"] == "10:00"
    assert decide(dag, "report")["decision"] == "run"


def test_the_decision_is_that_of_the_snapshot(dag: Database) -> None:
    advance(dag, orders="12:00", lines="12:00")
    reader = dag.connect(autocommit=False)
    reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    query = (
        "SELECT g.decision FROM pgtrickle.pgt_stream_tables AS t, "
        "pgtrickle.gating_decision(t.pgt_id) AS g WHERE pgt_name = 'report'"
    )
    assert reader.execute(query).fetchone() == ("run",)
    advance(dag, orders="12:05")
    assert reader.execute(query).fetchone() == ("run",)
    assert decide(dag, "report")["decision"] == "gated"


def test_status_agrees_with_the_decision(dag: Database) -> None:
    advance(dag, orders="12:05", lines="11:55")
    rows = dag.execute("SELECT stream_table, watermark_gating, decision FROM pgtrickle.pgt_status()")
    assert rows == [
        ("public.line_summary", "none", "run"),
        ("public.order_summary", "none", "run"),
        ("public.report", "gate", "gated"),
    ]


def test_an_unknown_stream_table_is_an_error_not_a_pass(dag: Database) -> None:
    with refused("42704"):
        dag.execute("SELECT * FROM pgtrickle.gating_decision(12345)")


def test_hold_back_over_a_table_that_shows_more_is_refused(dag: Database) -> None:
    with refused("55000", "Set watermark_gating => 'hold_back' on public.order_summary too.", "hold_back_upstream"):
        dag.execute("SELECT pgtrickle.alter_stream_table('report', watermark_gating => 'hold_back')")
    with refused("55000"):
        dag.execute(
            "SELECT pgtrickle.create_stream_table('r2', 'SELECT n FROM order_summary', watermark_gating => 'hold_back')"
        )
    for name in ("order_summary", "line_summary", "report"):
        dag.execute("SELECT pgtrickle.alter_stream_table(%s, watermark_gating => 'hold_back')", name)
    with refused("55000"):
        dag.execute("SELECT pgtrickle.alter_stream_table('line_summary', watermark_gating => 'gate')")
    assert decide(dag, "line_summary")["gating"] == "hold_back"


def test_a_new_group_may_not_undermine_a_table_that_holds_back(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.drop_watermark_group('pipeline')")
    dag.execute("SELECT pgtrickle.alter_stream_table('report', watermark_gating => 'hold_back')")
    with refused("55000"):
        dag.execute("SELECT pgtrickle.create_watermark_group('pipeline', ARRAY['orders', 'lines'])")
    assert dag.execute("SELECT * FROM pgtrickle.watermark_groups()") == []


@pytest.mark.parametrize(
    ("source", "query", "why"),
    [
        ("s", "SELECT id FROM ONLY s", "public.s is read without its children (ONLY)"),
        ("s", "SELECT tableoid AS part, id FROM s", "public.s is read by a system column"),
        ("noted", "SELECT id FROM noted", "public.noted is unlogged, a crash would empty it unnoticed"),
    ],
)
def test_what_is_read_as_a_whole_is_not_said_to_be_held_back(db: Database, source: str, query: str, why: str) -> None:
    db.execute("CREATE TABLE s (id int); CREATE TABLE child () INHERITS (s); CREATE UNLOGGED TABLE noted (id int)")
    group = f"SELECT pgtrickle.create_watermark_group('g', ARRAY['{source}'])"
    hint = f"Use watermark_gating => 'gate' or 'none' for public.st, or leave public.{source} out of watermark group"
    db.execute(group)
    with refused("55000", f"{hint} 'g'.", "hold_back_source", f"public.st cannot hold back: {why}"):
        create(db, query, "st", watermark_gating="hold_back")
    create(db, query, "st")
    with refused("55000"):
        db.execute("SELECT pgtrickle.alter_stream_table('st', watermark_gating => 'hold_back')")
    db.execute("SELECT pgtrickle.drop_watermark_group('g')")
    db.execute("SELECT pgtrickle.alter_stream_table('st', watermark_gating => 'hold_back')")
    with refused("55000"):
        db.execute(group)
    db.execute("CREATE TABLE o (id int); SELECT pgtrickle.create_watermark_group('g', ARRAY['o'])")
    with refused("55000"):
        db.execute("SELECT pgtrickle.alter_watermark_group('g', ARRAY['o', %s])", source)
    create(db, "SELECT id FROM o", "others", watermark_gating="hold_back")


def test_a_group_of_which_nothing_is_known_vouches_for_nothing(dag: Database) -> None:
    """One source alone gates until it is loaded, but holds nothing back."""
    dag.execute("SELECT pgtrickle.create_watermark_group('pricing', ARRAY['rates'])")
    for gating in ("gate", "hold_back"):
        query = "SELECT o.id FROM orders AS o, rates AS r"
        dag.execute("SELECT pgtrickle.create_stream_table(%s, %s, watermark_gating => %s)", gating, query, gating)
    advance(dag, orders="12:05", lines="12:05")
    for gating, expected in (("gate", "gated"), ("hold_back", "run")):
        decision = decide(dag, gating)
        assert (decision["decision"], decision["waiting_for"]) == (expected, "public.rates")
        assert decision["effective_watermark"] is None
    advance(dag, rates="12:00")
    assert decide(dag, "gate")["effective_watermark"] == "12:00"


def test_what_a_held_table_below_cannot_vouch_for_is_not_claimed_above(dag: Database) -> None:
    dag.execute("SELECT pgtrickle.create_watermark_group('pricing', ARRAY['rates'])")
    query = "SELECT o.id FROM orders AS o, rates AS r"
    dag.execute("SELECT pgtrickle.create_stream_table('held', %s, watermark_gating => 'hold_back')", query)
    dag.execute("SELECT pgtrickle.create_stream_table('over', 'SELECT h.id FROM held AS h, lines AS l')")
    advance(dag, orders="12:00", lines="12:05")
    dag.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '1 hour')")
    assert (decide(dag, "over")["gating"], decide(dag, "over")["effective_watermark"]) == ("gate", None)
    advance(dag, rates="11:50")
    assert decide(dag, "over")["effective_watermark"] == "11:50"
