"""Gating as a user of the client sees it: who runs, who waits, and why."""

from __future__ import annotations

from datetime import timedelta

import pytest

import pytrickle
from pytrickle.errors import InvalidArgument
from tests.acceptance.conftest import JOIN, ORDERS, Shop, clock, misalign, status


def test_each_mode_does_what_it_says_when_the_group_is_misaligned(pipeline: Shop) -> None:
    outer = "SELECT o.id, l.line FROM orders o LEFT JOIN order_lines l ON l.order_id = o.id"
    for mode in ("auto", "none", "gate", "hold_back"):
        pipeline.pt.create_stream_table(f"by_{mode}", outer, watermark_gating=mode)
    misalign(pipeline)
    results = pipeline.tick()
    assert {name: result.action for name, result in results.items()} == {
        "by_auto": "SKIP",
        "by_none": "DIFFERENTIAL",
        "by_gate": "SKIP",
        "by_hold_back": "NO_DATA",
    }
    assert pipeline.rows("by_none") == {(1, 1), (2, None)}
    for name in ("by_auto", "by_gate", "by_hold_back"):
        assert pipeline.rows(name) == {(1, 1)}
    reason = "pipeline: public.order_lines is 5 min behind public.orders, tolerance 0 s"
    assert results["by_gate"].reason == reason == status(pipeline, "by_gate").reason
    assert status(pipeline, "by_auto").watermark_gating == "gate"
    assert [clock(status(pipeline, f"by_{mode}").effective_watermark) for mode in ("none", "gate", "hold_back")] == [
        None,
        "12:00",
        "12:00",
    ]
    pipeline.load("order_lines", "12:05", (2, 1, 2))
    pipeline.tick()
    for mode in ("auto", "none", "gate", "hold_back"):
        assert pipeline.rows(f"by_{mode}") == {(1, 1), (2, 1)}
    assert clock(status(pipeline, "by_gate").effective_watermark) == "12:05"
    pipeline.assert_verified()


def test_auto_does_not_gate_a_table_over_one_source_of_the_group(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("alone", ORDERS)
    pipeline.pt.create_stream_table("gated_alone", ORDERS, watermark_gating="gate")
    misalign(pipeline)
    results = pipeline.tick()
    assert (results["alone"].action, results["gated_alone"].action) == ("DIFFERENTIAL", "SKIP")
    assert status(pipeline, "alone").watermark_gating == "none"


def test_manual_refresh_passes_a_gate_unless_asked_to_respect_it(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate")
    misalign(pipeline)
    pipeline.db.execute("INSERT INTO order_lines VALUES (2, 1, 2)")
    refused = pipeline.pt.refresh("report", respect_gate=True)
    assert (refused.action, refused.rows_inserted) == ("SKIP", 0)
    assert pipeline.rows("report") == {(1, 1, 1)}
    passed = pipeline.pt.refresh("report")
    assert (passed.action, passed.rows_inserted) == ("DIFFERENTIAL", 1)
    assert pipeline.rows("report") == {(1, 1, 1), (2, 1, 2)}
    assert clock(status(pipeline, "report").effective_watermark) == "12:00"


@pytest.mark.parametrize("respect_gate", [True, False])
def test_manual_refresh_never_passes_a_cap(pipeline: Shop, respect_gate: bool) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="hold_back", require_watermark=True)
    assert pipeline.pt.refresh("report", respect_gate=respect_gate).action == "SKIP"
    misalign(pipeline)
    pipeline.db.execute("INSERT INTO order_lines VALUES (2, 1, 2)")
    assert pipeline.pt.refresh("report", respect_gate=respect_gate).action == "NO_DATA"
    assert pipeline.rows("report") == {(1, 1, 1)}


def test_every_group_must_be_satisfied_and_each_is_named(pipeline: Shop) -> None:
    pipeline.pt.create_watermark_group("people", ["orders", "customers"], tolerance=timedelta(minutes=10))
    query = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = customer JOIN order_lines ON order_id = o.id"
    pipeline.pt.create_stream_table("gated", query, watermark_gating="gate")
    pipeline.pt.create_stream_table("held", query, watermark_gating="hold_back")
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.load("order_lines", "12:00", (1, 1, 1))
    pipeline.load("customers", "11:45", (3, "'Cy'"))  # type: ignore[arg-type]
    results = pipeline.tick()
    people, pipeline_reason = results["gated"].reason.split("; ")
    assert people == "people: public.customers is 15 min behind public.orders, tolerance 10 min"
    assert pipeline_reason == "pipeline: aligned at 2026-01-01 12:00:00+00"
    pipeline.load("customers", "11:55")
    results = pipeline.tick()
    assert (results["gated"].action, clock(results["gated"].effective_watermark)) == ("FULL", "11:55")
    assert (results["held"].action, clock(results["held"].effective_watermark)) == ("FULL", "11:55")
    assert pipeline.rows("gated") == pipeline.rows("held") == {(1, "Ada")}


def test_source_in_two_groups_is_read_at_the_lower_of_its_cuts(pipeline: Shop) -> None:
    pipeline.pt.create_watermark_group("people", ["orders", "customers"])
    query = "SELECT o.id, c.id AS customer, l.line FROM orders o CROSS JOIN customers c CROSS JOIN order_lines l"
    pipeline.pt.create_stream_table("held", query, watermark_gating="hold_back", require_watermark=True)
    pipeline.db.execute("DELETE FROM customers WHERE id = 2")
    for clock_reading, order in (("12:00", 1), ("12:05", 2), ("12:10", 3)):
        pipeline.load("orders", clock_reading, (order, 1, 10))
    for clock_reading, line in (("12:00", 1), ("12:05", 2), ("12:10", 3)):
        pipeline.load("order_lines", clock_reading, (1, line, 1))
    pipeline.load("customers", "12:00")
    pipeline.load("customers", "12:05")
    result = pipeline.tick()["held"]
    assert clock(result.effective_watermark) == "12:05"
    assert pipeline.rows("held") == {(order, 1, line) for order in (1, 2) for line in (1, 2, 3)}
    pipeline.assert_verified()


def test_tolerance_counts_the_edge_as_agreement_and_a_change_acts_at_the_next_tick(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("gated", ORDERS, watermark_gating="gate")
    pipeline.pt.create_stream_table("held", ORDERS, watermark_gating="hold_back")
    misalign(pipeline)
    results = pipeline.tick()
    assert (results["gated"].action, results["held"].action) == ("SKIP", "NO_DATA")
    pipeline.pt.alter_watermark_group("pipeline", tolerance=timedelta(minutes=4, seconds=59))
    assert pipeline.tick()["gated"].action == "SKIP"
    pipeline.pt.alter_watermark_group("pipeline", tolerance=timedelta(minutes=5))
    results = pipeline.tick()
    assert (results["gated"].action, results["held"].action) == ("DIFFERENTIAL", "DIFFERENTIAL")
    assert pipeline.rows("gated") == pipeline.rows("held") == {(1, 10), (2, 20)}
    assert clock(status(pipeline, "held").effective_watermark) == "12:00"
    pipeline.pt.alter_watermark_group("pipeline", tolerance=timedelta(0))
    pipeline.load("orders", "12:07", (3, 1, 30))
    results = pipeline.tick()
    assert (results["gated"].action, results["held"].action) == ("SKIP", "NO_DATA")
    assert pipeline.rows("held") == {(1, 10), (2, 20)}
    pipeline.assert_verified()


def test_exhausted_source_agrees_with_every_other(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("gated", JOIN, watermark_gating="gate")
    pipeline.pt.create_stream_table("held", JOIN, watermark_gating="hold_back", require_watermark=True)
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.load("order_lines", "infinity", (1, 1, 1), (2, 1, 2))
    results = pipeline.tick()
    assert {result.action for result in results.values()} == {"FULL"}
    pipeline.load("orders", "12:05", (2, 1, 20))
    results = pipeline.tick()
    assert {clock(result.effective_watermark) for result in results.values()} == {"12:05"}
    assert pipeline.rows("gated") == pipeline.rows("held") == {(1, 1, 1), (2, 1, 2)}
    pipeline.load("orders", "infinity", (3, 2, 30))
    pipeline.db.execute("INSERT INTO order_lines VALUES (3, 1, 3)")
    results = pipeline.tick()
    assert {result.effective_watermark.year for result in results.values() if result.effective_watermark} == {9999}
    assert pipeline.rows("gated") == {(1, 1, 1), (2, 1, 2), (3, 1, 3)}
    assert pipeline.rows("held") == {(1, 1, 1), (2, 1, 2)}


@pytest.mark.parametrize("mode", ["gate", "hold_back"])
def test_require_watermark_waits_for_a_source_that_never_advanced(pipeline: Shop, mode: str) -> None:
    pipeline.pt.create_stream_table("eager", JOIN, watermark_gating=mode)
    pipeline.pt.create_stream_table("patient", JOIN, watermark_gating=mode, require_watermark=True)
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.db.execute("INSERT INTO order_lines VALUES (1, 1, 1)")
    results = pipeline.tick()
    assert (results["eager"].action, results["patient"].action) == ("FULL", "SKIP")
    reason = "pipeline: public.order_lines never advanced"
    assert results["patient"].reason == reason == status(pipeline, "eager").reason
    assert results["eager"].effective_watermark is None
    assert pipeline.pt.refresh("patient").action == "SKIP"
    assert pipeline.rows("patient") == set()
    pipeline.load("order_lines", "12:05")
    pipeline.load("orders", "12:05")
    results = pipeline.tick()
    assert results["patient"].action == "FULL"
    assert pipeline.rows("patient") == pipeline.rows("eager") == {(1, 1, 1)}


def test_effective_watermark_never_moves_back(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("gated", ORDERS, watermark_gating="gate")
    pipeline.pt.create_stream_table("held", ORDERS, watermark_gating="hold_back", require_watermark=True)
    pipeline.load("orders", "12:30", (1, 1, 10))
    pipeline.load("order_lines", "12:30")
    seen: dict[str, list[str | None]] = {"gated": [], "held": []}

    def observe() -> None:
        results = pipeline.tick()
        for name, found in seen.items():
            assert clock(results[name].effective_watermark) == clock(status(pipeline, name).effective_watermark)
            found.append(clock(status(pipeline, name).effective_watermark))
        pipeline.assert_verified()

    observe()
    pipeline.pt.create_watermark_group("people", ["orders", "customers"], "1 hour")
    pipeline.load("customers", "11:45")
    pipeline.load("orders", "12:40", (2, 1, 20))
    observe()
    pipeline.load("order_lines", "12:40")
    observe()
    pipeline.pt.alter_watermark_group("pipeline", sources=["orders"])
    pipeline.load("customers", "12:45")
    pipeline.load("orders", "12:45", (3, 1, 30))
    observe()
    assert seen == {name: ["12:30", "12:30", "12:30", "12:45"] for name in seen}
    assert pipeline.rows("gated") == pipeline.rows("held") == {(1, 10), (2, 20), (3, 30)}


def test_hold_back_over_a_table_that_shows_more_is_refused(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("base", ORDERS, watermark_gating="none")
    with pytest.raises(InvalidArgument) as refused:
        pipeline.pt.create_stream_table("top", "SELECT id FROM base", watermark_gating="hold_back")
    assert refused.value.hint == "Set watermark_gating => 'hold_back' on public.base too."
    pipeline.pt.create_stream_table("top", "SELECT id FROM base")
    with pytest.raises(InvalidArgument):
        pipeline.pt.alter_stream_table("top", watermark_gating="hold_back")
    pipeline.pt.alter_stream_table("base", watermark_gating="hold_back")
    pipeline.pt.alter_stream_table("top", watermark_gating="hold_back")
    with pytest.raises(InvalidArgument):
        pipeline.pt.alter_stream_table("base", watermark_gating="gate")
    assert {row.stream_table: row.watermark_gating for row in pipeline.pt.stream_tables()} == {
        "public.base": "hold_back",
        "public.top": "hold_back",
    }


def test_change_of_mode_keeps_what_is_shown_until_a_cut_covers_it(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", ORDERS, watermark_gating="none")
    misalign(pipeline)
    pipeline.db.execute("INSERT INTO orders VALUES (3, 1, 30)")
    pipeline.tick()
    assert pipeline.rows("report") == {(1, 10), (2, 20), (3, 30)}
    pipeline.pt.alter_stream_table("report", watermark_gating="hold_back")
    pipeline.load("order_lines", "12:05")
    pipeline.tick()
    assert pipeline.rows("report") == {(1, 10), (2, 20), (3, 30)}
    waits = "stays where it is until a watermark of public.orders covers what it shows"
    assert waits in status(pipeline, "report").reason
    pipeline.db.execute("DELETE FROM orders WHERE id = 3")
    pipeline.tick()
    assert pipeline.rows("report") == {(1, 10), (2, 20), (3, 30)}
    pipeline.load("orders", "12:10")
    pipeline.load("order_lines", "12:10")
    pipeline.tick()
    assert pipeline.rows("report") == {(1, 10), (2, 20)}
    pipeline.assert_verified()


def test_equal_advance_is_a_sign_of_life_and_changes_no_cut(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("held", ORDERS, watermark_gating="hold_back", require_watermark=True)
    pipeline.pt.alter_watermark_group("pipeline", sources=["orders"])
    pipeline.load("orders", "12:00", (1, 1, 10))
    (first,) = pipeline.pt.watermarks()
    pipeline.load("orders", "12:00", (2, 1, 20))
    (second,) = pipeline.pt.watermarks()
    assert (second.advanced_at, second.lsn) == (first.advanced_at, first.lsn)
    assert second.last_seen_at > first.last_seen_at
    pipeline.tick()
    assert pipeline.rows("held") == {(1, 10)}


def test_status_and_results_agree_with_the_one_decision(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate")
    misalign(pipeline)
    result = pipeline.tick()["report"]
    (group,) = pipeline.pt.watermark_status()
    assert (group.aligned, group.waiting_for, group.lag) == (False, "public.order_lines", timedelta(minutes=5))
    assert clock(group.effective_watermark) == "12:00"
    found = status(pipeline, "report")
    assert (found.decision, found.reason) == ("gated", result.reason)
    assert result.reason in str(pipeline.pt.explain("report"))
    assert isinstance(result, pytrickle.RefreshResult)
