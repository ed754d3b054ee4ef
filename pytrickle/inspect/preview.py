"""What would become of a query, told before anything is created: a draft is planned, then rolled back."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import psycopg

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.catalog.query_cost import query_cost
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.session_settings import session_statements
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.cut import Cut
from pytrickle.database import AGAIN_READABLE, USERS_SETTINGS, translate_errors
from pytrickle.defects import defects_named
from pytrickle.inspect.explain import Explanation
from pytrickle.plan.analysis import Analysis, analyse
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.explain import describe, render_preview
from pytrickle.plan.limits import Means
from pytrickle.plan.placement import Way, delta_way
from pytrickle.plan.planning import plan_differential, plan_refresh
from pytrickle.plan.query.meaning import understood
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.refresh.choosing import sized
from pytrickle.refresh.planner import Planner

DRAFT = "SELECT pgtrickle_private.draft_stream_table(%s, pg_catalog.current_setting('search_path'))"
CUT = "SELECT c.snapshot::text, c.xid::text, c.pos, c.lsn::text FROM pgtrickle.current_cut() AS c"
NAME = ("new", "stream_table")
BUFFER = "pgtrickle_changes.changes_{relid}"
STAND_IN = "pg_temp.changes_{relid}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A query as a stream table that nobody else sees: its catalog row, its analysis, and a cut to begin from."""

    table: StreamTable
    shape: Analysis
    cut: Cut

    def task(self, planner: Planner, changes: int | None) -> Task:
        """Return what a refresh has to do after so many changes in every source; all there is, without a number."""
        captured = {source.relid for source in self.shape.definition.sources if source.buffer}
        ranges = {
            each.relid: ChangeRange(
                each.relid, self.cut if changes else None, None, changes or 0 if each.relid in captured else 0
            )
            for each in self.table.dependencies
        }
        may_keep = planner.may_keep(self.table, self.shape)
        return Task(self.shape, ranges, planner.limits(self.table, Means.ALL), may_keep=may_keep)

    def plan(self, planner: Planner, changes: int | None) -> RefreshPlan:
        """Plan that refresh."""
        task = self.task(planner, changes)
        if self.shape.query is not None and changes:
            return plan_differential(task, delta_way(task.delta_rows))
        way = Way(Action.FULL, f"no delta rule: {self.shape.full_reason}" if changes else "first load")

        def whole(way: Way = way) -> RefreshPlan:
            return plan_refresh(task, way, self.table.refresh_mode, lambda: planner.query(task))

        return whole(sized(planner.connection, self.table, task, way, whole))

    def reading(self, buffer: str) -> "Draft":
        """Read changes from other change buffers, of which `buffer` is the name with a place for the number."""
        return replace(self, shape=replace(self.shape, definition=_buffered(self.shape.definition, buffer)))


def preview(planner: Planner, query: str) -> Explanation:
    """Explain the refreshes of a stream table that would be created from a query.

    Nothing is left behind: the query becomes a hidden view in a transaction that is rolled back. Sources are only read,
    so that no writer waits. Raises what create_stream_table raises for the query.
    """
    connection = planner.connection
    with translate_errors(), connection.transaction(force_rollback=True), defects_named("explaining a query"):
        facts = _facts(planner, _draft(connection, query))
    return Explanation(render_preview(facts), facts)


def _draft(connection: psycopg.Connection, query: str) -> Draft:
    connection.execute(USERS_SETTINGS)
    ((pgt_id,),) = connection.execute(DRAFT, (query,)).fetchall()
    connection.execute(AGAIN_READABLE)
    definition = _buffered(catalog.definition(connection, pgt_id), BUFFER)
    with server_probe(connection) as probe:
        shape = analyse(understood(definition, probe), probe)
    schema, name = NAME
    shown = replace(shape, definition=replace(shape.definition, schema=schema, name=name))
    ((*cut,),) = connection.execute(CUT).fetchall()
    return Draft(catalog.stream_table(connection, pgt_id), shown, Cut(*cut))


def _buffered(definition: Definition, buffer: str) -> Definition:
    """Have every source that can be captured read from a change buffer, whether there is one yet or not."""
    sources = tuple(
        source if source.kind == "UNCAPTURED" else replace(source, buffer=buffer.format(relid=source.relid))
        for source in definition.sources
    )
    return replace(definition, sources=sources)


def _facts(planner: Planner, draft: Draft) -> dict[str, Any]:
    """Describe the refresh after one change in every source, what the first load costs, and when engines change."""
    plan = draft.plan(planner, 1)
    # A query without sources has no changes: there is a first load and nothing after it.
    changed = (plan, draft.plan(planner, planner.small_delta_rows + 1)) if plan.delta_rows else ()
    described = describe(plan, {})
    return described | {
        "kept_groups": [each | {"table": None, "filled": True} for each in described["kept_groups"]],
        "gating": draft.table.decision.gating,
        "after": [_engine(each) for each in (*changed, draft.plan(planner, None))],
        "cost": _costs(planner, draft),
    }


def _engine(plan: RefreshPlan) -> Mapping[str, Any]:
    placement = plan.placement
    return {
        "changes": plan.delta_rows or None,
        "action": placement.action.value,
        "engine": placement.engine.value,
        "place": placement.place.value if placement.place else None,
    }


def _costs(planner: Planner, draft: Draft) -> dict[str, float | None]:
    """Ask PostgreSQL's planner what a refresh after one change and the first load cost, in its own units."""
    connection = planner.connection
    connection.execute("SELECT pgtrickle_private.draft_buffers(%s)", (draft.table.pgt_id,))
    standing = draft.reading(STAND_IN)
    return {name: _cost(connection, draft, standing.plan(planner, n)) for name, n in (("delta", 1), ("whole", None))}


def _cost(connection: psycopg.Connection, draft: Draft, plan: RefreshPlan) -> float | None:
    if plan.read is None:
        return None
    return query_cost(connection, plan.read.query, (*session_statements(draft.table), *plan.read.settings))
