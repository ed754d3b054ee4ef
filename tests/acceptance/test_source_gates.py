"""Bulk loads under a source gate, deadlines, tolerances of single tables and idle sources, through real ticks."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.acceptance.conftest import JOIN, ORDERS, Shop, clock, misalign, status

OUTER = "SELECT o.id, l.line FROM orders o LEFT JOIN order_lines l ON l.order_id = o.id"
GATED_SINCE = "SELECT gated_since FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s"


def wait(shop: Shop, name: str, minutes: int) -> None:
    """Let a stream table have been behind its gate for longer."""
    shop.db.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET gated_since = gated_since - make_interval(mins => %s) "
        "WHERE pgt_name = %s",
        *(minutes, name),
    )


def skips(shop: Shop, name: str) -> list[str | None]:
    return [row.reason for row in shop.pt.history(name) if row.action == "SKIP"]


def test_a_bulk_load_under_a_gate_is_seen_when_it_is_whole(pipeline: Shop) -> None:
    for mode in ("none", "gate", "hold_back"):
        pipeline.pt.create_stream_table(f"by_{mode}", OUTER, watermark_gating=mode)
    pipeline.pt.create_stream_table("above", "SELECT count(*) AS n FROM by_none")
    pipeline.pt.create_stream_table("people", "SELECT name FROM customers")
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.load("order_lines", "12:00", (1, 1, 1))
    pipeline.tick()
    pipeline.pt.gate_source("orders", "reload of 2025")
    for order in (2, 3):
        pipeline.db.execute("INSERT INTO orders VALUES (%s, 1, 10)", order)
        pipeline.db.execute("INSERT INTO customers VALUES (%s, 'x')", order + 10)
        results = pipeline.tick()
        assert {name: result.action for name, result in results.items()} == {
            **dict.fromkeys(("by_none", "by_gate", "by_hold_back", "above"), "SKIP"),
            "people": "DIFFERENTIAL",
        }
        assert all("reload of 2025" in results[name].reason for name in ("by_none", "above"))
    assert pipeline.rows("by_none") == pipeline.rows("by_gate") == pipeline.rows("by_hold_back") == {(1, 1)}
    assert len(skips(pipeline, "by_none")) == 1
    (gate,) = pipeline.pt.status().gates
    assert (gate.source, gate.reason, len(gate.stream_tables)) == ("public.orders", "reload of 2025", 4)
    assert pipeline.pt.refresh("by_none", respect_gate=True).action == "SKIP"
    assert pipeline.pt.refresh("by_none").action == "DIFFERENTIAL", "by hand it is passed, as a gate is"
    assert pipeline.pt.refresh("by_hold_back").action == "NO_DATA", "and a cap is not"
    pipeline.load("orders", "12:05", (4, 1, 10))
    pipeline.load("order_lines", "12:05")
    pipeline.pt.ungate_source("orders")
    pipeline.tick()
    loaded = {(1, 1), (2, None), (3, None), (4, None)}
    assert pipeline.rows("by_none") == pipeline.rows("by_gate") == pipeline.rows("by_hold_back") == loaded
    assert pipeline.rows("above") == {(4,)}
    assert clock(status(pipeline, "by_hold_back").effective_watermark) == "12:05"
    pipeline.assert_verified()


def test_an_empty_warehouse_is_filled_when_its_gates_open(pipeline: Shop) -> None:
    pipeline.pt.gate_source("orders")
    pipeline.pt.create_stream_table("report", JOIN)
    assert pipeline.tick()["report"].action == "SKIP"
    assert {row.filled for row in pipeline.pt.bootstrap_gate_status() if row.stream_table} == {False}
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.load("order_lines", "12:00", (1, 1, 1))
    pipeline.pt.ungate_source("orders")
    assert pipeline.tick()["report"].action == "FULL"
    rows = pipeline.pt.bootstrap_gate_status()
    assert {(row.filled, row.waits_for) for row in rows if row.stream_table} == {(True, None)}


def test_after_its_deadline_a_gated_table_refreshes_and_says_so(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", ORDERS, watermark_gating="gate", gate_deadline="1 hour")
    misalign(pipeline)
    assert pipeline.db.value(GATED_SINCE, "report") is None
    assert pipeline.tick()["report"].action == "SKIP"
    since = pipeline.db.value(GATED_SINCE, "report")
    assert since is not None
    assert pipeline.tick()["report"].action == "SKIP"
    assert pipeline.db.value(GATED_SINCE, "report") == since and len(skips(pipeline, "report")) == 1
    wait(pipeline, "report", 60)
    why = "pipeline: public.order_lines is 5 min behind public.orders, tolerance 0 s"
    assert status(pipeline, "report").decision == "run"
    result = pipeline.tick()["report"]
    assert result.action == "DIFFERENTIAL"
    assert result.reason.startswith(f"gate deadline of 01:00:00 passed: {why}; ")
    assert pipeline.pt.history("report", 1)[0].reason == result.reason
    assert pipeline.rows("report") == {(1, 10), (2, 20)}
    assert clock(result.effective_watermark) == "12:00", "it claims no more than all sources assert"
    (alert,) = pipeline.pt.status().alerts
    assert (alert.kind, alert.subject) == ("gate_deadline", "public.report") and why in alert.sentence
    assert pipeline.db.value(GATED_SINCE, "report") is None
    assert pipeline.tick()["report"].action == "SKIP", "the next deadline begins"
    wait(pipeline, "report", 60)
    nothing = pipeline.tick()["report"]
    assert (nothing.action, "gate deadline" in nothing.reason) == ("NO_DATA", True)
    pipeline.load("order_lines", "12:05", (2, 1, 1))
    pipeline.tick()
    assert pipeline.tick()["report"].action == "NO_DATA"
    assert pipeline.db.value(GATED_SINCE, "report") is None
    assert pipeline.pt.status().alerts == ()


def test_the_deadline_counts_no_time_under_a_source_gate(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", ORDERS, watermark_gating="gate", gate_deadline="1 hour")
    misalign(pipeline)
    pipeline.pt.gate_source("orders")
    pipeline.tick()
    wait(pipeline, "report", 120)
    assert pipeline.tick()["report"].action == "SKIP", "a source gate is passed by no deadline"
    pipeline.pt.ungate_source("orders")
    assert pipeline.tick()["report"].action == "SKIP"
    pipeline.db.execute("UPDATE pgtrickle.pgt_source_gates SET ungated_at = ungated_at - interval '1 hour'")
    assert pipeline.tick()["report"].action == "DIFFERENTIAL"


def test_a_deadline_passes_no_wait_and_no_cap(pipeline: Shop) -> None:
    deadline = {"gate_deadline": "1 hour", "require_watermark": True}
    pipeline.pt.create_stream_table("waits", JOIN, watermark_gating="gate", **deadline)  # type: ignore[arg-type]
    pipeline.pt.create_stream_table("held", ORDERS, watermark_gating="hold_back", **deadline)  # type: ignore[arg-type]
    pipeline.tick()
    pipeline.db.execute("UPDATE pgtrickle.pgt_stream_tables SET gated_since = now() - interval '2 hours'")
    assert {result.action for result in pipeline.tick().values()} == {"SKIP"}
    misalign(pipeline)
    pipeline.db.execute("UPDATE pgtrickle.pgt_stream_tables SET gated_since = now() - interval '2 hours'")
    pipeline.tick()
    assert pipeline.rows("held") == {(1, 10)}


def test_a_table_may_have_a_tolerance_of_its_own(pipeline: Shop) -> None:
    pipeline.pt.alter_watermark_group("pipeline", tolerance=timedelta(minutes=2))
    for mode in ("gate", "hold_back"):
        pipeline.pt.create_stream_table(f"lax_{mode}", OUTER, watermark_gating=mode, watermark_tolerance="5 minutes")
        pipeline.pt.create_stream_table(f"group_{mode}", OUTER, watermark_gating=mode)
        pipeline.pt.create_stream_table(f"exact_{mode}", OUTER, watermark_gating=mode, watermark_tolerance="0")
    misalign(pipeline)
    pipeline.tick()

    def shown(mode: str) -> dict[str, int]:
        return {name: len(pipeline.rows(f"{name}_{mode}")) for name in ("lax", "group", "exact")}

    for mode in ("gate", "hold_back"):
        assert shown(mode) == {"lax": 2, "group": 1, "exact": 1}
    assert clock(status(pipeline, "lax_hold_back").effective_watermark) == "12:00"
    pipeline.load("order_lines", "12:03", (2, 1, 1))
    pipeline.tick()
    for mode in ("gate", "hold_back"):
        assert shown(mode) == {"lax": 2, "group": 2, "exact": 1}
    assert "tolerance 0 s" in str(status(pipeline, "exact_gate").reason)
    pipeline.assert_verified()


def test_a_chain_that_holds_back_waits_until_its_tolerances_are_the_same(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("base", ORDERS, watermark_gating="hold_back")
    pipeline.pt.create_stream_table(
        "top", "SELECT b.id FROM base b JOIN order_lines ON order_id = b.id", watermark_gating="hold_back"
    )
    misalign(pipeline)
    pipeline.pt.alter_stream_table("top", watermark_tolerance="5 minutes")
    result = pipeline.tick()["top"]
    assert result.action == "SKIP"
    assert result.reason == (
        "pipeline: reads public.base, which holds back within 0 s instead of 5 min: "
        "give both the same watermark_tolerance"
    )
    pipeline.pt.alter_stream_table("base", watermark_tolerance="5 minutes")
    assert {result.action for result in pipeline.tick().values()} <= {"DIFFERENTIAL", "NO_DATA"}
    assert pipeline.rows("base") == {(1, 10), (2, 20)}
    pipeline.assert_verified()


@pytest.mark.parametrize("depth", ["direct", "through others"])
def test_an_idle_source_does_not_hold_back_the_others_and_wakes_up_behind(pipeline: Shop, depth: str) -> None:
    query = OUTER
    if depth == "through others":
        pipeline.pt.create_stream_table("some_orders", "SELECT id FROM orders", watermark_gating="hold_back")
        pipeline.pt.create_stream_table(
            "some_lines", "SELECT order_id, line FROM order_lines", watermark_gating="hold_back"
        )
        query = "SELECT o.id, l.line FROM some_orders o LEFT JOIN some_lines l ON l.order_id = o.id"
    pipeline.pt.create_stream_table("held", query, watermark_gating="hold_back", require_watermark=True)
    misalign(pipeline)
    pipeline.db.execute("INSERT INTO order_lines VALUES (2, 1, 1)")  # nobody asserted it

    def held() -> tuple[int, str | None]:
        pipeline.tick()
        pipeline.assert_verified()
        return len(pipeline.rows("held")), clock(status(pipeline, "held").effective_watermark)

    assert (held(), pipeline.rows("held")) == ((1, "12:00"), {(1, 1)})
    pipeline.pt.mark_idle("order_lines")
    assert (held(), pipeline.rows("held")) == ((2, "12:00"), {(1, 1), (2, None)})
    pipeline.load("orders", "12:30", (3, 1, 30))
    assert (held(), pipeline.rows("held")) == ((3, "12:00"), {(1, 1), (2, None), (3, None)})
    shown = pipeline.rows("held")
    pipeline.load("order_lines", "12:10", (3, 1, 1))
    assert (held(), pipeline.rows("held")) == ((3, "12:00"), shown), "it woke up behind the others"
    pipeline.load("order_lines", "12:30", (3, 2, 1))
    assert held() == (4, "12:30")
    assert pipeline.rows("held") == {(1, 1), (2, 1), (3, 1), (3, 2)}


def test_a_source_that_wakes_up_at_an_earlier_agreement_moves_nothing_back(pipeline: Shop) -> None:
    for name, source in (("some_orders", "orders"), ("some_lines", "order_lines")):
        pipeline.pt.create_stream_table(name, f"SELECT * FROM {source}", watermark_gating="hold_back")
    both = "SELECT o.id, l.line FROM some_orders o LEFT JOIN some_lines l ON l.order_id = o.id"
    pipeline.pt.create_stream_table("top", both, watermark_gating="hold_back")
    pipeline.pt.create_stream_table("held", OUTER, watermark_gating="hold_back")
    misalign(pipeline)
    pipeline.load("orders", "12:30", (3, 1, 30))
    pipeline.pt.mark_idle("order_lines")
    pipeline.tick()
    assert pipeline.rows("held") == pipeline.rows("top") == {(1, 1), (2, None), (3, None)}
    pipeline.load("order_lines", "12:05", (2, 1, 1), (3, 1, 1))  # orders stood at 12:05, too
    results = pipeline.tick()
    assert pipeline.rows("held") == pipeline.rows("top") == {(1, 1), (2, None), (3, None)}
    for name in ("held", "top"):
        assert results[name].rows_inserted == results[name].rows_deleted == 0
        assert clock(status(pipeline, name).effective_watermark) == "12:00"
    pipeline.load("order_lines", "12:30")
    pipeline.tick()
    assert pipeline.rows("held") == pipeline.rows("top") == {(1, 1), (2, 1), (3, 1)}
    assert {clock(status(pipeline, name).effective_watermark) for name in ("held", "top")} == {"12:30"}
    pipeline.assert_verified()


def test_an_idle_source_that_is_ahead_is_read_no_further_than_the_others(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("held", OUTER, watermark_gating="hold_back", require_watermark=True)
    pipeline.load("order_lines", "12:00", (1, 1, 1))
    pipeline.load("order_lines", "12:30", (1, 2, 1))
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.pt.mark_idle("order_lines")
    pipeline.tick()
    assert pipeline.rows("held") == {(1, 1)}
    pipeline.load("orders", "12:10")
    pipeline.tick()
    assert pipeline.rows("held") == {(1, 1)}
    pipeline.load("orders", "12:30")
    pipeline.tick()
    assert pipeline.rows("held") == {(1, 1), (1, 2)}


def test_a_gate_opens_without_the_idle_source_and_claims_only_what_it_asserted(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("gated", OUTER, watermark_gating="gate")
    pipeline.pt.alter_watermark_group("pipeline", idle_after="1 hour")
    misalign(pipeline)
    assert pipeline.tick()["gated"].action == "SKIP"
    pipeline.db.execute(
        "UPDATE pgtrickle.pgt_watermarks SET last_seen_at = last_seen_at - interval '2 hours' "
        "WHERE source_relid = 'order_lines'::regclass"
    )
    result = pipeline.tick()["gated"]
    assert (result.action, clock(result.effective_watermark)) == ("DIFFERENTIAL", "12:00")
    assert [alert.kind for alert in pipeline.pt.alerts()] == ["idle"]
    pipeline.load("order_lines", "12:02")
    assert pipeline.tick()["gated"].action == "SKIP", "it is awake and behind"


def test_a_gate_over_a_table_that_holds_back_claims_no_more_than_that(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("held", ORDERS, watermark_gating="hold_back", require_watermark=True)
    pipeline.pt.create_stream_table(
        "top", "SELECT h.id FROM held h", watermark_gating="gate", watermark_tolerance="1 hour"
    )
    misalign(pipeline)
    pipeline.load("order_lines", "12:02")
    pipeline.tick()
    assert pipeline.rows("top") == {(1,)}
    assert clock(status(pipeline, "top").effective_watermark) == "12:00", "held is at 12:00, whatever the loaders say"
