"""A tick: one deterministic pass over all that is due, at one cut of the base tables."""

from collections.abc import Iterable

import psycopg
from sqlalchemy import BigInteger, any_, bindparam, delete, select
from sqlalchemy.dialects.postgresql import ARRAY

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.tables import refresh_requests
from pytrickle.database import impatient, statement, translate_errors, unless_locked
from pytrickle.readable import Rows
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.dag import topological, with_upstream
from pytrickle.schedule.due import work_out_moments
from pytrickle.schedule.health import Broken, Health
from pytrickle.schedule.lanes import Lanes
from pytrickle.schedule.pass_ import OnResult, Pass
from pytrickle.schedule.units import Unit, due_tables, units

REQUESTS = statement(select(refresh_requests.c.request_id, refresh_requests.c.pgt_id))
SERVED = any_(bindparam("served", type_=ARRAY(BigInteger)))
FORGET = statement(delete(refresh_requests).where(refresh_requests.c.request_id == SERVED))


def tick(refresher: Refresher, health: Health, lanes: Lanes, on_result: OnResult) -> tuple[RefreshResult, ...]:
    """Refresh all that is due, in dependency order; return one result per stream table considered, in that order."""
    with impatient(refresher.connection):
        broken = health.prepare(refresher.connection)
        unless_locked(refresher.connection, "SELECT pgtrickle.raise_alerts()")
        return _tick(refresher, broken, lanes, on_result)


def _tick(refresher: Refresher, broken: Broken, lanes: Lanes, on_result: OnResult) -> tuple[RefreshResult, ...]:
    with refresher.snapshots.export() as base:
        with translate_errors():
            tables = _stream_tables(refresher, base.connection)
            groups = catalog.refresh_groups(base.connection)
            requests = _requests(base.connection)
            run = Pass.at(refresher, base, tables, on_result, broken)
        initiated = dict.fromkeys(requests.values(), "REQUEST")
        due = due_tables(tables, groups)
        chosen = [unit for unit in units(tables, groups) if unit.is_due(due, initiated)]
        lanes.run(run, chosen, lambda lane, unit: lane.run(unit, initiated))
    _finish(refresher.connection, tuple(requests), bool(run.record.written))
    return Rows(run.record.results[table.relid] for table in tables if table.relid in run.record.results)


def refresh_one(refresher: Refresher, health: Health, pgt_id: int, respect_gate: bool) -> RefreshResult:
    """Refresh one stream table now; what shares its unit, and under hold_back what it reads, comes along.

    Raise what made the refresh fail, after it was recorded.
    """
    with impatient(refresher.connection):
        broken = health.prepare(refresher.connection, asked=True)
        return _refresh_one(refresher, broken, pgt_id, respect_gate)


def _refresh_one(refresher: Refresher, broken: Broken, pgt_id: int, respect_gate: bool) -> RefreshResult:
    with refresher.snapshots.export() as base:
        with translate_errors():
            tables = _stream_tables(refresher, base.connection)
            wanted = next(table for table in tables if table.pgt_id == pgt_id)
            found = units(tables, catalog.refresh_groups(base.connection))
            run = Pass.at(refresher, base, tables, lambda result: None, broken)
        by_relid = {table.relid: table for table in tables}
        chosen = {wanted.relid}
        for table in _unit_of(wanted.relid, found).tables:
            if table.decision.gating == "hold_back":
                chosen |= with_upstream(table, by_relid)
        asked = dict.fromkeys((table.pgt_id for table in tables), "MANUAL")
        for unit in found:
            if not chosen.isdisjoint(table.relid for table in unit.tables):
                run.run(unit, asked, respect_gate)
    _finish(refresher.connection, (), bool(run.record.written))
    return _outcome(run, wanted.relid, _unit_of(wanted.relid, found))


def _outcome(run: Pass, relid: int, unit: Unit) -> RefreshResult:
    for member in (relid, *(table.relid for table in unit.tables)):
        if member in run.record.errors:
            raise run.record.errors[member]
    return run.record.results[relid]


def _unit_of(relid: int, found: Iterable[Unit]) -> Unit:
    return next(unit for unit in found if relid in {table.relid for table in unit.tables})


def _stream_tables(refresher: Refresher, reading: psycopg.Connection) -> tuple[catalog.StreamTable, ...]:
    return topological(
        catalog.stream_tables(
            reading, poll_interval=refresher.poll_interval, statement_timeout=refresher.statement_timeout
        )
    )


def _requests(connection: psycopg.Connection) -> dict[int, int]:
    return dict(connection.execute(REQUESTS).fetchall())


def _finish(connection: psycopg.Connection, requests: tuple[int, ...], wrote: bool) -> None:
    """Clean up: all of it can wait for the next tick where another session holds what it needs."""
    if requests:
        unless_locked(connection, FORGET, {"served": list(requests)})
    if wrote:
        unless_locked(connection, "SELECT pgtrickle.clean_change_buffers()")
    with translate_errors():
        work_out_moments(connection)
