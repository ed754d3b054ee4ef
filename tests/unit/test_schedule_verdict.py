"""What becomes of a unit is decided from values alone: what the catalog said, and what the pass did so far."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from threading import Thread
from typing import Any

import pytest

from pytrickle.catalog.gating import Decision
from pytrickle.catalog.stream_table import Dependency, StreamTable
from pytrickle.cut import Cut
from pytrickle.errors import InsufficientPrivilege
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.record import Record
from pytrickle.schedule.units import Unit
from pytrickle.schedule.verdict import END_OF_TRANSACTION, Fail, Go, Seen, Skip, SoFar, Verdict, decide, parts, targets

BASE = 1_000
CUT = Cut("10:20:", None, None, None)
RUN = Decision("none", "run", "", None, None, {})
GATED = Decision("gate", "gated", "public.orders is behind", "public.orders", None, {})
HELD_BACK = Decision("hold_back", "run", "", None, None, {})
SEEN = Seen(CUT, datetime(2026, 1, 1, tzinfo=UTC), frozenset(), frozenset(), {})
NOTHING = SoFar({}, frozenset(), {})


def table(number: int, *sources: int, **changes: Any) -> StreamTable:
    """A loaded stream table whose number is its relid too; sources from 1000 on are base tables."""
    kinds = [(relid, "TABLE" if relid >= BASE else "STREAM_TABLE") for relid in sources]
    fields = dict.fromkeys(StreamTable.__slots__)
    fields |= {"pgt_id": number, "relid": number, "name": f"t{number}", "exists": True, "frontier_version": 1}
    fields |= {"decision": RUN, "dependencies": tuple(Dependency(r, f"t{r}", kind, None, f"b{r}") for r, kind in kinds)}
    return StreamTable(**(fields | changes))  # type: ignore[arg-type]


def decided(*tables: StreamTable, seen: Seen = SEEN, so_far: SoFar = NOTHING, respect_gate: bool = True) -> Verdict:
    return decide(Unit(tables), {}, respect_gate, seen, so_far)


def test_a_table_goes_and_reaches_the_cut() -> None:
    assert decided(table(1, BASE)) == Go(frozenset({1}), quiet=False, later=False)


def test_a_table_without_changes_is_quiet_until_its_source_is_written() -> None:
    seen = replace(SEEN, empty=frozenset({"b1"}))
    so_far = replace(NOTHING, current=frozenset({1}))
    assert decided(table(2, 1), seen=seen, so_far=so_far) == Go(frozenset({2}), quiet=True, later=False)
    so_far = replace(so_far, written={1: "77"})
    assert decided(table(2, 1), seen=seen, so_far=so_far) == Go(frozenset({2}), quiet=False, later=True)


def test_a_gate_holds_only_those_who_respect_it() -> None:
    gated = table(1, BASE, decision=GATED)
    assert decided(gated) == Skip(gated, "public.orders is behind")
    assert isinstance(decided(gated, respect_gate=False), Go)


def test_one_member_that_is_kept_back_keeps_all_back() -> None:
    gated, other = table(1, BASE, decision=GATED), table(2, 1)
    skip = decided(gated, other)
    assert isinstance(skip, Skip)
    assert skip.reason_for(gated) == "public.orders is behind"
    assert skip.reason_for(other) == "it is refreshed together with t1: public.orders is behind"


def test_a_failure_stalls_its_readers_under_its_own_name() -> None:
    reader = table(2, 1)
    so_far = replace(NOTHING, stalled={1: "t0"})
    assert decided(reader, so_far=so_far) == Skip(reader, "t0 failed in this tick", "t0")


def test_what_reads_an_unloaded_table_waits_until_this_pass_loads_it() -> None:
    reader, seen = table(2, 1), replace(SEEN, unloaded=frozenset({1}))
    assert decided(reader, seen=seen) == Skip(reader, "t1 has not been loaded yet")
    assert isinstance(decided(reader, seen=seen, so_far=replace(NOTHING, written={1: "77"})), Go)


def test_a_table_that_holds_back_never_passes_one_that_was_not_refreshed() -> None:
    reader = table(2, 1, decision=HELD_BACK)
    assert decided(reader) == Skip(reader, "t1 was not refreshed in this tick, so it may stand at another watermark")
    assert decided(table(2, 1)) == Go(frozenset(), quiet=False, later=False)


def test_a_broken_member_fails_its_unit() -> None:
    error = InsufficientPrivilege("It may not be read.")
    first, second = table(1, BASE), table(2, 1)
    assert decided(first, second, seen=replace(SEEN, broken={2: error})) == Fail(second, error)


def test_a_paused_member_keeps_its_unit_back_unless_one_was_asked_for() -> None:
    first, second = table(1, BASE), table(2, 1, halted="paused")
    unit = Unit((first, second))
    assert decide(unit, {}, True, SEEN, NOTHING) == Skip(second, "t2 is paused")
    assert isinstance(decide(unit, {1: "REQUEST"}, True, SEEN, NOTHING), Go)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [({}, [(1, 2)]), ({"frontier_version": 0}, [(1,), (2,)]), ({"frontier_version": 0, "halted": "paused"}, [(1,)])],
)
def test_units_are_committed_whole_but_loaded_one_by_one(
    changes: dict[str, Any], expected: list[tuple[int, ...]]
) -> None:
    unit = Unit((table(1, BASE), table(2, 1, **changes)))
    found = parts(unit, {}, SEEN, NOTHING)
    assert [tuple(table.relid for table in part.tables) for part in found] == expected


def test_a_quiet_unit_needs_no_common_transaction() -> None:
    unit = Unit((table(1, BASE), table(2, 1)))
    seen = replace(SEEN, empty=frozenset({f"b{BASE}", "b1"}))
    assert len(parts(unit, {}, seen, NOTHING)) == 2


def test_sources_are_read_at_the_pass_but_for_what_the_pass_wrote() -> None:
    reader = table(3, BASE, 1, 2, decision=replace(RUN, caps={2: CUT}))
    so_far = replace(NOTHING, written={1: "77", 2: "78"})
    assert targets(reader, False, {}, SEEN, so_far) == {BASE: None, 1: None, 2: CUT}
    assert targets(reader, True, {}, SEEN, so_far) == {
        BASE: CUT,
        1: replace(CUT, xid="77", pos=END_OF_TRANSACTION),
        2: CUT,
    }
    within = targets(reader, False, {1: "99"}, SEEN, NOTHING)
    assert within == {BASE: CUT, 1: replace(CUT, xid="99", pos=END_OF_TRANSACTION), 2: CUT}


def test_lanes_that_record_at_the_same_time_lose_nothing() -> None:
    record = Record()

    def work(first: int) -> None:
        for relid in range(first, first + 500):
            record.note_done(relid, str(relid), reached=True)
            record.note_result(relid, RefreshResult(f"t{relid}", "FULL", "", 0, 0, None, SEEN.moment - SEEN.moment))
            assert record.so_far(Unit((table(relid, relid - 1),))).written.keys() >= {relid}

    threads = [Thread(target=work, args=(1_000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    current, refreshed = record.standing()
    assert len(record.written) == len(current) == len(refreshed) == len(record.results) == 2_000
