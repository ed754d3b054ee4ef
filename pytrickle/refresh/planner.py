"""What planning needs to know of a stream table: its definition, the changes of its sources, how it stands."""

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

import psycopg
from psycopg.errors import UndefinedColumn

from pytrickle.catalog import change_ranges
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.buffer_statistics import WORTH_ANALYZING, BufferStatistics
from pytrickle.catalog.definition import ChangeRange, PastRefresh
from pytrickle.catalog.definition_stamp import definition_stamp
from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.searched_buffers import SearchedBuffers
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.config import EngineName
from pytrickle.cut import Cut
from pytrickle.database import Snapshot, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import Defect, DeltaTooLong, NotDifferentiable
from pytrickle.plan.analysis import Analysis, analyse
from pytrickle.plan.append_mode import check_append
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.at_cut import current_query, query_at, rewound
from pytrickle.plan.auto import WORTH_ASKING
from pytrickle.plan.delta_terms import least_length
from pytrickle.plan.difference import plan_difference
from pytrickle.plan.engines import faster_engine, worth_a_trial
from pytrickle.plan.limits import Limits, Means, limits_of
from pytrickle.plan.placement import Standing, Way
from pytrickle.plan.planning import plan_full, plan_refresh
from pytrickle.plan.query.meaning import understood
from pytrickle.plan.refresh_plan import FEW_CHANGES, FewRead, RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.refresh.choosing import Choice, Chosen, changed_sources
from pytrickle.refresh.foresight import Foresight
from pytrickle.refresh.guards import refuse_recomputing
from pytrickle.refresh.kept_plans import LONG
from pytrickle.refresh.remembered import Remembered
from pytrickle.refresh.standing import is_again, is_kept, limited, standing_of, with_state
from pytrickle.refresh.templates import Templates
from pytrickle.tracing import phase


@dataclass(slots=True)
class Planner:
    """Plans refreshes; `connection` probes queries. Remembers analysed definitions, and how long refreshes took.

    `engine` says who computes. With `auto`, up to `small_delta_rows` changed rows are joined in PostgreSQL; up to
    `direct_delta_rows` the refresher itself reads what PostgreSQL computed. `spark_runs` says whether Spark would
    compute without having to start, `has_spark` whether there is any.
    """

    connection: psycopg.Connection
    small_delta_rows: int
    direct_delta_rows: int
    engine: EngineName = EngineName.AUTO
    shapes: dict[int, tuple[str, Analysis]] = field(default_factory=dict)
    past: Remembered = field(default_factory=Remembered)
    templates: Templates = field(default_factory=Templates)
    statistics: BufferStatistics = field(default_factory=BufferStatistics)
    searched: SearchedBuffers = field(default_factory=SearchedBuffers)
    spark_runs: Callable[[], bool] = lambda: False
    has_spark: bool = True

    def shape(self, snapshot_connection: psycopg.Connection, pgt_id: int) -> Analysis:
        """Return the analysed definition of a stream table, read and analysed again only when its stamp changed."""
        stamp = definition_stamp(snapshot_connection, pgt_id)
        if known := self.unchanged_shape(pgt_id, stamp):
            return known
        with defects_named(f"analysing stream table number {pgt_id}"):
            definition = catalog.definition(snapshot_connection, pgt_id)
            with server_probe(self.connection) as probe:
                shape = analyse(understood(definition, probe), probe)
        self.shapes[pgt_id] = (stamp, shape)
        return shape

    def unchanged_shape(self, pgt_id: int, stamp: str) -> Analysis | None:
        """Return the analysed definition of a stream table, if it was analysed when it had this stamp."""
        known = self.shapes.get(pgt_id)
        return known[1] if known is not None and known[0] == stamp else None

    def leave_sums_to_postgresql(self, pgt_id: int) -> None:
        """Have PostgreSQL add up and sort a stream table's numerics from now on, until its definition changes."""
        stamp, shape = self.shapes[pgt_id]
        self.shapes[pgt_id] = (stamp, replace(shape, spark_sums=False))

    def known_shape(self, pgt_id: int) -> Analysis | None:
        """Return the definition of a stream table as it was last analysed, if it was."""
        known = self.shapes.get(pgt_id)
        return known[1] if known else None

    def ranges(
        self, snapshot: Snapshot, table: StreamTable, targets: Mapping[int, Cut | None], shape: Analysis | None = None
    ) -> dict[int, ChangeRange]:
        """Count what lies between the stream table's frontier and the targets; None is all that the snapshot shows.

        See also which changes come to nothing for a query of this shape, unless its columns have other names by now.
        """
        # A savepoint keeps the shared snapshot usable when reading for one stream table fails.
        with translate_errors():
            if shape:
                with suppress(UndefinedColumn), snapshot.connection.transaction():
                    return change_ranges.ranges(snapshot.connection, table, targets, shape.definition)
            with snapshot.connection.transaction():
                return change_ranges.ranges(snapshot.connection, table, targets)

    @phase("plan")
    def plan(
        self,
        snapshot: Snapshot,
        table: StreamTable,
        ranges: dict[int, ChangeRange],
        means: Means = Means.ALL,
        few: bool = False,
        may_give_up: bool = False,
    ) -> RefreshPlan:
        """Plan one refresh between the frontiers of some ranges, in which `means` may take part.

        With `few` the plan may be one by which few changes are read by statements whose plans PostgreSQL keeps, where
        that is worth it. With `may_give_up` it may be one that is given up after a while.
        """
        try:
            return self._planned(snapshot, table, ranges, means, few, may_give_up)
        except DeltaTooLong:
            stamp, shape = self.shapes[table.pgt_id]
            self.shapes[table.pgt_id] = (stamp, shape.without_delta(ranges.values()))
            return self._planned(snapshot, table, ranges, means, few, may_give_up)

    def _planned(
        self,
        snapshot: Snapshot,
        table: StreamTable,
        ranges: dict[int, ChangeRange],
        means: Means,
        few: bool,
        may_give_up: bool,
    ) -> RefreshPlan:
        snapshot_connection = snapshot.connection
        may_give_up = may_give_up and table.pgt_id not in self.past.unlimited
        with defects_named(f"planning {table.name}"), translate_errors(), snapshot_connection.transaction():
            shape, understanding = self._checked_shape(snapshot_connection, table)
            found = with_state(snapshot_connection, table, shape)
            task = self.task(found, shape, ranges, means)
            standing = standing_of(found, task, may_give_up)
            analyzing = partial(self._analyze, snapshot, table, ranges)
            chosen = self._choose(snapshot_connection, table, task, standing, analyzing)
            way = chosen.way
            refuse_recomputing(table, way.action, way.reason)
            preferring = self._preferring(snapshot_connection, table, task, way)
            if few and preferring is task and not way.tries and (long := self._long(task, way)):
                return long.because(table.decision.explained(way.reason))
            delta, task = chosen.delta if preferring is task else None, preferring
            again = means is Means.ALL and is_again(way, standing)
            plan = self._difference(snapshot_connection, table, task, way) if again else None
            plan = plan or plan_refresh(task, way, table.refresh_mode, lambda: self.query(task), delta)
            if plan.action is Action.DIFFERENTIAL and plan.read:
                analyzing()
        if way.most_seconds is not None and not plan.placement.direct:
            self.past.unlimited.add(table.pgt_id)
            return self.plan(snapshot, table, ranges, means, few)
        plan = plan.because(table.decision.explained(plan.reason))
        plan = replace(plan, choosing=chosen.seconds + understanding, other_seconds=way.other_seconds)
        return plan if way.most_seconds is None else limited(plan, way.most_seconds, snapshot_connection, table)

    def _checked_shape(self, snapshot_connection: psycopg.Connection, table: StreamTable) -> tuple[Analysis, float]:
        """Return the analysed definition, and for how long it was analysed now; raise where a mode forbids it."""
        known, began = self.known_shape(table.pgt_id), monotonic()
        shape = self.shape(snapshot_connection, table.pgt_id)
        understanding = 0.0 if shape is known else monotonic() - began
        if shape.full_reason and table.differential_only:
            kind = Defect if shape.defect else NotDifferentiable
            raise kind(f"{table.name} cannot be refreshed differentially: {shape.full_reason}.")
        if table.window_end is not None:
            check_append(shape, table.window_end)
        return shape, understanding

    @phase("plan")
    def foreseen(self, table: StreamTable, shape: Analysis, ranges: dict[int, ChangeRange]) -> RefreshPlan | None:
        """Plan a refresh without asking the database anything; None where it would have to be asked."""
        return Foresight(self.past, self.templates).plan(table, self.task(table, shape, ranges))

    def _difference(
        self, snapshot_connection: psycopg.Connection, table: StreamTable, task: Task, way: Way
    ) -> RefreshPlan | None:
        """Plan a whole refresh of little data as what it changes; None where it is to be done otherwise."""
        known = self.past.evidence(table.pgt_id, lambda: evidence(snapshot_connection, table))
        return plan_difference(task, way.sized(known), table.refresh_mode)

    def _long(self, task: Task, way: Way) -> RefreshPlan | None:
        """Plan few changes by a long statement whose plan is kept; None where it is short, or the plan is not."""
        if way.action is not Action.DIFFERENTIAL or task.delta_rows > FEW_CHANGES or least_length(task) < LONG:
            return None
        plan = self.templates.plan(task, way)
        return plan if plan.few and plan.few.keeps_plan else None

    def foreseen_read(self, pgt_id: int, ranges: Collection[ChangeRange]) -> FewRead | None:
        """Return what reads few changes if the same sources changed as the last time; None if that is not known."""
        return Foresight(self.past, self.templates).read(self.known_shape(pgt_id), ranges)

    def remember(self, pgt_id: int, plan: RefreshPlan, seconds: float) -> None:
        """Remember how long a refresh took, for the choice of the next one's way."""
        if plan.action is Action.REINITIALIZE:
            self.past.forget(pgt_id)
        if plan.may_keep and plan.kept_as is None:
            self.past.left_behind[pgt_id] += 1
        if not plan.computed_where_applied:
            self.past.grown.add(pgt_id)
        # Many changes that are many rows, too, are not taken in at once.
        in_vain = plan.delta_rows >= WORTH_ANALYZING and self.templates.copies(pgt_id)
        if plan.may_be_at_once and not in_vain:
            self.past.planned_few[pgt_id] = plan.expected_settings
        else:
            self.past.planned_few.pop(pgt_id, None)
        if plan.action is Action.REINITIALIZE:
            return
        spark = plan.placement.engine is EngineName.SPARK
        past = PastRefresh(plan.action is not Action.DIFFERENTIAL, plan.delta_rows, seconds, spark)
        self.past.add(pgt_id, past, changed_sources(plan.ranges))

    def give_up(self, plan: RefreshPlan, seconds: float) -> None:
        """Remember that what a plan reads takes longer than so many seconds."""
        whole = plan.action is not Action.DIFFERENTIAL
        changed = changed_sources(plan.ranges)
        self.past.give_up(plan.shape.definition.pgt_id, whole, plan.delta_rows, seconds, changed)

    def _analyze(self, snapshot: Snapshot, table: StreamTable, ranges: Mapping[int, ChangeRange]) -> None:
        """Let PostgreSQL know of many changes before it plans how to join them; within a unit it cannot."""
        if snapshot.connection is not self.connection:
            self.statistics.renew_read(self.connection, table, ranges, snapshot.cut)

    def _choose(
        self,
        snapshot_connection: psycopg.Connection,
        table: StreamTable,
        task: Task,
        standing: Standing,
        analyzing: Callable[[], None],
    ) -> Chosen:
        def whole() -> RefreshPlan:
            return plan_refresh(task, Way(Action.FULL, ""), table.refresh_mode, lambda: self.query(task))

        return Choice(snapshot_connection, table, task, standing, self.past, whole, analyzing).made()

    def _preferring(self, snapshot_connection: psycopg.Connection, table: StreamTable, task: Task, way: Way) -> Task:
        """Prefer the engine that was faster, or try Spark; after few changes too little is to be gained."""
        if task.limits.chosen or task.delta_rows < WORTH_ASKING:
            return task
        known = self.past.evidence(table.pgt_id, lambda: evidence(snapshot_connection, table))
        whole = way.action is not Action.DIFFERENTIAL
        if faster := faster_engine(known, task.delta_rows, whole):
            return task.preferring(*faster)
        untried = not whole and table.pgt_id not in self.past.tried and self.spark_runs()
        trial = worth_a_trial(known, task.delta_rows) if untried else None
        return task.preferring(EngineName.SPARK, trial) if trial else task

    def as_written(
        self, table: StreamTable, shape: Analysis, ranges: dict[int, ChangeRange], reason: str
    ) -> RefreshPlan:
        """Plan the evaluation of the query as PostgreSQL would by itself."""
        task = self.task(table, shape, ranges)
        return plan_full(task, self.query(task), Way(Action.FULL, reason))

    def query(self, task: Task) -> str:
        """Read the defining query at the new frontier."""
        if not rewound(task.ranges):
            return current_query(task.shape.definition)
        with server_probe(self.connection) as probe:
            return query_at(task.shape.definition, task.ranges, probe)

    def task(
        self, table: StreamTable, shape: Analysis, ranges: Mapping[int, ChangeRange], means: Means = Means.ALL
    ) -> Task:
        """Return what is to be done; the ranges may have been counted for an older shape."""
        limits = self.limits(table, means)
        read = {source.relid: source.used for source in shape.definition.sources}
        known = {relid: each.read_with(read[relid]) if relid in read else each for relid, each in ranges.items()}
        may_keep = self.may_keep(table, shape)
        keeps = may_keep and is_kept(table, shape)
        return Task(shape, known, limits, table.window_end, None, table.frozen_by, may_keep, keeps)

    def may_keep(self, table: StreamTable, shape: Analysis) -> bool:
        """Whether refreshes of a stream table use the groups within its query, if these are kept."""
        elsewhere = table.window_end or table.frozen_by or table.refresh_mode == "FULL"
        return bool(shape.kept) and not (elsewhere or self.limits(table, Means.ALL).spark)

    def limits(self, table: StreamTable, means: Means) -> Limits:
        """Return by which limits a stream table is refreshed."""
        limits = Limits(self.small_delta_rows, self.direct_delta_rows, means)
        return limits_of(self.engine, table.engine, limits, self.has_spark)
