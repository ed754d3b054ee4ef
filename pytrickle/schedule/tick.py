"""A tick: one pass over all that is due, at one cut of the base tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from logging import getLogger
from time import monotonic

import psycopg

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.known_tables import KnownTables
from pytrickle.catalog.refresh_groups import RefreshGroup, ask_refresh_groups, refresh_groups
from pytrickle.config import EngineName
from pytrickle.database import impatient, pipelined, refuse_standby, translate_errors, unless_locked
from pytrickle.errors import PytrickleError, ReadOnly
from pytrickle.plan.apply_plan import Action
from pytrickle.readable import Rows, ended
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.dag import with_upstream
from pytrickle.schedule.due import work_out_moments
from pytrickle.schedule.health import Health
from pytrickle.schedule.lanes import Lanes
from pytrickle.schedule.meanings import ALL, Meanings
from pytrickle.schedule.pass_ import OnResult, Pass
from pytrickle.schedule.requests import Requests, Told, answer, filed, waiting
from pytrickle.schedule.rest import Rest, moment, rest_after
from pytrickle.schedule.standstill import Standstill
from pytrickle.schedule.units import KnownUnits, Unit, due_tables
from pytrickle.tracing import phase

log = getLogger(__name__)

TRIM_EVERY = timedelta(hours=1)
# What passes the limits of alerts is looked for in all change buffers, which takes longer than a tick without work: so
# it is done seldom, and where there are thousands of them takes no more than a fiftieth of the time.
MEASURE_EVERY, MEASURE_SHARE = timedelta(seconds=10), 50
RAISE = "SELECT pgtrickle.raise_alerts(%(measure)s)"
DROP_STAGING = "SELECT pgtrickle_private.drop_left_staging()"
TRIM = "SELECT pgtrickle.trim_history(%(retention)s)"
COMPUTED = {Action.DIFFERENTIAL, Action.FULL, Action.REINITIALIZE}
# Who follows a source by a feed reads its changes whenever he likes, so that its buffer is always looked into.
CLEAN = f"""
SELECT CASE WHEN cardinality(sources) > 0 THEN pgtrickle_private.clean_change_buffers(sources) END, {ALL}
FROM (
    SELECT %(sources)s::bigint[]::oid[] || ARRAY(SELECT f.source_relid::oid FROM pgtrickle.pgt_feeds AS f)
) AS s (sources)
"""


@contextmanager
def _left_when_read_only(connection: psycopg.Connection) -> Iterator[None]:
    """Close a connection that takes no changes: once the server takes them again, only new sessions may make them."""
    try:
        yield
    except ReadOnly:
        connection.close()
        raise


@dataclass(slots=True)
class Ticker:
    """Ticks, and refreshes single stream tables, with all that it keeps from one time to the next.

    `refreshing` returns the refresher on a living connection. The first tick, and one per hour after it, also trims the
    histories to what is younger than `retention`, and drops what tasks of Spark left that were given up.
    """

    refreshing: Callable[[], Refresher]
    lanes: Lanes
    retention: timedelta
    of: psycopg.Connection | None = None
    health: Health = field(default_factory=Health)
    trimmed: float | None = None
    measure_from: float = 0.0
    rest: Rest | None = None
    known: KnownTables = field(default_factory=KnownTables)
    arranged: KnownUnits = field(default_factory=KnownUnits)
    standstill: Standstill = field(default_factory=Standstill)

    def tick(self, on_result: OnResult) -> tuple[RefreshResult, ...]:
        """Refresh all that is due, in dependency order; return a result per stream table considered, in that order."""
        refresher = self._refreshing_primary()
        with impatient(refresher.connection), _left_when_read_only(refresher.connection):
            self._raise_alerts(refresher.connection)
            now = moment(refresher.connection)
            if self.rest and self.rest.lasts(now) and not self._must_trim:
                return self._rested(self.rest, on_result)
            awaited = waiting(refresher.connection)
            unless_locked(refresher.connection, "SELECT pgtrickle_private.note_drained()")
            results, run, moving = self._pass(refresher, on_result, awaited)
            self.rest = None if run.seen.broken else rest_after(run, moving, results, now.calls)
            if self._must_trim:
                self._trim(refresher.connection)
        return results

    def _trim(self, connection: psycopg.Connection) -> None:
        """Trim the histories; where that fails the refreshes are done all the same, and it is tried an hour later."""
        self.trimmed = monotonic()
        try:
            unless_locked(connection, TRIM, {"retention": self.retention})
            unless_locked(connection, DROP_STAGING)
        except PytrickleError as error:
            if connection.closed:
                raise
            log.error("The histories could not be trimmed: %s", ended(str(error)))

    def _refreshing_primary(self) -> Refresher:
        refresher = self.refreshing()
        refuse_standby(refresher.connection)
        if refresher.connection is not self.of:
            # It may lead to a server that was set back, which counts its transactions anew. What ended the one before
            # may have ended those of the lanes, too.
            self.of, self.health, self.rest = refresher.connection, Health(), None
            self.lanes.close()
        return refresher

    @phase("tick")
    def _pass(
        self, refresher: Refresher, on_result: OnResult, awaited: Mapping[int, int]
    ) -> tuple[tuple[RefreshResult, ...], Pass, list[catalog.StreamTable]]:
        """Return the results, the pass that made them, and the stream tables that did not stand still in it."""
        with self.health.snapshot(refresher.connection, refresher.snapshots) as (base, broken):
            with translate_errors():
                tables, groups = self._arranged(refresher, base.connection)
                requests = Requests(filed(base.connection), awaited)
                run = Pass.at(refresher, base, tables, on_result, broken)
            initiated = _asked(requests.pgt_ids, tables)
            due = frozenset() if requests.drains else due_tables(tables, groups)
            chosen = [unit for unit in self.arranged.units if unit.is_due(due, initiated)]
            still = self.standstill.find(chosen, run.seen)
            run.pass_over(still)
            moving = [unit for unit in chosen if unit.tables[0].relid not in still]
            _prepare(refresher, run, moving)
            self.lanes.run(run, moving, lambda lane, unit: lane.run(unit, initiated, not unit.is_asked(initiated)))
        answer(refresher.connection, requests, _answers(run, tables, requests.pgt_ids))
        _finish(refresher, self.health.meanings, run, tables, tables)
        results = Rows(run.record.results[table.relid] for table in tables if table.relid in run.record.results)
        return results, run, [table for table in tables if table.relid not in still]

    def _arranged(
        self, refresher: Refresher, connection: psycopg.Connection
    ) -> tuple[tuple[catalog.StreamTable, ...], tuple[RefreshGroup, ...]]:
        """Read all stream tables, and arrange them; return them in order, and the refresh groups."""
        with pipelined(connection):
            asked = ask_refresh_groups(connection)
            found = self.known.read(
                refresher.connection, connection, refresher.poll_interval, refresher.statement_timeout
            )
            groups = refresh_groups(asked)
        self.arranged.arrange(found, groups)
        return self.arranged.tables, groups

    def _raise_alerts(self, connection: psycopg.Connection) -> None:
        began = monotonic()
        measure = began >= self.measure_from
        unless_locked(connection, RAISE, {"measure": measure})
        if measure:
            took = monotonic() - began
            self.measure_from = began + max(MEASURE_EVERY.total_seconds(), MEASURE_SHARE * took)

    @property
    def _must_trim(self) -> bool:
        return self.trimmed is None or monotonic() - self.trimmed > TRIM_EVERY.total_seconds()

    def _rested(self, rest: Rest, on_result: OnResult) -> tuple[RefreshResult, ...]:
        for result in rest.results:
            on_result(result)
        return rest.results

    def refresh(self, pgt_id: int, respect_gate: bool) -> RefreshResult:
        """Refresh one stream table now; what shares its unit, and under hold_back what it reads, comes along.

        Raise what made the refresh fail, after it was recorded.
        """
        refresher = self._refreshing_primary()
        with impatient(refresher.connection):
            return self._refresh_one(refresher, pgt_id, respect_gate)

    def _refresh_one(self, refresher: Refresher, pgt_id: int, respect_gate: bool) -> RefreshResult:
        with self.health.snapshot(refresher.connection, refresher.snapshots, asked=True) as (base, broken):
            with translate_errors():
                tables, _ = self._arranged(refresher, base.connection)
                wanted = next(table for table in tables if table.pgt_id == pgt_id)
                concerned = _concerned(wanted, tables, self.arranged.units)
                members = tuple(table for unit in concerned for table in unit.tables)
                run = Pass.at(refresher, base, tables, lambda result: None, broken, members)
            asked = dict.fromkeys((table.pgt_id for table in tables), "MANUAL")
            _prepare(refresher, run, concerned)
            for unit in concerned:
                self.lanes.run_alone(run, unit, lambda lane, unit: lane.run(unit, asked, respect_gate))
        _finish(refresher, self.health.meanings, run, members, tables)
        return _outcome(run, wanted.relid, _unit_of(wanted.relid, concerned))


def _concerned(
    wanted: catalog.StreamTable, tables: tuple[catalog.StreamTable, ...], found: tuple[Unit, ...]
) -> tuple[Unit, ...]:
    """Return the units that are refreshed with one table: its own and, under hold_back, those of all that it reads."""
    by_relid = {table.relid: table for table in tables}
    chosen = {wanted.relid}
    for table in _unit_of(wanted.relid, found).tables:
        if table.decision.gating == "hold_back":
            chosen |= with_upstream(table, by_relid)
    return tuple(unit for unit in found if not chosen.isdisjoint(table.relid for table in unit.tables))


def _asked(requested: frozenset[int], tables: tuple[catalog.StreamTable, ...]) -> dict[int, str]:
    """Return what is refreshed as asked for: also, under hold_back, what that reads, for it stands at one cut."""
    by_relid = {table.relid: table for table in tables}
    wanted = [table for table in tables if table.pgt_id in requested]
    upstream = (with_upstream(table, by_relid) for table in wanted if table.decision.gating == "hold_back")
    relids = {table.relid for table in wanted}.union(*upstream)
    return {table.pgt_id: "REQUEST" for table in tables if table.relid in relids}


def _answers(run: Pass, tables: Iterable[catalog.StreamTable], asked: frozenset[int]) -> dict[int, Told]:
    results = run.record.results
    return {table.pgt_id: _told(run, table) for table in tables if table.pgt_id in asked and table.relid in results}


def _told(run: Pass, table: catalog.StreamTable) -> Told:
    result, error = run.record.results[table.relid], run.record.errors.get(table.relid)
    return result.action, result.reason, result.error, error.kind if error else None


def _prepare(refresher: Refresher, run: Pass, chosen: Iterable[Unit]) -> None:
    """Fail before anything is recorded where nothing could be computed: it is not a stream table's failure."""
    changed = (unit for unit in chosen if not run.begins_quiet(unit))
    if any(table.engine is not EngineName.POSTGRES for unit in changed for table in unit.tables):
        refresher.engine.prepare()


def _outcome(run: Pass, relid: int, unit: Unit) -> RefreshResult:
    for member in (relid, *(table.relid for table in unit.tables)):
        if member in run.record.errors:
            raise run.record.errors[member]
    return run.record.results[relid]


def _unit_of(relid: int, found: Iterable[Unit]) -> Unit:
    return next(unit for unit in found if relid in {table.relid for table in unit.tables})


def _to_clean(run: Pass, tables: Iterable[catalog.StreamTable]) -> list[int]:
    """Return the sources that may have changes which all have read: none unless somebody has read more.

    Of a change buffer that was empty when the pass began, only those who wrote have read anything.
    """
    empty, written = run.seen.empty, run.record.written
    if not written:
        return []
    read = ((dependency, table.relid in written) for table in tables for dependency in table.dependencies)
    found = {each.relid for each, further in read if each.buffer and (further or each.buffer not in empty)}
    return sorted(found)


def _finish(
    refresher: Refresher,
    meanings: Meanings,
    run: Pass,
    members: Iterable[catalog.StreamTable],
    tables: Iterable[catalog.StreamTable],
) -> None:
    """Clean up: all of it can wait for the next tick where another session holds what it needs.

    But what was altered while something was refreshed is looked at in any case: table by table where nothing was said.
    """
    connection = refresher.connection
    cleaned = unless_locked(connection, CLEAN, {"sources": _to_clean(run, members)})
    deleted, meaning = (cleaned.fetchone() if cleaned else None) or (0, "")
    results = run.record.results
    done = [table.pgt_id for table in tables if table.relid in results and results[table.relid].action in COMPUTED]
    meanings.settle(connection, meaning, done)
    refresher.planner.searched.tidy(connection, bool(deleted))
    if any(table.timed for table in tables):
        with translate_errors():
            work_out_moments(connection)
