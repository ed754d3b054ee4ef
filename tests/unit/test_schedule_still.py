"""Most tables of most ticks stand still, and are passed over without a decision: never one that has something to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from pytrickle.errors import LockTimeout
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import Goal
from pytrickle.schedule.standstill import Standstill
from pytrickle.schedule.units import Unit
from pytrickle.schedule.verdict import NOTHING_YET, Go, decide, is_still
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


@pytest.mark.parametrize("empty", [True, False])
def test_what_stands_still_would_be_found_up_to_date(empty: bool) -> None:
    reader = Unit((table(2, BASE),))
    seen = replace(SEEN, empty=frozenset({f"b{BASE}"} if empty else ()))
    still = Standstill().find([reader], seen)
    assert list(still) == ([2] if empty else [])
    if empty:
        assert decide(reader, {}, True, seen, NOTHING_YET) == Go(frozenset({2}), quiet=True, later=False)
        assert (still[2].stream_table, still[2].action, still[2].reason) == ("t2", "NO_DATA", "no changes")


def test_who_reads_a_table_that_moves_or_is_left_out_does_not_stand_still() -> None:
    upper, reader, further = (Unit((table(*numbers),)) for numbers in ((1, BASE), (2, 1), (3, 2)))
    buffers = frozenset({f"b{BASE}", "b1", "b2"})
    seen = replace(SEEN, empty=buffers)
    assert list(Standstill().find([upper, reader, further], seen)) == [1, 2, 3]
    assert list(Standstill().find([reader, further], seen)) == []
    # What changes the table in the middle is not taken in yet, whatever its own sources say.
    assert list(Standstill().find([upper, reader, further], replace(SEEN, empty=buffers - {"b1"}))) == [1]
    broken = replace(seen, broken={2: LockTimeout("It is locked.")})
    assert list(Standstill().find([upper, reader, further], broken)) == [1]


def test_tables_tied_together_do_not_stand_still() -> None:
    together = Unit((table(1, BASE), table(2, 1)))
    circular = Unit((table(1, BASE),), cycles=(frozenset({1}),))
    seen = replace(SEEN, empty=frozenset({f"b{BASE}", "b1"}))
    assert not Standstill().find([together], seen)
    assert not Standstill().find([circular], seen)


def test_a_table_that_was_altered_is_looked_into_anew() -> None:
    seen, standstill = replace(SEEN, empty=frozenset({f"b{BASE}"})), Standstill()
    same = table(1, BASE)
    first = standstill.find([Unit((same,))], seen)
    assert standstill.find([Unit((same,))], seen)[1] is first[1]
    assert not standstill.find([Unit((replace(same, timed=True),))], seen)
    assert standstill.find([Unit((replace(same, name="renamed"),))], seen)[1].stream_table == "renamed"
    standstill.find([], seen)
    assert not standstill.known


def test_nothing_would_be_written_about_it() -> None:
    unconnected = cast(Any, object.__new__(Refresher))
    result = Refresher.mark_up_to_date(unconnected, table(1, BASE), Goal({1: CUT}, MOMENT, "SCHEDULER", 0.0))
    assert (result.action, result.reason, result.rows_inserted) == ("NO_DATA", "no changes", 0)
    with pytest.raises(AttributeError):
        Refresher.mark_up_to_date(unconnected, table(1, BASE, timed=True), Goal({}, MOMENT, "SCHEDULER", 0.0))
