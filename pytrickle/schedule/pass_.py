"""One pass over units of stream tables: each is decided about, refreshed accordingly, and recorded."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from logging import getLogger
from time import monotonic

from pytrickle.apply.sorted_indexes import drop_too_short
from pytrickle.catalog.capture_print import CapturePrint
from pytrickle.catalog.change_ranges import empty_buffers
from pytrickle.catalog.stream_table import StreamTable, effective_progress
from pytrickle.database import TOO_MANY_CONNECTIONS, Snapshot, translate_errors
from pytrickle.errors import ConnectionLost, FuseBlown, PytrickleError, RefreshConflict
from pytrickle.refresh.at_once import refresh_at_once
from pytrickle.refresh.atomic import AtomicRefresh
from pytrickle.refresh.member import Done, MemberFailed
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import Goal, RefreshResult
from pytrickle.schedule import verdict
from pytrickle.schedule.mending import Broken
from pytrickle.schedule.outcomes import record_blown_fuse, record_failure, record_skip
from pytrickle.schedule.record import Record
from pytrickle.schedule.spans import outcome, refresh_span
from pytrickle.schedule.units import Unit
from pytrickle.schedule.verdict import NOTHING_YET, Fail, Go, Seen, Skip, SoFar

log = getLogger("pytrickle.refresh")

OnResult = Callable[[RefreshResult], None]


class NoConnectionLeft(Exception):
    """The server lent no further connection to a refresh, which may go well with fewer beside it: none is recorded."""

    def __init__(self, error: PytrickleError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(slots=True)
class Pass:
    """One pass, or a lane of it. `base` is the snapshot in which gating is decided and all base tables are read.

    A stream table that reads another one refreshed in this pass is read in a later snapshot, rewound to `base` for
    every source but the transactions of this pass: so all tables of a tick stand at the same cut. `since` is when the
    work under way began. With `returns_work`, a refresh for which there is no connection raises NoConnectionLeft.
    """

    refresher: Refresher
    base: Snapshot
    seen: Seen
    record: Record
    on_result: OnResult
    since: float
    returns_work: bool = False

    @classmethod
    def at(
        cls,
        refresher: Refresher,
        base: Snapshot,
        tables: tuple[StreamTable, ...],
        on_result: OnResult,
        broken: Broken,
        members: tuple[StreamTable, ...] | None = None,
    ) -> "Pass":
        """Start a pass in a snapshot just exported; `members` are the tables that it is about, unless that is all.

        A single one that can be refreshed at once is not looked at before: its changes are counted then in any case.
        """
        unloaded = frozenset(table.relid for table in tables if not table.populated)
        alone = members[0].pgt_id if members and len(members) == 1 else None
        at_once = alone in refresher.planner.past.planned_few
        empty = frozenset() if at_once else empty_buffers(base.connection, members or tables)
        seen = Seen(base.cut, base.moment, unloaded, empty, broken)
        return cls(refresher, base, seen, Record(), on_result, base.taken)

    def run(self, unit: Unit, asked: Mapping[int, str], respect_gate: bool = True) -> None:
        """Refresh a unit, whose failures and skips are results too. What it reads must have been done before.

        A unit that was returned is taken up where it was left. Raise ConnectionLost where the snapshot was lost while
        another unit was read: it is not this one's failure.
        """
        if self.base.connection.closed:
            raise ConnectionLost("The session that holds the snapshot of this tick ended.")
        done_before = self.record.so_far(unit)
        parts = verdict.parts(unit, asked, self.seen, done_before)
        for part in (part for part in parts if not self.record.has_result(part.tables[0].relid)):
            so_far = done_before if part is unit else self.record.so_far(part)
            work = Work(self, part, asked, so_far)
            match verdict.decide(part, asked, respect_gate, self.seen, so_far):
                case Skip() as skip:
                    work.skip(skip)
                case Fail(table, error):
                    work.fail(MemberFailed(table, error))
                case Go() as go:
                    work.refresh(go)

    def pass_over(self, still: Mapping[int, RefreshResult]) -> None:
        """Report the tables that stand still, about which nothing is to be decided."""
        self.record.note_still(still)
        for result in still.values():
            self.on_result(result)

    def is_quiet(self, unit: Unit) -> bool:
        """Whether no source of a unit has a change, so that not even the changes need to be counted."""
        return verdict.is_quiet(unit, self.seen, self.record.so_far(unit))

    def begins_quiet(self, unit: Unit) -> bool:
        """Whether no source of a unit had a change when the pass began."""
        return verdict.is_quiet(unit, self.seen, NOTHING_YET)

    def report(self, table: StreamTable, result: RefreshResult) -> None:
        """Tell what came of a table."""
        self.since = monotonic()
        self.record.note_result(table.relid, result)
        self.on_result(result)


@dataclass(frozen=True, slots=True)
class Work:
    """One unit of a pass, carried out as decided; `so_far` is what had been done when that was."""

    pass_: Pass
    unit: Unit
    asked: Mapping[int, str]
    so_far: SoFar

    def refresh(self, go: Go) -> None:
        """Refresh the unit, in one transaction if it is more than one table, and record what came of it."""
        try:
            tables = tuple(self._with_effective_progress(table, go) for table in self.unit.tables)
            done = self._mark_up_to_date(tables) if go.quiet else self._refreshed(tables, go.later)
        except MemberFailed as failed:
            self.fail(failed)
        except PytrickleError as error:
            self.fail(MemberFailed(self.unit.tables[0], error))
        else:
            for table in self.unit.tables:
                result, committed = done[table.relid]
                xid = committed.xid if committed else None
                self.pass_.record.note_done(table.relid, xid, table.relid in go.reached)
                self.pass_.report(table, result)

    def skip(self, skip: Skip) -> None:
        """Skip all tables of the unit."""
        for table in self.unit.tables:
            if skip.culprit:
                self.pass_.record.note_stalled(table.relid, skip.culprit)
            self._skip(table, skip.reason_for(table))

    def fail(self, failed: MemberFailed) -> None:
        """Record what made one table fail, and that the others wait for it; of a conflict nothing is recorded."""
        if self.pass_.returns_work and failed.error.sqlstate == TOO_MANY_CONNECTIONS:
            raise NoConnectionLeft(failed.error)
        culprit = next(table for table in self.unit.tables if table.relid == failed.table.relid)
        match failed.error:
            case RefreshConflict() as conflict:
                for table in self.unit.tables:
                    self.pass_.report(table, _unrefreshed(table, "SKIP", str(conflict)))
                return
            case FuseBlown() as blown:
                reason = str(blown)
                with translate_errors():
                    record_blown_fuse(self.pass_.refresher.connection, culprit)
                self._skip(culprit, reason)
            case error:
                reason = f"{culprit.name} failed in this tick"
                self._fail(culprit, error)
        for table in self.unit.tables:
            if table is not culprit:
                self.pass_.record.note_stalled(table.relid, culprit.name)
                self._skip(table, verdict.held(culprit, reason))

    def _mark_up_to_date(self, tables: tuple[StreamTable, ...]) -> dict[int, Done]:
        with translate_errors():
            mark = self.pass_.refresher.mark_up_to_date
            return {table.relid: (mark(table, self._goal(table, False, {})), None) for table in tables}

    def _refreshed(self, tables: tuple[StreamTable, ...], later: bool) -> dict[int, Done]:
        with refresh_span(self.pass_.refresher.connection, tables) as note:
            done = self._carried_out_with_room(tables, later)
            note(outcome(done.values()))
        return done

    def _carried_out_with_room(self, tables: tuple[StreamTable, ...], later: bool) -> dict[int, Done]:
        """Carry it out, without those indexes for which rows have become too long."""
        try:
            return self._carried_out(tables, later)
        except (MemberFailed, PytrickleError) as failed:
            error = failed.error if isinstance(failed, MemberFailed) else failed
            with translate_errors():
                dropped = drop_too_short(
                    self.pass_.refresher.connection, error.__cause__, (table.pgt_id for table in tables)
                )
            if not dropped:
                raise
        return self._carried_out_with_room(tables, later)

    def _carried_out(self, tables: tuple[StreamTable, ...], later: bool) -> dict[int, Done]:
        refresher = self.pass_.refresher
        for table in tables:
            log.debug("refreshing %s", table.name, extra={"event": {"begins": table.name}})
        if len(tables) == 1 and not self.unit.cycles:
            return {tables[0].relid: self._alone(tables[0], later)}
        with self._snapshot(later) as snapshot:
            together = AtomicRefresh(
                refresher, snapshot, lambda table, own: self._goal(table, later, own), self.unit.cycles
            )
            return together.refresh(tables)

    def _alone(self, table: StreamTable, later: bool) -> Done:
        """Refresh a table in a single transaction if it is known how, or as soon as what is read tells it."""
        refresher, goal = self.pass_.refresher, self._goal(table, later, {})
        at_once = partial(refresh_at_once, refresher, table, goal, None if later else self.pass_.base)
        if done := at_once():
            return done
        with self._snapshot(later) as snapshot:
            return refresher.refresh(snapshot, table, goal, at_once)

    @contextmanager
    def _snapshot(self, later: bool) -> Iterator[Snapshot]:
        if not later:
            yield self.pass_.base
            return
        with self.pass_.refresher.snapshots.export() as snapshot:
            yield snapshot

    def _goal(self, table: StreamTable, later: bool, own: Mapping[int, str]) -> Goal:
        seen = self.pass_.seen
        targets = verdict.targets(table, later, own, seen, self.so_far)
        captured = self._captured(table) if later else None
        return Goal(targets, seen.moment, self._initiated_by(table), self.pass_.since, captured=captured)

    def _captured(self, table: StreamTable) -> CapturePrint | None:
        read = (each.relid for each in table.dependencies if each.buffer and each.kind != "STREAM_TABLE")
        with translate_errors():
            return CapturePrint.of(self.pass_.base.connection, read)

    def _with_effective_progress(self, table: StreamTable, go: Go) -> StreamTable:
        """A table is complete no further than what it reads shows in the snapshot, where that was left behind."""
        if not verdict.is_left_behind(table, go.reached):
            return table
        current, refreshed = self.pass_.record.standing()
        members = frozenset(member.relid for member in self.unit.tables)
        connection = self.pass_.base.connection
        with translate_errors(), connection.transaction():
            reached = effective_progress(connection, table, list(current | go.reached), list(refreshed | members))
        decision = replace(table.decision, effective_watermark=reached.watermark, effective_batch=reached.batch)
        return replace(table, decision=decision)

    def _skip(self, table: StreamTable, reason: str) -> None:
        with translate_errors():
            connection, moment = self.pass_.refresher.connection, self.pass_.seen.moment
            record_skip(connection, table, reason, self._initiated_by(table), moment)
        self.pass_.report(table, _unrefreshed(table, "SKIP", reason))

    def _fail(self, table: StreamTable, error: PytrickleError) -> None:
        self.pass_.record.note_failed(table, error)
        with translate_errors():
            connection, moment = self.pass_.refresher.connection, self.pass_.seen.moment
            record_failure(connection, table, error, self._initiated_by(table), moment)
        self.pass_.report(table, _unrefreshed(table, "FAILED", "the refresh failed", error))

    def _initiated_by(self, table: StreamTable) -> str:
        return self.asked.get(table.pgt_id, "SCHEDULER")


def _unrefreshed(table: StreamTable, action: str, reason: str, error: PytrickleError | None = None) -> RefreshResult:
    sentence = str(error) if error else None
    shown = table.effective
    return RefreshResult(table.name, action, reason, 0, 0, shown.watermark, timedelta(0), sentence, shown.batch)
