"""One refresh, from the snapshot that is read to the transaction that is committed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from logging import getLogger

import psycopg

from pytrickle.apply.closed_windows import has_closing
from pytrickle.apply.commit import commit, commit_within, conflicts
from pytrickle.apply.commitment import Committed
from pytrickle.apply.measures import WAIT, Measures
from pytrickle.apply.rewritten import check_not_rewritten
from pytrickle.apply.staging_table import staging_table
from pytrickle.apply.stream_table_row import MARK
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.gating import NOTHING_NEW
from pytrickle.catalog.kept_statistics import renew_kept
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.compute.postgres import read_directly
from pytrickle.compute.staged import Staged
from pytrickle.database import Snapshot, Snapshots, pipelined, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import (
    Defect,
    PytrickleError,
    RefreshConflict,
    SparkTooNarrow,
    StatementTimeout,
    UnknownStreamTable,
)
from pytrickle.plan.append_mode import asks_for_closing
from pytrickle.plan.limits import TOO_NARROW, Means
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.refresh.choosing import changed_sources
from pytrickle.refresh.guards import is_worth_another_way, respect_fuse
from pytrickle.refresh.keeping import Keeper
from pytrickle.refresh.other_way import time_given_up, time_other_way
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.standing import needs_refresh
from pytrickle.refresh.under_way import under_way
from pytrickle.refresh.values import (
    AFTER_FAILURE,
    Computation,
    Engine,
    Goal,
    RefreshResult,
    attempting,
    nothing_done,
    outcome,
)
from pytrickle.tracing import phase

AtOnce = Callable[[], tuple[RefreshResult, Committed | None] | None]


@dataclass(slots=True)
class Refresher:
    """Refreshes stream tables: plans them, has Spark or PostgreSQL compute, and writes through one connection."""

    connection: psycopg.Connection
    engine: Engine
    planner: Planner
    snapshots: Snapshots
    poll_interval: timedelta = timedelta(seconds=1)
    statement_timeout: timedelta | None = None

    def refresh(
        self, snapshot: Snapshot, table: StreamTable, goal: Goal, at_once: AtOnce | None = None
    ) -> tuple[RefreshResult, Committed | None]:
        """Refresh one stream table, reading everything in one snapshot and writing in one transaction.

        `at_once` tries once more to refresh it in a single transaction, now that it is known how.
        """
        measures = Measures()
        with defects_named(f"refreshing {table.name}"):
            with translate_errors(), pipelined(snapshot.connection):
                ranges = self.changed(snapshot, table, goal)
            if ranges is None:
                with translate_errors():
                    return self.mark_up_to_date(table, goal), None
            try:
                return self._planned(snapshot, table, goal, ranges, measures, at_once)
            except PytrickleError as error:
                shape = self.planner.known_shape(table.pgt_id)
                if shape is None or shape.query is None or not is_worth_another_way(table, error):
                    raise
                reason, defect = f"{AFTER_FAILURE}{error.kind}", str(error) if isinstance(error, Defect) else None
                plan = self.planner.as_written(table, shape, ranges, table.decision.explained(reason))
                again = Computation(table, goal, plan, next_reason=reason, defect=defect, measures=measures)
                return self._carry_out(again, snapshot)

    def _planned(
        self,
        snapshot: Snapshot,
        table: StreamTable,
        goal: Goal,
        ranges: dict[int, ChangeRange],
        measures: Measures,
        at_once: AtOnce | None,
    ) -> tuple[RefreshResult, Committed | None]:
        """Refresh by the plan that is best; by PostgreSQL alone where Spark cannot compute that exactly."""
        try:
            with translate_errors(), pipelined(snapshot.connection):
                may_return = at_once is not None and table.pgt_id not in self.planner.past.failed
                plan = self.planner.plan(snapshot, table, ranges, few=may_return, may_give_up=True)
            if plan.few and at_once:
                self.planner.past.planned_few[table.pgt_id] = plan.settings
                if done := at_once():
                    return done
                with translate_errors(), pipelined(snapshot.connection):
                    plan = self.planner.plan(snapshot, table, ranges)
            return self._carry_out(Computation(table, goal, plan, measures=measures), snapshot)
        except SparkTooNarrow as error:
            plan = self._without_spark(snapshot, table, ranges, error)
        except StatementTimeout:
            if plan.most_seconds is None:
                raise
            self.planner.give_up(plan, plan.most_seconds)
            measures.given_up(None if plan.lacks_groups else plan.most_seconds)
            with translate_errors():
                instead = self.planner.plan(snapshot, table, ranges)
            computation = Computation(table, goal, instead, measures=measures)
            done = self._carry_out(computation, snapshot)
            if snapshot.connection is not self.connection:
                time_given_up(self.planner, snapshot, plan, computation.settings, measures.of_its_own())
            return done
        return self._carry_out(Computation(table, goal, plan, measures=measures), snapshot)

    def _without_spark(
        self, snapshot: Snapshot, table: StreamTable, ranges: dict[int, ChangeRange], error: SparkTooNarrow
    ) -> RefreshPlan:
        plan = self.planner.plan(snapshot, table, ranges, Means.POSTGRES)
        self.planner.leave_sums_to_postgresql(table.pgt_id)
        getLogger(__name__).warning("%s is refreshed by PostgreSQL: %s", table.name, error.message)
        return plan.alone(TOO_NARROW)

    def beside(self, connection: psycopg.Connection) -> "Refresher":
        """Return a refresher that works beside this one on another connection, knowing what this one knows."""
        return replace(self, connection=connection, planner=replace(self.planner, connection=connection))

    def precompute(self, snapshot: Snapshot, table: StreamTable, goal: Goal, inside: bool = False) -> Computation:
        """Compute a refresh that is committed later, together with others; `inside` the transaction of those.

        Rows that Spark would write to a staging table are read directly: that transaction does not see such a table.
        """
        measures, ranges = Measures(), self.changed(snapshot, table, goal)
        if ranges is None:
            return Computation(table, goal)
        means = Means.POSTGRES if inside else Means.NO_STAGING_TABLE
        computation = Computation(table, goal, self.planner.plan(snapshot, table, ranges, means), measures=measures)
        with attempting(computation.plan), translate_errors():
            try:
                self._stage(computation, snapshot)
            except SparkTooNarrow as error:
                plan = self._without_spark(snapshot, table, ranges, error)
                computation = Computation(table, goal, plan, measures=measures)
                self._stage(computation, snapshot)
        return computation

    def _stage(self, computation: Computation, snapshot: Snapshot) -> None:
        assert computation.plan is not None
        computation.planned()
        computation.staged = self._compute(computation, computation.plan, snapshot, None)
        computation.measures.enter(WAIT)

    def result(self, computation: Computation, done: Committed | None) -> RefreshResult:
        """Tell what a refresh did, and remember how long it took."""
        plan, since = computation.plan, computation.goal.since
        if plan is None:
            return nothing_done(computation.table, since)
        done_as = (plan.action, plan.told)
        if plan.kept_as is not None:
            del self.planner.past.untaken[computation.table.pgt_id]
        result = outcome(computation.table, done_as, done, since, plan.placement.engine.value)
        self.planner.remember(computation.table.pgt_id, plan, computation.measures.of_its_own())
        return result

    def mark_up_to_date(self, table: StreamTable, goal: Goal) -> RefreshResult:
        """Take note that a stream table shows everything already."""
        self._write_up_to_date(table, goal.moment)
        return self.result(Computation(table, goal), None)

    @phase("count changes")
    def changed(self, snapshot: Snapshot, table: StreamTable, goal: Goal) -> dict[int, ChangeRange] | None:
        """Return the ranges to read, or None where nothing could change.

        Raise UnknownStreamTable where the table itself is gone, FuseBlown where there are too many changes,
        RefreshConflict where capture was altered between the snapshot of the pass and a later one.
        """
        if not table.exists:
            literal = table.name.replace("'", "''")
            hint = f"Remove what is left of it: SELECT pgtrickle.drop_stream_table('{literal}')."
            raise UnknownStreamTable(f"The table of {table.name} was dropped.", hint)
        if goal.captured:
            goal.captured.confirm(goal.captured.ask(snapshot.connection))
        shape, counted = self.planner.known_shape(table.pgt_id), goal.counted.get(snapshot.name)
        ranges = counted or self.planner.ranges(snapshot, table, goal.targets, shape)
        self.planner.searched.note(table, ranges)
        if not needs_refresh(table, ranges):
            with translate_errors(), snapshot.connection.transaction():
                return ranges if self._closes_windows(snapshot, table) else None
        delta_rows = sum(change_range.delta_rows for change_range in ranges.values())
        respect_fuse(table, delta_rows)
        lasting = table.populated and table.refresh_mode != "FULL"
        if lasting and snapshot.connection is not self.connection:
            renew_kept(self.connection, table.pgt_id)
        return ranges

    def _closes_windows(self, snapshot: Snapshot, table: StreamTable) -> bool:
        """Whether there is something of windows that its effective watermark closes now."""
        through = table.decision.effective_watermark
        if not table.may_close or table.window_end is None or through is None:
            return False
        shape = self.planner.shape(snapshot.connection, table.pgt_id)
        return has_closing(snapshot.connection, asks_for_closing(shape, table.window_end), through)

    def _carry_out(self, computation: Computation, snapshot: Snapshot) -> tuple[RefreshResult, Committed | None]:
        plan, table = computation.plan, computation.table
        assert plan is not None
        computation.planned()
        due = self.planner.past.is_due_again(table.pgt_id, changed_sources(plan.ranges), plan.delta_rows)
        done = self._carried_out(computation, plan, snapshot)
        if snapshot.connection is not self.connection:
            time_other_way(self.planner, snapshot, computation, again=due)
        Keeper(self.connection, self.planner).keep(table, plan)
        return done

    def _carried_out(
        self, computation: Computation, plan: RefreshPlan, snapshot: Snapshot
    ) -> tuple[RefreshResult, Committed | None]:
        with under_way(self.connection, computation.table.pgt_id):
            if plan.computed_where_applied:
                try:
                    return self._carry_out_within(computation, plan, snapshot)
                except RefreshConflict as conflict:
                    # Perhaps only what is not about the frontier was altered, such as a schedule: no obstacle.
                    if not isinstance(conflict.__cause__, psycopg.errors.SerializationFailure):
                        raise
            return self._carry_out_staged(computation, plan, snapshot)

    def _carry_out_staged(
        self, computation: Computation, plan: RefreshPlan, snapshot: Snapshot
    ) -> tuple[RefreshResult, Committed | None]:
        """Compute the rows in the snapshot, then write them in a transaction of their own."""
        with (
            attempting(plan),
            translate_errors(),
            staging_table(self.connection, plan.staging, computation.table.pgt_id) as staging,
            self._compute(computation, plan, snapshot, staging) as staged,
        ):
            done = commit(self.connection, plan, staged, computation.commitment(snapshot.cut))
        return self.result(computation, done), done

    def _carry_out_within(
        self, computation: Computation, plan: RefreshPlan, snapshot: Snapshot
    ) -> tuple[RefreshResult, Committed | None]:
        """Compute few changes where they are applied, at the same snapshot."""
        with attempting(plan), translate_errors():
            done = commit_within(self.connection, plan, computation.commitment(snapshot.cut), snapshot.name)
        return self.result(computation, done), done

    @phase("compute")
    def _compute(self, computation: Computation, plan: RefreshPlan, snapshot: Snapshot, staging: str | None) -> Staged:
        table, settings, direct = computation.table, computation.settings, plan.placement.direct
        if direct:
            staged = read_directly(snapshot.connection, plan, settings)
        else:
            if plan.join:
                self.planner.past.tried.add(table.pgt_id)
            staged = self.engine.compute(plan, snapshot.name, settings, staging)
        try:
            check_not_rewritten(snapshot.connection, table.pgt_id, elsewhere=not direct)
        except BaseException:
            staged.close()
            raise
        return staged

    @conflicts()
    def _write_up_to_date(self, table: StreamTable, moment: datetime) -> None:
        """Without new rows, still write a higher effective watermark, the end of a skip or error, a schedule served."""
        decided = table.decision.effective
        higher = decided.exceeds(table.effective) or table.decision.let_through != NOTHING_NEW
        if not (higher or table.last_skip_reason or table.last_error or table.timed or table.gated_since):
            return
        self.connection.execute(
            MARK,
            {
                "pgt_id": table.pgt_id,
                "frontier_version": table.frontier_version,
                "view_stamp": table.view_stamp,
                "moment": moment,
                "watermark": decided.watermark,
                "batch": decided.batch,
                "let_through": table.decision.let_through,
            },
        )
