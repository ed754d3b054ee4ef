"""A tick: one deterministic pass over all that is due, at one cut of the base tables."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic

import psycopg

from pytrickle.catalog import refresh as catalog
from pytrickle.catalog.refresh import Dependency, StreamTable
from pytrickle.cut import Cut
from pytrickle.db import Snapshot, translate_errors
from pytrickle.errors import PytrickleError, RefreshConflict
from pytrickle.gating import blocks
from pytrickle.refresh import Goal, Refresher, RefreshResult
from pytrickle.scheduler.order import topological, with_upstream
from pytrickle.scheduler.prepare import Broken, prepare
from pytrickle.scheduler.record import record_failure, record_skip

END_OF_TRANSACTION = 2**63 - 1
OnResult = Callable[[RefreshResult], None]


@dataclass(slots=True)
class Tick:
    """One pass. `base` is the snapshot in which gating is decided and at which all base tables are read.

    A stream table that reads another one refreshed in this pass is read in a later snapshot, rewound to `base` for
    every source but the transactions of this pass: so all tables of a tick stand at the same cut. `current` are the
    tables that reached it; `stalled` names the failure that keeps direct and further dependents from being refreshed,
    `broken` says what keeps a stream table from being refreshed at all.
    """

    refresher: Refresher
    base: Snapshot
    moment: datetime
    unloaded: frozenset[int]
    on_result: OnResult
    since: float
    broken: Broken
    written: dict[int, str] = field(default_factory=dict)
    results: dict[int, RefreshResult] = field(default_factory=dict)
    errors: dict[int, PytrickleError] = field(default_factory=dict)
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
    ) -> "Tick":
        """Start a pass in a snapshot just exported."""
        row = base.connection.execute("SELECT transaction_timestamp()").fetchone()
        unloaded = frozenset(table.relid for table in tables if not table.populated)
        return cls(refresher, base, row[0] if row else datetime.min, unloaded, on_result, base.taken, broken)

    def run(self, tables: tuple[StreamTable, ...], initiated: dict[int, str], respect_gate: bool = True) -> None:
        """Refresh the given stream tables in order; failures and skips are results."""
        for table in tables:
            result = self._one(table, initiated.get(table.pgt_id, "SCHEDULER"), respect_gate)
            self.since = monotonic()
            self.results[table.relid] = result
            self.on_result(result)

    def _one(self, table: StreamTable, initiated_by: str, respect_gate: bool) -> RefreshResult:
        reason = self._obstacle(table, respect_gate)
        connection = self.refresher.connection
        if reason:
            with translate_errors():
                record_skip(connection, table, reason, initiated_by, self.moment)
            return _unrefreshed(table, "SKIP", reason)
        try:
            return self._refresh(table, initiated_by)
        except RefreshConflict as conflict:
            return _unrefreshed(table, "SKIP", str(conflict))
        except PytrickleError as error:
            self.errors[table.relid] = error
            self.stalled[table.relid] = table.name
            with translate_errors():
                record_failure(connection, table, error, initiated_by, self.moment)
            return _unrefreshed(table, "FAILED", "the refresh failed", error)

    def _obstacle(self, table: StreamTable, respect_gate: bool) -> str | None:
        if blocks(table.decision, respect_gate):
            return table.decision.reason
        for upstream in (d for d in table.dependencies if d.kind == "STREAM_TABLE"):
            if culprit := self.stalled.get(upstream.relid):
                self.stalled[table.relid] = culprit
                return f"{culprit} failed in this tick"
            if upstream.relid in self.unloaded and upstream.relid not in self.written:
                return f"{upstream.name} has not been loaded yet"
            if table.decision.gating == "hold_back" and upstream.relid not in self.current:
                return f"{upstream.name} was not refreshed in this tick, so it may stand at another watermark"
        return None

    def _refresh(self, table: StreamTable, initiated_by: str) -> RefreshResult:
        if error := self.broken.get(table.pgt_id):
            raise error
        with self._snapshot(table) as snapshot:
            later = snapshot is not self.base
            targets = {d.relid: self._target(table, d, later) for d in table.dependencies}
            goal = Goal(targets, self.moment, initiated_by, self.since)
            reads_current = all(d.relid in self.current for d in table.dependencies if d.kind == "STREAM_TABLE")
            claimed = table if reads_current else _without_claim(table)
            result, committed = self.refresher.refresh(snapshot, claimed, goal)
        if committed:
            self.written[table.relid] = committed.xid
        if reads_current:
            self.current.add(table.relid)
        return result

    @contextmanager
    def _snapshot(self, table: StreamTable) -> Iterator[Snapshot]:
        if not any(d.relid in self.written for d in table.dependencies):
            yield self.base
            return
        with self.refresher.snapshots.export() as later:
            yield later

    def _target(self, table: StreamTable, dependency: Dependency, later: bool) -> Cut | None:
        cap = table.decision.caps.get(dependency.relid)
        if cap is not None or not later:
            return cap
        xid = self.written.get(dependency.relid)
        return Cut(self.base.cut.snapshot, xid, END_OF_TRANSACTION if xid else None, self.base.cut.lsn)


def tick(refresher: Refresher, on_result: OnResult) -> tuple[RefreshResult, ...]:
    """Refresh all that is due, in dependency order; return one result per stream table considered."""
    broken = prepare(refresher.connection)
    with translate_errors():
        refresher.connection.execute("SELECT pgtrickle.raise_alerts()")
    with refresher.snapshots.export() as base:
        with translate_errors():
            tables = topological(catalog.stream_tables(base.connection))
            requests = _requests(base.connection)
            run = Tick.at(refresher, base, tables, on_result, broken)
        initiated = dict.fromkeys(requests.values(), "REQUEST")
        run.run(tuple(table for table in tables if table.due or table.pgt_id in initiated), initiated)
    with translate_errors():
        _finish(refresher.connection, tuple(requests), bool(run.written))
    return tuple(run.results.values())


def refresh_one(refresher: Refresher, pgt_id: int, respect_gate: bool) -> RefreshResult:
    """Refresh one stream table now; under hold_back, those that it reads come first, so that all agree.

    Raise what made the refresh fail, after it was recorded.
    """
    broken = prepare(refresher.connection)
    with refresher.snapshots.export() as base:
        with translate_errors():
            tables = topological(catalog.stream_tables(base.connection))
            wanted = next(table for table in tables if table.pgt_id == pgt_id)
            run = Tick.at(refresher, base, tables, lambda result: None, broken)
        chosen = frozenset({wanted.relid})
        if wanted.decision.gating == "hold_back":
            chosen = with_upstream(wanted, {table.relid: table for table in tables})
        selected = tuple(table for table in tables if table.relid in chosen)
        run.run(selected, {table.pgt_id: "MANUAL" for table in selected}, respect_gate)
    with translate_errors():
        _finish(refresher.connection, (), bool(run.written))
    if wanted.relid in run.errors:
        raise run.errors[wanted.relid]
    return run.results[wanted.relid]


def _requests(connection: psycopg.Connection) -> dict[int, int]:
    rows = connection.execute("SELECT request_id, pgt_id FROM pgtrickle.pgt_refresh_requests").fetchall()
    return dict(rows)


def _finish(connection: psycopg.Connection, requests: tuple[int, ...], wrote: bool) -> None:
    if requests:
        connection.execute("DELETE FROM pgtrickle.pgt_refresh_requests WHERE request_id = ANY (%s)", (list(requests),))
    if wrote:
        connection.execute("SELECT pgtrickle.clean_change_buffers()")


def _without_claim(table: StreamTable) -> StreamTable:
    """What reads a stream table that this pass did not bring up to date cannot claim the sources' new watermark."""
    return replace(table, decision=replace(table.decision, effective_watermark=None))


def _unrefreshed(table: StreamTable, action: str, reason: str, error: PytrickleError | None = None) -> RefreshResult:
    sentence = str(error) if error else None
    return RefreshResult(table.name, action, reason, 0, 0, table.effective_watermark, timedelta(0), sentence)
