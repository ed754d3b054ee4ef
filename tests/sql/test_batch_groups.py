"""Groups whose watermarks count batches: tolerances, the ends of the numbers, and groups of both kinds side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.conftest import Database
from tests.sql.batches import LATEST, NOON, advance
from tests.sql.checks import catalog_state, create, decide, pretend_refresh, refused
from tests.waiting import wait_until_blocked


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("create_watermark_group('h', ARRAY['b'], '1 second', batch_tolerance => 1)", "22023"),
        ("create_watermark_group('h', ARRAY['b'], batch_tolerance => -1)", "22023"),
        ("alter_watermark_group('batches', tolerance => '1 second')", "22023"),
        ("alter_watermark_group('batches', tolerance => '0')", "22023"),
        ("alter_watermark_group('batches', batch_tolerance => -1)", "22023"),
        ("alter_watermark_group('batches', reset => '{tolerance}')", "22023"),
        ("alter_watermark_group('times', batch_tolerance => 1)", "22023"),
        ("alter_watermark_group('times', reset => '{batch_tolerance}')", "22023"),
        ("create_stream_table('s', 'SELECT id FROM a', batch_tolerance => -1)", "22023"),
    ],
)
def test_a_tolerance_is_of_the_kind_of_its_group(sources: Database, call: str, sqlstate: str) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('times', ARRAY['a'])")
    sources.execute("SELECT pgtrickle.create_watermark_group('batches', ARRAY['c'], batch_tolerance => 4)")
    state = catalog_state(sources)
    with refused(sqlstate):
        sources.execute(f"SELECT pgtrickle.{call}")
    assert catalog_state(sources) == state


def test_a_tolerance_in_batches_can_be_altered_and_reset(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a'], batch_tolerance => 4)")
    rows = "SELECT tolerance, batch_tolerance FROM pgtrickle.watermark_groups()"
    assert sources.execute(rows) == [(None, 4)]
    sources.execute("SELECT pgtrickle.alter_watermark_group('g', batch_tolerance => %s)", LATEST)
    assert sources.execute(rows) == [(None, LATEST)]
    sources.execute("SELECT pgtrickle.alter_watermark_group('g', reset => '{batch_tolerance}')")
    assert sources.execute(rows) == [(None, 0)]


@pytest.mark.parametrize(
    ("low", "high", "tolerance", "aligned"),
    [
        (-(2**63), LATEST - 1, 0, False),
        (-(2**63), LATEST - 1, LATEST, False),
        (-1, LATEST - 1, LATEST, True),
        (-2, LATEST - 1, LATEST, False),
        (LATEST - 2, LATEST - 1, LATEST, True),
        (-(2**63), LATEST, 0, True),
        (LATEST, LATEST, 0, True),
    ],
)
@pytest.mark.parametrize("gating", ["gate", "hold_back"])
def test_the_ends_of_the_numbers_are_as_good_as_any(
    sources: Database, low: int, high: int, tolerance: int, aligned: bool, gating: str
) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], batch_tolerance => %s)", tolerance)
    create(sources, "SELECT a.id FROM a JOIN b USING (id)", watermark_gating=gating)
    advance(sources, a=low, b=high)
    finite = low < LATEST and high < LATEST
    assert sources.execute("SELECT aligned, batch_lag, agreed_batch FROM pgtrickle.watermark_status()") == [
        (aligned, high - low if finite else 0 if low < LATEST else None, low if aligned else None)
    ]
    apart = {"gate": "gated", "hold_back": "waiting"}
    assert decide(sources, "s")["decision"] == ("run" if aligned else apart[gating])


GROUP = "SELECT pgtrickle.create_watermark_group('g', ARRAY['a', 'b'], batch_tolerance => %s)"
ADVANCE = "SELECT pgtrickle.advance_watermark('a', %s)"
ADVANCE_BATCH = "SELECT pgtrickle.advance_batch('a', %s)"


@pytest.mark.parametrize("order", [1, -1], ids=["group first", "watermark first"])
@pytest.mark.parametrize(("mark", "tolerance"), [(NOON, 0), (7, None)], ids=["a batch group", "a time group"])
def test_a_group_and_a_first_watermark_wait_for_each_other(
    sources: Database, order: int, mark: Any, tolerance: Any
) -> None:
    """Neither sees the other before it commits, so the second one must not look before."""
    one, other = [(GROUP, tolerance), (ADVANCE if mark == NOON else ADVANCE_BATCH, mark)][::order]
    first, second = sources.connect(autocommit=False), sources.connect(autocommit=False)
    first.execute(one[0], one[1:])
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(second.execute, other[0], other[1:])
        wait_until_blocked(sources, "pgtrickle.", lambda: not answer.done())
        first.commit()
        with refused("42804"):
            answer.result(timeout=60)


def test_a_group_that_an_older_snapshot_missed_counts_its_source_as_never_advanced(sources: Database) -> None:
    create(sources, "SELECT a.id FROM a JOIN b USING (id)", require_watermark=True)
    loader = sources.connect(autocommit=False)
    loader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    loader.execute("SELECT count(*) FROM a")
    sources.execute(GROUP, 0)
    loader.execute(ADVANCE, (NOON,))
    loader.commit()
    advance(sources, b=7)
    for gating in ("gate", "hold_back"):
        sources.execute("SELECT pgtrickle.alter_stream_table('s', watermark_gating => %s)", gating)
        found = decide(sources, "s")
        assert (found["decision"], found["waiting_for"]) == ("waiting", "public.a"), gating
    (status,) = sources.execute("SELECT aligned, waiting_for, agreed_batch FROM pgtrickle.watermark_status()")
    assert status == (False, "public.a", None)
    with refused("42804", message="is in the watermark group 'g'"):
        advance(sources, a=NOON)


def test_an_agreement_that_lies_behind_is_none(sources: Database) -> None:
    sources.execute(GROUP, 4)
    create(sources, "SELECT a.id FROM a JOIN b USING (id)", watermark_gating="hold_back")
    for batches in ({"a": 1, "b": 1}, {"a": 10, "b": 6}):
        advance(sources, **batches)
        pretend_refresh(sources, "s")
    assert decide(sources, "s")["reason"] == "g: agrees at batch 6"
    sources.execute("SELECT pgtrickle.alter_watermark_group('g', batch_tolerance => 0)")
    assert decide(sources, "s")["reason"] == "g: there is no batch at which its sources agree, waiting for public.b"
    assert sources.value("SELECT effective_batch FROM pgtrickle.gating_decision(1)") == 6


def test_each_kind_of_group_is_satisfied_on_its_own(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('times', ARRAY['a'], '0')")
    sources.execute(GROUP.replace("'a', 'b'", "'b', 'c'").replace("'g'", "'batches'"), 0)
    create(sources, "SELECT a.id FROM a JOIN b USING (id) JOIN c USING (id)", watermark_gating="gate")
    effective = "SELECT d.effective_watermark, d.effective_batch FROM pgtrickle.gating_decision(1) AS d"
    advance(sources, a=NOON)
    assert sources.execute(effective) == [(NOON, None)]
    advance(sources, b=7, c=6)
    assert decide(sources, "s")["reason"] == (
        "batches: public.c is 1 batch behind public.b, tolerance 0 batches; times: aligned at 2026-01-01 12:00:00+00"
    )
    sources.execute("SELECT pgtrickle.alter_stream_table('s', watermark_tolerance => '1 hour', batch_tolerance => 1)")
    assert decide(sources, "s")["decision"] == "run"
    assert sources.execute(effective) == [(NOON, 6)]
    sources.execute("SELECT pgtrickle.alter_stream_table('s', reset => '{batch_tolerance}')")
    assert decide(sources, "s")["decision"] == "gated"


def test_windows_close_only_once_every_group_vouches_for_something(sources: Database) -> None:
    sources.execute("SELECT pgtrickle.create_watermark_group('timed', ARRAY['a'])")
    sources.execute("SELECT pgtrickle.create_watermark_group('counted', ARRAY['b'], batch_tolerance => 0)")
    query = "SELECT timestamptz '2026-01-01 12:00Z' AS ends, a.id FROM a JOIN b USING (id)"
    create(sources, query, "emitted", output_mode="append", window_end="ends", watermark_gating="gate")
    create(sources, query, "updated", watermark_gating="gate")
    advance(sources, a=NOON)
    assert decide(sources, "updated")["effective_watermark"] == "12:00", "a batch number says nothing of event times"
    assert decide(sources, "emitted")["effective_watermark"] is None
    advance(sources, b=1)
    assert decide(sources, "emitted")["effective_watermark"] == "12:00"
