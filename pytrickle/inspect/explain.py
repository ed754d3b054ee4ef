"""Explaining a stream table: its gating decision and the plan of its next refresh, neither of which is executed."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from html import escape
from typing import Any

import psycopg
from psycopg.rows import dict_row
from sqlalchemy import bindparam, func, select

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.refresh_groups import ask_refresh_groups, refresh_groups
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.catalog.tables import refresh_history
from pytrickle.config import EngineName
from pytrickle.database import SAFE_PATH, Snapshot, filled, settle, translate_errors
from pytrickle.database.statement import statement
from pytrickle.errors import UnknownStreamTable
from pytrickle.inspect.concurrency import beside, together_with
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.auto import expected, least_worth_asking
from pytrickle.plan.explain import describe, render_queries, render_text
from pytrickle.plan.quote import Quote
from pytrickle.plan.refresh_plan import PostgresQuery, RefreshPlan
from pytrickle.refresh.cycle.rules import Member, Outlook, outlook, plan_member
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.standing import needs_refresh
from pytrickle.schedule.dag import topological
from pytrickle.schedule.units import units

HISTORY = refresh_history.c
STATE = """
SELECT s.*, pgtrickle_private.waits_after_failure(t) AS waits
FROM pgtrickle.pgt_status() AS s JOIN pgtrickle.pgt_stream_tables AS t USING (pgt_id) WHERE s.pgt_id = %s
"""
LAST = statement(
    select(
        HISTORY.action,
        HISTORY.status,
        func.coalesce(HISTORY.error, HISTORY.reason),
        HISTORY.finished_at,
    )
    .where(HISTORY.pgt_id == bindparam("pgt_id"))
    .order_by(HISTORY.refresh_id.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """An explanation as text for people and as data for programs."""

    text: str
    data: dict[str, Any]

    @property
    def sql(self) -> str:
        """The queries that a refresh runs, which the text leaves out."""
        return render_queries(self.data)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return f"<pre>{escape(self.text)}</pre>"


def explain(refresher: Refresher, pgt_id: int, limit: int) -> Explanation:
    """Plan the next refresh of one stream table and describe it; up to `limit` refreshes may run at the same time.

    Where there is nothing to do, the plan is that for one change in every source, and says so.
    """
    with refresher.snapshots.export() as snapshot:
        with translate_errors():
            tables = topological(catalog.stream_tables(snapshot.connection))
            found_units = units(tables, refresh_groups(ask_refresh_groups(snapshot.connection)))
        table = _named(tables, pgt_id)
        cycle = outlook(refresher.planner, snapshot, pgt_id)
        shape = None if cycle else _shape(refresher, snapshot, pgt_id)
        ranges = refresher.planner.ranges(snapshot, table, table.decision.caps, shape)
        untouched = not needs_refresh(table, ranges)
        supposed = cycle.quiet if cycle else untouched
        plan = _plan(refresher, snapshot, table, _with_changes(table, ranges) if untouched else ranges, cycle)
        with translate_errors():
            found, last = _state(snapshot.connection, pgt_id), _last(snapshot.connection, pgt_id)
            behind = _freshness(snapshot.connection, pgt_id)
            estimates = _estimates(snapshot.connection, plan)
            whole_from_rows = None if cycle else _whole_from_rows(snapshot.connection, table, plan)
    facts = describe(plan, estimates) | _completeness(table)
    facts |= {
        "whole_from_rows": whole_from_rows,
        "supposing_changes": supposed,
        "cycle": asdict(cycle) if cycle else None,
        "late_changes": found.get("late_changes"),
        "freshness": behind,
        "last": last,
        "next": _outlook(found, supposed),
    }
    unit = next(unit for unit in found_units if table in unit.tables)
    facts |= {"together_with": together_with(unit, table.relid), "beside": beside(found_units, unit, limit)}
    return Explanation(render_text(facts), facts)


def _completeness(table: StreamTable) -> dict[str, Any]:
    """Describe through which watermark a stream table may be refreshed, and which of its rows are frozen."""
    decision = table.decision
    return {
        "gating": decision.gating,
        "decision": decision.decision,
        "gating_reason": decision.reason,
        "waiting_for": decision.waiting_for,
        "effective_watermark": decision.effective_watermark.isoformat() if decision.effective_watermark else None,
        "effective_batch": decision.effective_batch,
        "frozen_by": table.frozen_by,
        "frozen_before": table.frozen_before,
    }


def _named(tables: Iterable[StreamTable], pgt_id: int) -> StreamTable:
    for table in tables:
        if table.pgt_id == pgt_id:
            return table
    raise UnknownStreamTable("The stream table was dropped meanwhile.")


def _shape(refresher: Refresher, snapshot: Snapshot, pgt_id: int) -> Analysis:
    with translate_errors(), snapshot.connection.transaction():
        return refresher.planner.shape(snapshot.connection, pgt_id)


def _plan(
    refresher: Refresher, snapshot: Snapshot, table: StreamTable, ranges: dict[int, ChangeRange], cycle: Outlook | None
) -> RefreshPlan:
    """Plan the refresh; in a cycle, the last one, over all that its rounds find, of which nothing is known yet."""
    if cycle is None or cycle.refused:
        return refresher.planner.plan(snapshot, table, ranges, may_give_up=True)
    shape = refresher.planner.shape(snapshot.connection, table.pgt_id)
    return plan_member(Member(table, shape, ranges), shape, ranges, cycle.anew)


def _state(connection: psycopg.Connection, pgt_id: int) -> dict[str, Any]:
    """Read the stream table's row of pgt_status()."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(STATE, (pgt_id,))
        return cursor.fetchone() or {}


def _freshness(connection: psycopg.Connection, pgt_id: int) -> dict[str, Any]:
    """Read how far the stream table is behind its sources, and why."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            "SELECT status, extract(epoch FROM lag)::float8 AS lag_seconds, cause, culprit, reason"
            " FROM pgtrickle.freshness() WHERE pgt_id = %s",
            (pgt_id,),
        )
        return cursor.fetchone() or {}


def _last(connection: psycopg.Connection, pgt_id: int) -> str | None:
    """Say what the last tick that did anything about the stream table did, and why."""
    row = connection.execute(LAST, {"pgt_id": pgt_id}).fetchone()
    if row is None:
        return None
    action, status, reason, finished = row
    return f"{action} {status.lower()} at {_moment(finished)}: {reason}"


def _moment(value: datetime | None) -> str:
    return value.astimezone(UTC).isoformat(" ", "seconds") if value else "any time"


def _outlook(state: Mapping[str, Any], quiet: bool) -> str:
    """Say whether the next tick refreshes the stream table, or what would make one do so."""
    cases = (
        (state["paused"], "paused: resume it"),
        (state["status"] == "SUSPENDED", "suspended after repeated failure: resume it"),
        (state["tier"] == "frozen", "frozen: give it another tier"),
        (state["waits"], f"failed, and is tried again at {_moment(state['retry_at'])}"),
        (state["decision"] != "run", f"waits: {state['reason']}"),
        (_is_blown(state), "held by its fuse: look at the delta and reset the fuse"),
        (not state["due"], f"not due: its schedule is {state['effective_schedule']}"),
        (quiet, "runs as soon as a source changes"),
    )
    return next((sentence for holds, sentence in cases if holds), "the next tick refreshes it")


def _is_blown(state: Mapping[str, Any]) -> bool:
    return state["fuse_blown_at"] is not None and state["fuse_blown_at"].year > datetime.min.year


def _with_changes(table: StreamTable, ranges: dict[int, ChangeRange]) -> dict[int, ChangeRange]:
    captured = {dependency.relid for dependency in table.dependencies if dependency.buffer}
    return {relid: replace(w, delta_rows=1, idle_in=None) if relid in captured else w for relid, w in ranges.items()}


def _whole_from_rows(connection: psycopg.Connection, table: StreamTable, plan: RefreshPlan) -> int | None:
    """The number of changed rows from which AUTO would refresh as a whole, if it has a choice."""
    if table.refresh_mode != "AUTO" or plan.shape.full_reason:
        return None
    known = evidence(connection, table)
    least = least_worth_asking(known, plan.placement.engine is EngineName.SPARK, plan.length)
    return expected(known, plan.shape.grouped is not None, Quote(plan.length)).switch_rows(least)


def _estimates(connection: psycopg.Connection, plan: RefreshPlan) -> dict[str, int]:
    """Ask PostgreSQL how many rows it expects of the queries that it will run."""
    queries = [postgres_query for postgres_query in (plan.read, plan.keyed) if postgres_query]
    found = {postgres_query.query: _estimate(connection, postgres_query) for postgres_query in queries}
    return {query: rows for query, rows in found.items() if rows is not None}


def _estimate(connection: psycopg.Connection, postgres_query: PostgresQuery) -> int | None:
    # What PostgreSQL refuses to plan is still worth explaining: the refresh itself will say why it was refused.
    try:
        with connection.transaction(force_rollback=True):
            connection.execute(filled("SET LOCAL search_path = {path}", path=SAFE_PATH))
            settle(connection, postgres_query.settings)
            row = connection.execute(filled("EXPLAIN (FORMAT JSON) {query}", query=postgres_query.query)).fetchone()
    except psycopg.Error:
        return None
    return int(row[0][0]["Plan"]["Plan Rows"]) if row else None
