"""Most tables of most ticks are passed over without a decision: never one about which anything would be decided."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any, cast

import pytest

from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import Goal
from pytrickle.schedule.record import Record
from pytrickle.schedule.units import Unit
from pytrickle.schedule.verdict import Go, decide, is_still
from tests.unit.test_schedule_verdict import BASE, CUT, GATED, HELD_BACK, RUN, SEEN, table

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
CONCERNED: list[dict[str, Any]] = [
    *({name: "something"} for name in ("halted", "last_skip_reason", "last_error", "window_end")),
    *({name: True} for name in ("timed", "time_dependent")),
    {"gated_since": MOMENT},
    {"reinitialize_reason": "asked"},
    {"exists": False},
    {"frontier_version": 0},
    *({"decision": decision} for decision in (GATED, HELD_BACK)),
    *({"decision": replace(RUN, **{name: value})} for name, value in {
        "decision": "waiting", "effective_watermark": MOMENT, "effective_batch": 1, "let_through": '{"1": 2}'
    }.items()),
]  # fmt: skip


@pytest.mark.parametrize("changes", CONCERNED, ids=str)
def test_a_table_that_something_concerns_is_decided_about(changes: dict[str, Any]) -> None:
    assert is_still(table(1, BASE))
    assert not is_still(table(1, BASE, **changes))


def test_a_table_without_a_change_buffer_is_decided_about() -> None:
    (source,) = table(1, BASE).dependencies
    assert not is_still(table(1, BASE, dependencies=(replace(source, buffer=None),)))


@pytest.mark.parametrize("upstream", [BASE, 1])
def test_what_is_passed_over_would_be_found_up_to_date(upstream: int) -> None:
    reader, passed_over = table(2, upstream), 0
    for empty, written, current, stalled, unloaded in product((True, False), repeat=5):
        seen = replace(SEEN, empty=frozenset({f"b{upstream}"} if empty else ()))
        seen = replace(seen, unloaded=frozenset({upstream} if unloaded else ()))
        record = Record()
        if current:
            record.note_done(upstream, None, reached=True)
        if written:
            record.note_done(upstream, "77", reached=False)
        if stalled:
            record.note_stalled(upstream, "t0")
        so_far = record.so_far(Unit((reader,)))
        # What a pass stalls, or has not loaded, reaches no cut.
        possible = upstream == BASE or not (current and (stalled or (unloaded and not written)))
        if possible and record.note_still(reader, seen.empty):
            passed_over += 1
            if upstream != BASE or not stalled:
                assert decide(Unit((reader,)), {}, True, seen, so_far) == Go(frozenset({2}), quiet=True, later=False)
            assert record.standing() == (so_far.current | {2}, so_far.current | {2})
    assert 0 < passed_over < 2**5


def test_nothing_would_be_written_about_it() -> None:
    unconnected = cast(Any, object.__new__(Refresher))
    result = Refresher.mark_up_to_date(unconnected, table(1, BASE), Goal({1: CUT}, MOMENT, "SCHEDULER", 0.0))
    assert (result.action, result.reason, result.rows_inserted) == ("NO_DATA", "no changes", 0)
    with pytest.raises(AttributeError):
        Refresher.mark_up_to_date(unconnected, table(1, BASE, timed=True), Goal({}, MOMENT, "SCHEDULER", 0.0))
