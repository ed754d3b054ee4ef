"""What planning needs to know of a stream table: its definition, the changes of its sources, how it stands."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import psycopg

from pytrickle.catalog import change_ranges
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.definition_stamp import definition_stamp
from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.config import EngineName
from pytrickle.cut import Cut
from pytrickle.database import Snapshot, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import Defect, NotDifferentiable
from pytrickle.plan.analysis import Analysis, analyse
from pytrickle.plan.append_mode import check_append
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.at_cut import query_at
from pytrickle.plan.auto import SLOW
from pytrickle.plan.placement import Limits, Means, Standing, Way, limits_of
from pytrickle.plan.planning import plan_full, plan_refresh
from pytrickle.plan.postgres.merge_state import state_table
from pytrickle.plan.postgres.stored_rows import body_table
from pytrickle.plan.query.meaning import understood
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.refresh.values import RefreshResult


@dataclass(slots=True)
class Planner:
    """Plans refreshes; `connection` probes queries. Remembers analysed definitions, and which tables were slow.

    `engine` says who computes. With `auto`, up to `small_delta_rows` changed rows are joined in PostgreSQL; up to
    `direct_delta_rows` the refresher itself reads what PostgreSQL computed.
    """

    connection: psycopg.Connection
    small_delta_rows: int
    direct_delta_rows: int
    engine: EngineName = EngineName.AUTO
    shapes: dict[int, tuple[str, Analysis]] = field(default_factory=dict)
    slow: set[int] = field(default_factory=set)

    def shape(self, snapshot_connection: psycopg.Connection, pgt_id: int) -> Analysis:
        """Return the analysed definition of a stream table, read and analysed again only when its stamp changed."""
        stamp = definition_stamp(snapshot_connection, pgt_id)
        known = self.shapes.get(pgt_id)
        if known is not None and known[0] == stamp:
            return known[1]
        with defects_named(f"analysing stream table number {pgt_id}"):
            definition = catalog.definition(snapshot_connection, pgt_id)
            with server_probe(self.connection) as probe:
                shape = analyse(understood(definition, probe), probe)
        self.shapes[pgt_id] = (stamp, shape)
        return shape

    def known_shape(self, pgt_id: int) -> Analysis | None:
        """Return the definition of a stream table as it was last analysed, if it was."""
        known = self.shapes.get(pgt_id)
        return known[1] if known else None

    def ranges(
        self, snapshot: Snapshot, table: StreamTable, targets: Mapping[int, Cut | None]
    ) -> dict[int, ChangeRange]:
        """Count what lies between the stream table's frontier and the targets; None is all that the snapshot shows."""
        # A savepoint keeps the shared snapshot usable when reading for one stream table fails.
        with translate_errors(), snapshot.connection.transaction():
            return change_ranges.ranges(snapshot.connection, table, targets)

    def plan(
        self, snapshot: Snapshot, table: StreamTable, ranges: dict[int, ChangeRange], means: Means = Means.ALL
    ) -> RefreshPlan:
        """Plan one refresh between the frontiers of some ranges, in which `means` may take part."""
        snapshot_connection = snapshot.connection
        with defects_named(f"planning {table.name}"), translate_errors(), snapshot_connection.transaction():
            shape = self.shape(snapshot_connection, table.pgt_id)
            if shape.full_reason and table.refresh_mode == "DIFFERENTIAL":
                kind = Defect if shape.defect else NotDifferentiable
                raise kind(f"{table.name} cannot be refreshed differentially: {shape.full_reason}.")
            if table.window_end is not None:
                check_append(shape, table.window_end)
            task = Task(shape, ranges, self._limits(table, means), table.window_end)
            standing = _standing(_with_state(snapshot_connection, table, shape), task)
            known = evidence(snapshot_connection, table) if standing.has_choice(table.pgt_id in self.slow) else None
            plan = plan_refresh(task, standing, known, lambda: self._query(task))
        return plan.because(table.decision.explained(plan.reason))

    def remember(self, pgt_id: int, result: RefreshResult) -> None:
        """Remember whether a table refreshed slowly: after few changes only the past of such tables is asked for."""
        if result.action == Action.DIFFERENTIAL:
            slow = result.duration.total_seconds() >= SLOW
            (self.slow.add if slow else self.slow.discard)(pgt_id)

    def as_written(
        self, table: StreamTable, shape: Analysis, ranges: dict[int, ChangeRange], reason: str
    ) -> RefreshPlan:
        """Plan the evaluation of the query as PostgreSQL would by itself."""
        task = Task(shape, ranges, self._limits(table, Means.ALL), table.window_end)
        return plan_full(task, self._query(task), Way(Action.FULL, reason))

    def _query(self, task: Task) -> str:
        """Read the defining query at the new frontier."""
        with server_probe(self.connection) as probe:
            return query_at(task.shape.definition, task.ranges, probe)

    def _limits(self, table: StreamTable, means: Means) -> Limits:
        return limits_of(self.engine, table.engine, Limits(self.small_delta_rows, self.direct_delta_rows, means))


def _with_state(snapshot_connection: psycopg.Connection, table: StreamTable, shape: Analysis) -> StreamTable:
    """Have a table computed anew that was refreshed as a whole so far, and so lacks what increments are added to."""
    needed = [state_table(table.pgt_id)] if shape.grouped else []
    needed += [body_table(table.pgt_id)] if shape.query and shape.query.top else []
    lasting = table.populated and shape.definition.sources
    if not (needed and lasting) or table.reinitialize_reason or table.refresh_mode == "FULL":
        return table
    found = "SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest(%s::text[]) AS name"
    row = snapshot_connection.execute(found, (needed,)).fetchone()
    return table if row and row[0] else replace(table, reinitialize_reason="its changes can be computed now")


def _standing(table: StreamTable, task: Task) -> Standing:
    return Standing(
        table.populated,
        table.reinitialize_reason,
        table.refresh_mode,
        table.output_mode,
        task.shape.full_reason,
        task.shape.grouped is not None,
        task.delta_rows,
    )


def needs_refresh(table: StreamTable, ranges: Mapping[int, ChangeRange]) -> bool:
    """Whether a refresh could change anything: the first load, a void frontier, changes, or what no buffer shows."""
    return not table.follows_its_buffers or any(change_range.delta_rows for change_range in ranges.values())
