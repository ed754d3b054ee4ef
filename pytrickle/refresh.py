"""One refresh, from the snapshot that is read to the transaction that is committed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol

import psycopg

from pytrickle.apply.accumulate import state_table
from pytrickle.apply.bulk import staging_table
from pytrickle.apply.commit import Commitment, Committed, commit
from pytrickle.catalog import refresh as catalog
from pytrickle.catalog.definition import Window
from pytrickle.catalog.evidence import evidence
from pytrickle.catalog.probe import server_probe
from pytrickle.catalog.refresh import StreamTable
from pytrickle.catalog.session import session_statements
from pytrickle.catalog.stamp import definition_stamp
from pytrickle.cut import Cut
from pytrickle.db import Snapshot, Snapshots, translate_errors
from pytrickle.errors import EvaluationFailed, NotDifferentiable, PytrickleError, UnknownStreamTable
from pytrickle.plan.choice import LARGE, SLOW, WORTH_ASKING, Choice, choose_action
from pytrickle.plan.full import query_at
from pytrickle.plan.refresh_plan import Action, RefreshPlan, plan_differential, plan_full, plan_initial
from pytrickle.plan.shape import Shape, analyse
from pytrickle.staged import Staged

AFTER_FAILURE = "the differential refresh failed: "
ORPHAN_HINT = "Remove what is left of it: SELECT pgtrickle.drop_stream_table(name)."


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """What one refresh did; `action` is NO_DATA, DIFFERENTIAL, FULL, REINITIALIZE, SKIP or, in a tick, FAILED.

    `duration` runs from the snapshot, or the end of the refresh before it in the same tick, to the commit.
    """

    stream_table: str
    action: str
    reason: str
    rows_inserted: int
    rows_deleted: int
    effective_watermark: datetime | None
    duration: timedelta
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """How far to refresh: a target cut per source (None or absent: all that the snapshot shows), and on whose behalf.

    `moment` is the time at which the base tables are read, which becomes the stream table's data_timestamp; `since` is
    the reading of the monotonic clock from which the refresh is timed.
    """

    targets: Mapping[int, Cut | None]
    moment: datetime
    initiated_by: str
    since: float


class Engine(Protocol):
    """Computes the rows of a plan in an exported snapshot: Spark, or what a test puts in its place."""

    def compute(
        self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...], staging: str | None = None
    ) -> Staged:
        """Return the rows that the plan stages, or write them to the staging table."""


@dataclass(slots=True)
class Refresher:
    """Refreshes stream tables through one write connection; remembers analysed definitions."""

    connection: psycopg.Connection
    engine: Engine
    small_delta_rows: int
    snapshots: Snapshots
    shapes: dict[int, tuple[str, Shape]] = field(default_factory=dict)
    slow: set[int] = field(default_factory=set)

    def shape(self, reading: psycopg.Connection, pgt_id: int) -> Shape:
        """Return the analysed definition of a stream table, read and analysed again only when its stamp changed."""
        stamp = definition_stamp(reading, pgt_id)
        known = self.shapes.get(pgt_id)
        if known is not None and known[0] == stamp:
            return known[1]
        definition = catalog.definition(reading, pgt_id)
        with server_probe(self.connection) as probe:
            shape = analyse(definition, probe)
        self.shapes[pgt_id] = (stamp, shape)
        return shape

    def windows(self, snapshot: Snapshot, table: StreamTable, targets: Mapping[int, Cut | None]) -> dict[int, Window]:
        """Count what lies between the stream table's frontier and the targets; None is all that the snapshot shows."""
        # A savepoint keeps the shared snapshot usable when reading for one stream table fails.
        with translate_errors(), snapshot.connection.transaction():
            return catalog.windows(snapshot.connection, table, targets)

    def plan(self, snapshot: Snapshot, table: StreamTable, windows: dict[int, Window]) -> RefreshPlan:
        """Plan one refresh between the frontiers of some windows."""
        with translate_errors(), snapshot.connection.transaction():
            shape = self.shape(snapshot.connection, table.pgt_id)
            if shape.full_reason and table.refresh_mode == "DIFFERENTIAL":
                raise NotDifferentiable(f"{table.name} cannot be refreshed differentially: {shape.full_reason}.")
            least = 1 if table.pgt_id in self.slow else WORTH_ASKING
            return self._plan(table, shape, windows, _choice(snapshot.connection, table, shape, windows, least))

    def refresh(self, snapshot: Snapshot, table: StreamTable, goal: Goal) -> tuple[RefreshResult, Committed | None]:
        """Refresh one stream table, reading everything in one snapshot and writing in one transaction."""
        if not table.exists:
            raise UnknownStreamTable(f"The table of {table.name} was dropped.", ORPHAN_HINT)
        windows = self.windows(snapshot, table, goal.targets)
        if not needs_refresh(table, windows):
            with translate_errors():
                self._settle(table, goal.moment)
            return _result(table, (Action.NO_DATA, table.decision.explained("no changes")), None, goal.since), None
        plan = self.plan(snapshot, table, windows)
        plan = replace(plan, reason=table.decision.explained(plan.reason))
        try:
            done = self._carry_out(plan, snapshot, table, goal)
        except PytrickleError as error:
            if plan.shape.query is None or table.refresh_mode == "FULL" or not _is_about_values(error):
                raise
            reason = f"{AFTER_FAILURE}{error}"
            plan = self._as_written(plan.shape, windows, table.decision.explained(reason))
            done = self._carry_out(plan, snapshot, table, goal, reason)
        result = _result(table, (plan.action, plan.reason), done, goal.since)
        self._remember(table.pgt_id, result)
        return result, done

    def _carry_out(
        self, plan: RefreshPlan, snapshot: Snapshot, table: StreamTable, goal: Goal, next_reason: str | None = None
    ) -> Committed:
        started = monotonic()
        settings = session_statements(table)
        with translate_errors(), staging_table(self.connection, plan, table.pgt_id) as staging:
            staged = self.engine.compute(plan, snapshot.name, settings, staging)
            what = Commitment(
                table.pgt_id,
                table.frontier_version,
                settings,
                snapshot.cut,
                goal.moment,
                table.decision.effective_watermark,
                goal.initiated_by,
                started,
                next_reason,
            )
            return commit(self.connection, plan, staged, what)

    def _remember(self, pgt_id: int, result: RefreshResult) -> None:
        """Only tables that refreshed slowly are asked about after few changes: else that is a query for nothing."""
        if result.action == Action.DIFFERENTIAL:
            slow = result.duration.total_seconds() >= SLOW
            (self.slow.add if slow else self.slow.discard)(pgt_id)

    def _plan(self, table: StreamTable, shape: Shape, windows: dict[int, Window], choice: Choice | None) -> RefreshPlan:
        if not table.populated or table.reinitialize_reason:
            action = Action.REINITIALIZE if table.populated else Action.FULL
            reason = table.reinitialize_reason or "first load"
            return self._whole(table, shape, windows, action, reason)
        if table.refresh_mode == "FULL":
            return self._whole(table, shape, windows, Action.FULL, "refresh_mode is FULL")
        if shape.full_reason:
            return self._whole(table, shape, windows, Action.FULL, f"no delta rule: {shape.full_reason}")
        if choice is not None and choice.action is Action.FULL:
            return self._whole(table, shape, windows, Action.FULL, choice.reason)
        plan = plan_differential(shape, windows, self.small_delta_rows, state_table(table.pgt_id))
        return plan if choice is None else replace(plan, reason=choice.reason)

    def _whole(
        self, table: StreamTable, shape: Shape, windows: dict[int, Window], action: Action, reason: str
    ) -> RefreshPlan:
        if shape.query is not None and table.refresh_mode != "FULL":
            return plan_initial(shape, windows, action, reason)
        return self._as_written(shape, windows, reason, action)

    def _as_written(
        self, shape: Shape, windows: dict[int, Window], reason: str, action: Action = Action.FULL
    ) -> RefreshPlan:
        """Plan the evaluation of the query as PostgreSQL would by itself."""
        with server_probe(self.connection) as probe:
            query = query_at(shape.definition, windows, probe)
        return plan_full(shape, query, windows, action, reason)

    def _settle(self, table: StreamTable, moment: datetime) -> None:
        """Without new rows only a higher effective watermark, or the end of a skip or an error, is worth a write."""
        watermark = table.decision.effective_watermark
        higher = watermark is not None and (table.effective_watermark is None or watermark > table.effective_watermark)
        if not (higher or table.last_skip_reason or table.last_error or table.gated_since):
            return
        self.connection.execute(
            "UPDATE pgtrickle.pgt_stream_tables SET effective_watermark = greatest(effective_watermark, %s),"
            " data_timestamp = %s, last_refresh_at = %s, last_skip_reason = NULL, last_error = NULL,"
            " gated_since = NULL, status = 'ACTIVE' WHERE pgt_id = %s AND frontier_version = %s",
            (watermark, moment, moment, table.pgt_id, table.frontier_version),
        )


def _is_about_values(error: PytrickleError) -> bool:
    """Whether an expression failed, perhaps on rows that the query as it is written never evaluates.

    The terms of a delta evaluate what comes and goes together, and an antijoin all rows before it takes some away.
    """
    return isinstance(error, EvaluationFailed) or (error.sqlstate or "")[:2] in {"21", "22"}


def _choice(
    reading: psycopg.Connection, table: StreamTable, shape: Shape, windows: dict[int, Window], least: int
) -> Choice | None:
    """AUTO's choice where there is one to make; after fewer than `least` changes none is worth another query."""
    delta_rows = sum(window.delta_rows for window in windows.values())
    if table.refresh_mode != "AUTO" or shape.full_reason or delta_rows < least:
        return None
    known = evidence(reading, table, least)
    if delta_rows < WORTH_ASKING and known.source_rows < LARGE:
        return None
    choice = choose_action(delta_rows, known, shape.grouped is not None, least)
    worth_telling = choice.action is Action.FULL or delta_rows >= WORTH_ASKING
    return choice if worth_telling else None


def needs_refresh(table: StreamTable, windows: Mapping[int, Window]) -> bool:
    """Whether a refresh could change anything: the first load, a void frontier, changes, or what no buffer shows."""
    changed = any(window.delta_rows for window in windows.values())
    uncaptured = any(dependency.buffer is None for dependency in table.dependencies)
    return not table.populated or bool(table.reinitialize_reason) or changed or uncaptured or table.time_dependent


def _result(table: StreamTable, done_as: tuple[Action, str], done: Committed | None, since: float) -> RefreshResult:
    watermarks = [w for w in (table.effective_watermark, table.decision.effective_watermark) if w is not None]
    action, reason = done_as
    return RefreshResult(
        table.name,
        action.value,
        reason,
        done.rows_inserted if done else 0,
        done.rows_deleted if done else 0,
        max(watermarks, default=None),
        timedelta(seconds=monotonic() - since),
    )
