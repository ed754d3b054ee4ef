"""What becomes of a unit in a pass: decided purely, from what the catalog said and from what the pass did so far."""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime

from pytrickle.catalog.gating import NOTHING_NEW, blocks
from pytrickle.catalog.stream_table import Dependency, StreamTable
from pytrickle.cut import Cut
from pytrickle.errors import PytrickleError
from pytrickle.progress import Progress
from pytrickle.refresh.atomic import in_blocks
from pytrickle.schedule.mending import Broken
from pytrickle.schedule.units import Unit, apart

END_OF_TRANSACTION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pass saw in its snapshot, which stands at `cut`, before it did anything.

    `unloaded` are the stream tables without a first load, `empty` names the change buffers that held nothing, and
    `broken` says what keeps a stream table from being refreshed at all.
    """

    cut: Cut
    moment: datetime
    unloaded: frozenset[int]
    empty: frozenset[str]
    broken: Broken


@dataclass(frozen=True, slots=True)
class SoFar:
    """What a pass did so far of a unit and its sources: `written` has the transaction in which one got new rows.

    `current` are the tables that reached the cut; `stalled` names the failure that keeps direct and further dependents
    from being refreshed.
    """

    written: Mapping[int, str]
    current: frozenset[int]
    stalled: Mapping[int, str]


NOTHING_YET = SoFar({}, frozenset(), {})


@dataclass(frozen=True, slots=True)
class Skip:
    """Nothing is done, because of one table; `culprit` names the one whose failure also stalls what reads this unit."""

    held: StreamTable
    reason: str
    culprit: str | None = None

    def reason_for(self, table: StreamTable) -> str:
        """Say why a table of the unit is skipped."""
        return self.reason if table is self.held else held(self.held, self.reason)


@dataclass(frozen=True, slots=True)
class Fail:
    """The unit fails before it is tried: one table is broken."""

    table: StreamTable
    error: PytrickleError


@dataclass(frozen=True, slots=True)
class Go:
    """The unit is refreshed, or only found up to date where it is `quiet`.

    `reached` are its tables that then stand where the sources do. It is read in a `later` snapshot where it reads what
    the pass wrote, rewound to the pass's own for everything else.
    """

    reached: frozenset[int]
    quiet: bool
    later: bool


Verdict = Skip | Fail | Go


def parts(unit: Unit, asked: Mapping[int, str], seen: Seen, so_far: SoFar) -> tuple[Unit, ...]:
    """Return what is committed together: the unit, or each of its tables alone, but for those that ticks leave alone.

    First loads show nothing inconsistent: they go one by one, so that Spark may stage what is large.
    """
    together = len(unit.tables) > 1 and all(table.populated for table in unit.tables)
    if unit.cycles or (together and not is_quiet(unit, seen, so_far)):
        return (unit,)
    left = [table for table in unit.tables if not table.halted or table.pgt_id in asked]
    return (unit,) if len(left) == len(unit.tables) == 1 else tuple(Unit((table,)) for table in left)


def decide(unit: Unit, asked: Mapping[int, str], respect_gate: bool, seen: Seen, so_far: SoFar) -> Verdict:
    """Decide about a unit; what keeps one member back keeps them all. What it reads must have been done before."""
    if hindrance := _hindrance(unit, asked, respect_gate, seen, so_far):
        return hindrance
    for table in unit.tables:
        if error := seen.broken.get(table.pgt_id):
            return Fail(table, error)
    members = {table.relid for table in unit.tables}
    read = {dependency.relid for table in unit.tables for dependency in table.dependencies} - members
    later = not read.isdisjoint(so_far.written)
    return Go(_reached(unit, so_far), is_quiet(unit, seen, so_far), later)


def is_still(table: StreamTable) -> bool:
    """Whether there is nothing to decide about a table and nothing to write while nothing changes that it reads."""
    decision = table.decision
    judged = decision.gating != "none" or decision.decision != "run" or decision.let_through != NOTHING_NEW
    reached = decision.effective_watermark is not None or decision.effective_batch is not None
    marked = table.last_skip_reason or table.last_error or table.gated_since or table.halted
    return not (judged or reached or marked or table.timed or table.window_end) and table.follows_its_buffers


def is_quiet(unit: Unit, seen: Seen, so_far: SoFar) -> bool:
    """Whether no source of a unit has a change, so that not even the changes need to be counted."""
    return all(_is_quiet(table, seen, so_far) for table in unit.tables)


def targets(
    table: StreamTable, later: bool, own: Mapping[int, str], seen: Seen, so_far: SoFar
) -> dict[int, Cut | None]:
    """Say how far to read each source; `own` are the members of its unit that its transaction already wrote."""
    return {d.relid: _target(table, d, later, own, (seen.cut, so_far)) for d in table.dependencies}


def is_left_behind(table: StreamTable, reached: Set[int]) -> bool:
    """Whether a table reads another one that was left behind, so that it is complete no further than that one."""
    return table.relid not in reached and table.decision.effective != Progress()


def held(culprit: StreamTable, reason: str) -> str:
    """Say that a table waits for another one of its unit."""
    return f"it is refreshed together with {culprit.name}: {reason}"


def _hindrance(unit: Unit, asked: Mapping[int, str], respect_gate: bool, seen: Seen, so_far: SoFar) -> Skip | None:
    if halted := unit.halted(asked):
        return Skip(halted, f"{halted.name} is {halted.halted}")
    members = frozenset(table.relid for table in unit.tables)
    found = (_obstacle(table, respect_gate, members, seen, so_far) for table in unit.tables)
    if obstacle := next(filter(None, found), None):
        return obstacle
    differing = apart(unit)
    return Skip(*differing) if differing else None


def _obstacle(
    table: StreamTable, respect_gate: bool, members: frozenset[int], seen: Seen, so_far: SoFar
) -> Skip | None:
    if blocks(table.decision, respect_gate):
        return Skip(table, table.decision.reason)
    for upstream in (d for d in table.dependencies if d.kind == "STREAM_TABLE" and d.relid not in members):
        if culprit := so_far.stalled.get(upstream.relid):
            return Skip(table, f"{culprit} failed in this tick", culprit)
        if upstream.relid in seen.unloaded and upstream.relid not in so_far.written:
            return Skip(table, f"{upstream.name} has not been loaded yet")
        if table.decision.gating == "hold_back" and upstream.relid not in so_far.current:
            return Skip(table, f"{upstream.name} was not refreshed in this tick, so it may stand at another watermark")
    return None


def _is_quiet(table: StreamTable, seen: Seen, so_far: SoFar) -> bool:
    return (table.follows_its_buffers and not table.may_close) and all(
        d.buffer in seen.empty and d.relid not in so_far.written for d in table.dependencies
    )


def _reached(unit: Unit, so_far: SoFar) -> frozenset[int]:
    """Return what of a unit stands where the sources do once it is refreshed: nothing it reads was left behind."""
    reached: set[int] = set()
    for block in in_blocks(unit.tables, unit.cycles):
        members = {table.relid for table in block}
        upstream = {d.relid for table in block for d in table.dependencies if d.kind == "STREAM_TABLE"}
        if upstream - members - reached <= so_far.current:
            reached |= members
    return frozenset(reached)


def _target(
    table: StreamTable, dependency: Dependency, later: bool, own: Mapping[int, str], at: tuple[Cut, SoFar]
) -> Cut | None:
    cut, so_far = at
    cap = table.decision.caps.get(dependency.relid)
    # A transaction that wrote a member also sees what a trigger on that one wrote elsewhere: that is for later.
    if cap is not None or not (later or own):
        return cap
    xid = own.get(dependency.relid) or so_far.written.get(dependency.relid)
    return Cut(cut.snapshot, xid, END_OF_TRANSACTION if xid else None, cut.lsn)
