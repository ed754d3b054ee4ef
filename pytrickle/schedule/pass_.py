"""One pass over units of stream tables: what keeps one back, how far each is read, and what came of it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic

from pytrickle.catalog.gating import blocks
from pytrickle.catalog.stream_table import Dependency, StreamTable, claimable, empty_buffers
from pytrickle.cut import Cut
from pytrickle.database import Snapshot, translate_errors
from pytrickle.errors import FuseBlown, PytrickleError, RefreshConflict
from pytrickle.progress import Progress
from pytrickle.refresh.atomic import AtomicRefresh, in_blocks
from pytrickle.refresh.member import Done, MemberFailed
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import Goal, RefreshResult
from pytrickle.schedule.health import Broken
from pytrickle.schedule.outcomes import record_blown_fuse, record_failure, record_skip
from pytrickle.schedule.units import Unit, apart

END_OF_TRANSACTION = 2**63 - 1
OnResult = Callable[[RefreshResult], None]


@dataclass(slots=True)
class Pass:
    """One pass. `base` is the snapshot in which gating is decided and at which all base tables are read.

    A stream table that reads another one refreshed in this pass is read in a later snapshot, rewound to `base` for
    every source but the transactions of this pass: so all tables of a tick stand at the same cut. `refreshed` are the
    tables brought as far as what they read, `current` those that so reached the cut; `stalled` names the failure that
    keeps direct and further dependents from being refreshed, `broken` says what keeps a stream table from being
    refreshed at all; `empty` names the change buffers that held nothing in `base`.
    """

    refresher: Refresher
    base: Snapshot
    moment: datetime
    unloaded: frozenset[int]
    on_result: OnResult
    since: float
    broken: Broken
    empty: frozenset[str]
    written: dict[int, str] = field(default_factory=dict)
    results: dict[int, RefreshResult] = field(default_factory=dict)
    errors: dict[int, PytrickleError] = field(default_factory=dict)
    refreshed: set[int] = field(default_factory=set)
    current: set[int] = field(default_factory=set)
    stalled: dict[int, str] = field(default_factory=dict)

    @classmethod
    def at(
        cls,
        refresher: Refresher,
        base: Snapshot,
        tables: tuple[StreamTable, ...],
        on_result: OnResult,
        broken: Broken,
    ) -> "Pass":
        """Start a pass in a snapshot just exported."""
        row = base.connection.execute("SELECT transaction_timestamp()").fetchone()
        unloaded = frozenset(table.relid for table in tables if not table.populated)
        moment = row[0] if row else datetime.min
        empty = empty_buffers(base.connection, tables)
        return cls(refresher, base, moment, unloaded, on_result, base.taken, broken, empty)

    def run(self, unit: Unit, initiated: Mapping[int, str], respect_gate: bool = True) -> None:
        """Refresh a unit, whose failures and skips are results too. What it reads must have been done before."""
        # First loads show nothing inconsistent: they go one by one, so that Spark may stage what is large.
        together = len(unit.tables) > 1 and all(table.populated for table in unit.tables)
        if unit.cycles or (together and not self.is_quiet(unit)):
            self._unit(unit, initiated, respect_gate)
            return
        for table in unit.tables:
            if table.halted and table.pgt_id not in initiated:
                continue
            self._one(table, initiated.get(table.pgt_id, "SCHEDULER"), respect_gate)

    def is_quiet(self, unit: Unit) -> bool:
        """Whether no source of a unit has a change, so that not even the changes need to be counted."""
        return all(self._is_quiet(table) for table in unit.tables)

    def _one(self, table: StreamTable, initiated_by: str, respect_gate: bool) -> None:
        if reason := self._obstacle(table, respect_gate, frozenset()):
            self._skip(table, reason, initiated_by)
            return
        try:
            if error := self.broken.get(table.pgt_id):
                raise error
            reached = self._reached(Unit((table,)))
            claimed = self._claiming(table, reached, {table.relid})
            if self._is_quiet(table):
                self._done(table, self._settled(claimed, initiated_by), reached)
                return
            with self._snapshot({table.relid}, (table,)) as snapshot:
                goal = self._goal(table, snapshot is not self.base, {}, initiated_by)
                self._done(table, self.refresher.refresh(snapshot, claimed, goal), reached)
        except RefreshConflict as conflict:
            self._report(table, _unrefreshed(table, "SKIP", str(conflict)))
        except FuseBlown as blown:
            self._blow(table, blown, initiated_by)
        except PytrickleError as error:
            self._fail(table, error, initiated_by)

    def _unit(self, unit: Unit, initiated: Mapping[int, str], respect_gate: bool) -> None:
        """Refresh a unit in one transaction; what keeps one member back keeps them all."""

        def by(table: StreamTable) -> str:
            return initiated.get(table.pgt_id, "SCHEDULER")

        if found := self._hindrance(unit, initiated, respect_gate):
            self._skip_unit(unit, *found, by)
            return
        try:
            for table in unit.tables:
                if error := self.broken.get(table.pgt_id):
                    raise MemberFailed(table, error)
            reached = self._reached(unit)
            members = {table.relid for table in unit.tables}
            claimed = tuple(self._claiming(table, reached, members) for table in unit.tables)
            done = self._together(claimed, unit.cycles, by)
            for table in unit.tables:
                self._done(table, done[table.relid], reached)
        except MemberFailed as failed:
            self._fail_unit(unit, failed, by)
        except PytrickleError as error:
            self._fail_unit(unit, MemberFailed(unit.tables[0], error), by)

    def _together(
        self, tables: tuple[StreamTable, ...], cycles: tuple[frozenset[int], ...], by: Callable[[StreamTable], str]
    ) -> dict[int, Done]:
        if all(self._is_quiet(table) for table in tables):
            return {table.relid: self._settled(table, by(table)) for table in tables}
        with self._snapshot((table.relid for table in tables), tables) as snapshot:
            later = snapshot is not self.base
            together = AtomicRefresh(
                self.refresher, snapshot, lambda t, written: self._goal(t, later, written, by(t)), cycles
            )
            return together.refresh(tables)

    def _settled(self, table: StreamTable, initiated_by: str) -> Done:
        with translate_errors():
            return self.refresher.settle(table, self._goal(table, False, {}, initiated_by)), None

    def _hindrance(
        self, unit: Unit, initiated: Mapping[int, str], respect_gate: bool
    ) -> tuple[StreamTable, str] | None:
        if halted := unit.halted(initiated):
            return halted, f"{halted.name} is {halted.halted}"
        members = frozenset(table.relid for table in unit.tables)
        reasons = ((table, self._obstacle(table, respect_gate, members)) for table in unit.tables)
        return next(((table, reason) for table, reason in reasons if reason), None) or apart(unit)

    def _fail_unit(self, unit: Unit, failed: MemberFailed, by: Callable[[StreamTable], str]) -> None:
        culprit = next(table for table in unit.tables if table.relid == failed.table.relid)
        match failed.error:
            case RefreshConflict() as conflict:
                for table in unit.tables:
                    self._report(table, _unrefreshed(table, "SKIP", str(conflict)))
                return
            case FuseBlown() as blown:
                self._blow(culprit, blown, by(culprit))
                reason = str(blown)
            case error:
                self._fail(culprit, error, by(culprit))
                reason = f"{culprit.name} failed in this tick"
        for table in unit.tables:
            if table is not culprit:
                self.stalled[table.relid] = culprit.name
                self._skip(table, _held(culprit, reason), by(table))

    def _skip_unit(self, unit: Unit, held: StreamTable, reason: str, by: Callable[[StreamTable], str]) -> None:
        culprit = self.stalled.get(held.relid)
        for table in unit.tables:
            if culprit:
                self.stalled[table.relid] = culprit
            self._skip(table, reason if table is held else _held(held, reason), by(table))

    def _is_quiet(self, table: StreamTable) -> bool:
        sources = table.dependencies
        return (table.follows_its_buffers and not table.may_close) and all(
            d.buffer in self.empty and d.relid not in self.written for d in sources
        )

    def _obstacle(self, table: StreamTable, respect_gate: bool, members: frozenset[int]) -> str | None:
        if blocks(table.decision, respect_gate):
            return table.decision.reason
        for upstream in (d for d in table.dependencies if d.kind == "STREAM_TABLE" and d.relid not in members):
            if culprit := self.stalled.get(upstream.relid):
                self.stalled[table.relid] = culprit
                return f"{culprit} failed in this tick"
            if upstream.relid in self.unloaded and upstream.relid not in self.written:
                return f"{upstream.name} has not been loaded yet"
            if table.decision.gating == "hold_back" and upstream.relid not in self.current:
                return f"{upstream.name} was not refreshed in this tick, so it may stand at another watermark"
        return None

    @contextmanager
    def _snapshot(self, members: Iterable[int], tables: tuple[StreamTable, ...]) -> Iterator[Snapshot]:
        read = {dependency.relid for table in tables for dependency in table.dependencies} - set(members)
        # Looked up one by one: other lanes write to it meanwhile.
        if not any(relid in self.written for relid in read):
            yield self.base
            return
        with self.refresher.snapshots.export() as later:
            yield later

    def _goal(self, table: StreamTable, later: bool, own: Mapping[int, str], initiated_by: str) -> Goal:
        """Say how far to read each source; `own` are the members of its unit that its transaction already wrote."""
        targets = {d.relid: self._target(table, d, later, own) for d in table.dependencies}
        return Goal(targets, self.moment, initiated_by, self.since)

    def _target(self, table: StreamTable, dependency: Dependency, later: bool, own: Mapping[int, str]) -> Cut | None:
        cap = table.decision.caps.get(dependency.relid)
        xid = own.get(dependency.relid)
        if cap is not None or not (later or xid):
            return cap
        xid = xid or self.written.get(dependency.relid)
        return Cut(self.base.cut.snapshot, xid, END_OF_TRANSACTION if xid else None, self.base.cut.lsn)

    def _reached(self, unit: Unit) -> frozenset[int]:
        """Return what of a unit stands where the sources do once it is refreshed: nothing it reads was left behind."""
        reached: set[int] = set()
        for block in in_blocks(unit.tables, unit.cycles):
            members = {table.relid for table in block}
            upstream = {d.relid for table in block for d in table.dependencies if d.kind == "STREAM_TABLE"}
            if all(relid in self.current for relid in upstream - members - reached):
                reached |= members
        return frozenset(reached)

    def _claiming(self, table: StreamTable, reached: frozenset[int], members: set[int]) -> StreamTable:
        """What reads a stream table that was left behind can claim no more than that one shows in the snapshot."""
        decided = table.decision.effective
        if table.relid in reached or decided == Progress():
            return table
        # Copied in one step: other lanes add to them meanwhile.
        standing, refreshed = list(self.current.copy() | reached), list(self.refreshed.copy() | members)
        with translate_errors(), self.base.connection.transaction():
            claimed = claimable(self.base.connection, table, standing, refreshed)
        decision = replace(table.decision, effective_watermark=claimed.watermark, effective_batch=claimed.batch)
        return replace(table, decision=decision)

    def _done(self, table: StreamTable, done: Done, reached: frozenset[int]) -> None:
        result, committed = done
        if committed:
            self.written[table.relid] = committed.xid
        self.refreshed.add(table.relid)
        if table.relid in reached:
            self.current.add(table.relid)
        self._report(table, result)

    def _skip(self, table: StreamTable, reason: str, initiated_by: str) -> None:
        with translate_errors():
            record_skip(self.refresher.connection, table, reason, initiated_by, self.moment)
        self._report(table, _unrefreshed(table, "SKIP", reason))

    def _blow(self, table: StreamTable, blown: FuseBlown, initiated_by: str) -> None:
        with translate_errors():
            record_blown_fuse(self.refresher.connection, table)
        self._skip(table, str(blown), initiated_by)

    def _fail(self, table: StreamTable, error: PytrickleError, initiated_by: str) -> None:
        self.errors[table.relid] = error
        self.stalled[table.relid] = table.name
        with translate_errors():
            record_failure(self.refresher.connection, table, error, initiated_by, self.moment)
        self._report(table, _unrefreshed(table, "FAILED", "the refresh failed", error))

    def _report(self, table: StreamTable, result: RefreshResult) -> None:
        self.since = monotonic()
        self.results[table.relid] = result
        self.on_result(result)


def _held(culprit: StreamTable, reason: str) -> str:
    return f"it is refreshed together with {culprit.name}: {reason}"


def _unrefreshed(table: StreamTable, action: str, reason: str, error: PytrickleError | None = None) -> RefreshResult:
    sentence = str(error) if error else None
    shown = table.effective
    return RefreshResult(table.name, action, reason, 0, 0, shown.watermark, timedelta(0), sentence, shown.batch)
