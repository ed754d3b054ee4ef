"""Stale and idle sources: limits on the silence of loaders, and what follows from it."""

import pytest

from tests.conftest import Database
from tests.sql.checks import catalog_state, create, decide, refused
from tests.sql.loaders import QUERY, advance, age, pipeline

STATUS = (
    "SELECT aligned, reason, to_char(agreed_watermark AT TIME ZONE 'UTC', 'HH24:MI'), idle "
    "FROM pgtrickle.watermark_status()"
)


def members(db: Database, **conditions: bool) -> None:
    """Check which sources are idle."""
    found = dict(
        db.execute(
            "SELECT m.source::text, m.idle FROM pgtrickle.pgt_watermark_groups AS g, "
            "pgtrickle_private.group_members(g.group_id) AS m"
        )
    )
    assert {name: found[name] for name in conditions} == conditions


@pytest.mark.parametrize("mode", ["auto", "gate", "hold_back", "none"])
def test_a_stale_source_holds_or_only_warns(db: Database, mode: str) -> None:
    pipeline(db, stale_after="1 hour")
    create(db, QUERY, "report", watermark_gating=mode)
    advance(db, orders="12:00", lines="12:00")
    age(db, "lines", "61 minutes")
    assert decide(db, "report")["decision"] == "run"
    db.execute("SELECT pgtrickle.alter_watermark_group('pipeline', on_stale => 'hold')")
    held = decide(db, "report")
    assert held["decision"] == ("run" if mode == "none" else "gated")
    if mode != "none":
        assert held["reason"].startswith("pipeline: public.lines is stale: not seen since 20")
        assert "limit 1 h" in held["reason"]
        assert held["waiting_for"] == "public.lines"
    advance(db, lines="12:00")
    assert decide(db, "report")["decision"] == "run", "an equal advance is a sign of life"


def test_the_reason_does_not_change_with_every_tick(db: Database) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold")
    create(db, QUERY, "report")
    advance(db, orders="12:00", lines="12:00")
    age(db, "lines", "61 minutes")
    db.execute("SELECT pgtrickle.gate_source('orders')")
    assert decide(db, "report") == decide(db, "report")


def test_the_limit_is_on_the_last_call_and_not_on_the_age_of_the_watermark(db: Database) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold")
    create(db, QUERY, "report")
    db.execute(
        "SELECT pgtrickle.advance_watermark('orders', '2001-01-01'), pgtrickle.advance_watermark('lines', '2001-01-01')"
    )
    assert decide(db, "report")["decision"] == "run"


def test_a_sources_own_limit_wins_over_its_groups(db: Database) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold")
    create(db, QUERY, "report")
    create(db, "SELECT id FROM lines", "alone")
    advance(db, orders="12:00", lines="12:00")
    age(db, "lines", "2 hours")
    assert (decide(db, "report")["decision"], decide(db, "alone")["decision"]) == ("gated", "run")
    db.execute("SELECT pgtrickle.set_source_limits('lines', '3 hours', 'hold')")
    assert decide(db, "report")["decision"] == "run"
    age(db, "lines", "2 hours")
    assert (decide(db, "report")["decision"], decide(db, "alone")["decision"]) == ("gated", "gated")
    assert decide(db, "alone")["reason"].startswith("public.lines is stale: not seen since")
    db.execute("SELECT pgtrickle.set_source_limits('lines', '3 hours', 'warn')")
    assert decide(db, "report")["decision"] == "run"
    db.execute("SELECT pgtrickle.set_source_limits('lines', NULL)")
    assert decide(db, "report")["decision"] == "gated", "back to the limit of the group"


def test_who_never_advanced_is_exhausted_gated_or_marked_is_not_stale(db: Database) -> None:
    pipeline(db, stale_after="1 hour")
    stale = "SELECT source::text FROM pgtrickle_private.stale_sources()"
    advance(db, orders="infinity")
    age(db, "orders", "2 hours")
    assert db.execute(stale) == []
    advance(db, lines="12:00")
    age(db, "lines", "2 hours")
    assert db.execute(stale) == [("lines",)]
    db.execute("SELECT pgtrickle.gate_source('lines')")
    assert db.execute(stale) == []
    db.execute("SELECT pgtrickle.ungate_source('lines')")
    assert db.execute(stale) == [], "the time under the gate was spent waiting for nobody"
    db.execute("UPDATE pgtrickle.pgt_source_gates SET ungated_at = ungated_at - interval '2 hours'")
    assert db.execute(stale) == [("lines",)]
    db.execute("SELECT pgtrickle.mark_idle('lines')")
    assert db.execute(stale) == []


@pytest.mark.parametrize("how", ["by timeout", "by its own timeout", "by mark"])
def test_an_idle_source_is_left_out_of_the_alignment(db: Database, how: str) -> None:
    pipeline(db, **({"idle_after": "1 hour"} if how == "by timeout" else {}))
    create(db, QUERY, "report")
    advance(db, orders="12:00", lines="12:00")
    advance(db, orders="12:30")
    assert decide(db, "report")["decision"] == "gated"
    if how == "by mark":
        db.execute("SELECT pgtrickle.mark_idle('lines')")
    else:
        if how == "by its own timeout":
            db.execute("SELECT pgtrickle.set_source_limits('lines', NULL, idle_after => '1 hour')")
        age(db, "lines", "59 minutes")
        members(db, orders=False, lines=False)
        age(db, "lines", "2 minutes")
    members(db, orders=False, lines=True)
    decision = decide(db, "report")
    assert (decision["decision"], decision["effective_watermark"]) == ("run", "12:00"), "nobody asserted 12:30 of lines"
    assert decision["reason"] == "pipeline: aligned at 2026-03-01 12:30:00+00, without public.lines (idle)"
    ((aligned, reason, agreed, idle),) = db.execute(STATUS)
    assert (aligned, agreed, idle) == (True, "12:00", ["public.lines"])
    assert reason.endswith("without public.lines (idle)")
    advance(db, lines="12:10")
    members(db, lines=False)
    assert decide(db, "report")["decision"] == "gated"


def test_an_equal_advance_ends_idleness(db: Database) -> None:
    pipeline(db)
    advance(db, orders="12:00", lines="12:00")
    db.execute("SELECT pgtrickle.mark_idle('lines')")
    members(db, lines=True)
    advance(db, lines="12:00")
    members(db, lines=False)


def test_a_source_under_a_gate_is_held_and_not_idle(db: Database) -> None:
    pipeline(db, idle_after="1 hour")
    advance(db, orders="12:00", lines="12:00")
    age(db, "lines", "3 hours")
    db.execute("SELECT pgtrickle.gate_source('lines')")
    members(db, lines=False)
    db.execute("SELECT pgtrickle.ungate_source('lines')")
    members(db, lines=False)
    db.execute("UPDATE pgtrickle.pgt_source_gates SET ungated_at = ungated_at - interval '61 minutes'")
    members(db, lines=True)


def test_an_exhausted_source_and_one_that_never_advanced_are_not_idle(db: Database) -> None:
    pipeline(db, idle_after="1 hour")
    create(db, QUERY, "report")
    advance(db, orders="infinity")
    age(db, "orders", "3 hours")
    members(db, orders=False, lines=False)
    assert decide(db, "report")["reason"] == "pipeline: public.lines never advanced"
    with refused("55000", "Advance its watermark first."):
        db.execute("SELECT pgtrickle.mark_idle('lines')")


def test_a_group_of_idle_sources_is_aligned_at_the_newest_and_claims_the_oldest(db: Database) -> None:
    pipeline(db)
    create(db, QUERY, "report")
    create(db, QUERY, "held", watermark_gating="hold_back")
    advance(db, orders="12:30", lines="12:00")
    for source in ("orders", "lines"):
        db.execute("SELECT pgtrickle.mark_idle(%s)", source)
    gate, held = decide(db, "report"), decide(db, "held")
    assert (gate["decision"], gate["effective_watermark"]) == ("run", "12:00")
    assert "aligned at 2026-03-01 12:30:00+00" in gate["reason"]
    assert (held["decision"], held["effective_watermark"]) == ("run", "12:00")
    assert held["caps"] == {"orders": "12:30", "lines": "12:00"}


def test_idle_in_one_group_and_not_in_another(db: Database) -> None:
    pipeline(db, idle_after="1 hour")
    db.execute("SELECT pgtrickle.create_watermark_group('patient', ARRAY['orders', 'lines'], idle_after => '1 day')")
    create(db, QUERY, "report")
    advance(db, orders="12:30", lines="12:00")
    age(db, "lines", "2 hours")
    decision = decide(db, "report")
    assert decision["decision"] == "gated"
    assert "patient: public.lines is 30 min behind" in decision["reason"]
    assert "pipeline: aligned at" in decision["reason"]


def test_a_source_idle_by_silence_holds_nothing_any_more(db: Database) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold", idle_after="3 hours")
    create(db, QUERY, "report")
    advance(db, orders="12:00", lines="12:00")
    age(db, "lines", "2 hours")
    assert decide(db, "report")["decision"] == "gated"
    age(db, "lines", "2 hours")
    assert decide(db, "report")["decision"] == "run"
    assert db.execute("SELECT source::text, holds FROM pgtrickle_private.stale_sources()") == [("lines", False)]


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("set_source_limits('orders', '0')", "22023"),
        ("set_source_limits('orders', '-1 hour')", "22023"),
        ("set_source_limits('orders', '1 hour', 'stop')", "22023"),
        ("set_source_limits('orders', '1 hour', NULL)", "22004"),
        ("set_source_limits('orders', '1 hour', idle_after => '0')", "22023"),
        ("set_source_limits('orders', '1 hour', 'hold', '1 hour')", "22023"),
        ("set_source_limits(NULL, '1 hour')", "22004"),
        ("set_source_limits('report', '1 hour')", "42809"),
        ("create_watermark_group('g', ARRAY['orders'], stale_after => '0')", "22023"),
        ("create_watermark_group('g', ARRAY['orders'], on_stale => 'hope')", "22023"),
        ("create_watermark_group('g', ARRAY['orders'], on_stale => NULL)", "22004"),
        ("create_watermark_group('g', ARRAY['orders'], idle_after => '-1 day')", "22023"),
        ("alter_watermark_group('pipeline', stale_after => '0')", "22023"),
        ("alter_watermark_group('pipeline', idle_after => '30 minutes')", "22023"),
        ("alter_watermark_group('pipeline', reset => ARRAY['name'])", "22023"),
        ("alter_watermark_group('pipeline', reset => ARRAY[NULL])", "22004"),
    ],
)
def test_bad_limits_are_refused_and_change_nothing(db: Database, call: str, sqlstate: str) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold")
    create(db, QUERY, "report")
    db.execute("SELECT pgtrickle.set_source_limits('orders', '2 hours')")
    before = catalog_state(db), db.execute("SELECT * FROM pgtrickle.pgt_source_limits")
    with refused(sqlstate):
        db.execute(f"SELECT pgtrickle.{call}")
    assert (catalog_state(db), db.execute("SELECT * FROM pgtrickle.pgt_source_limits")) == before


def test_limits_of_a_group_can_be_changed_and_reset_one_by_one(db: Database) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold", idle_after="2 hours")
    shown = (
        "SELECT tolerance::text, stale_after::text, on_stale, idle_after::text, cardinality(sources) "
        "FROM pgtrickle.watermark_groups()"
    )
    assert db.execute(shown) == [("00:00:00", "01:00:00", "hold", "02:00:00", 2)]
    db.execute("SELECT pgtrickle.alter_watermark_group('pipeline', tolerance => '1 minute', idle_after => '4 hours')")
    assert db.execute(shown) == [("00:01:00", "01:00:00", "hold", "04:00:00", 2)]
    db.execute(
        "SELECT pgtrickle.alter_watermark_group('pipeline', reset => ARRAY['stale_after', 'on_stale', 'tolerance'])"
    )
    assert db.execute(shown) == [("00:00:00", None, "warn", "04:00:00", 2)]


def test_limits_are_shown_to_everybody_the_sources_own_first(db: Database) -> None:
    pipeline(db, stale_after="1 hour", on_stale="hold")
    db.execute("SELECT pgtrickle.create_watermark_group('without', ARRAY['orders'])")
    shown = "SELECT group_name, stale_after::text, on_stale, idle_after::text FROM pgtrickle.source_limits('orders')"
    of_group = ("pipeline", "01:00:00", "hold", None)
    assert db.execute(shown) == [of_group]
    db.execute("SELECT pgtrickle.set_source_limits('orders', NULL, idle_after => '2 days')")
    assert db.execute(shown) == [(None, None, "warn", "2 days"), of_group]
    db.create_role("stranger")
    with db.connect(user="stranger") as stranger:
        assert stranger.execute(shown).fetchall() == [(None, None, "warn", "2 days"), of_group]
    with refused("42P01", "Did you mean orders?"):
        db.execute("SELECT * FROM pgtrickle.source_limits('order')")
