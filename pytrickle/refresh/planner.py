"""Planning one refresh: which of its sources changed, how far to read them, and by which plan."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import psycopg

from pytrickle.apply.aggregate_state import state_table
from pytrickle.apply.limit import body_table
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.definition_stamp import definition_stamp
from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.cut import Cut
from pytrickle.database import Snapshot, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import Defect, NotDifferentiable
from pytrickle.plan.analysis import Analysis, analyse
from pytrickle.plan.append_mode import check_append
from pytrickle.plan.at_cut import query_at
from pytrickle.plan.auto import SLOW, WORTH_ASKING, Choice, choose_action, least_worth_asking
from pytrickle.plan.query.meaning import understood
from pytrickle.plan.refresh_plan import Action, RefreshPlan, plan_differential, plan_full, plan_initial
from pytrickle.refresh.values import RefreshResult


@dataclass(slots=True)
class Planner:
    """Plans refreshes; `connection` probes queries. Remembers analysed definitions, and which tables were slow.

    Up to `small_delta_rows` changed rows are joined in PostgreSQL; up to `direct_delta_rows` the refresher itself reads
    what PostgreSQL computed.
    """

    connection: psycopg.Connection
    small_delta_rows: int
    direct_delta_rows: int
    shapes: dict[int, tuple[str, Analysis]] = field(default_factory=dict)
    slow: set[int] = field(default_factory=set)

    def shape(self, reading: psycopg.Connection, pgt_id: int) -> Analysis:
        """Return the analysed definition of a stream table, read and analysed again only when its stamp changed."""
        stamp = definition_stamp(reading, pgt_id)
        known = self.shapes.get(pgt_id)
        if known is not None and known[0] == stamp:
            return known[1]
        with defects_named(f"analysing stream table number {pgt_id}"):
            definition = catalog.definition(reading, pgt_id)
            with server_probe(self.connection) as probe:
                shape = analyse(understood(definition, probe), probe)
        self.shapes[pgt_id] = (stamp, shape)
        return shape

    def known_shape(self, pgt_id: int) -> Analysis | None:
        """Return the definition of a stream table as it was last analysed, if it was."""
        known = self.shapes.get(pgt_id)
        return known[1] if known else None

    def windows(
        self, snapshot: Snapshot, table: StreamTable, targets: Mapping[int, Cut | None]
    ) -> dict[int, ChangeRange]:
        """Count what lies between the stream table's frontier and the targets; None is all that the snapshot shows."""
        # A savepoint keeps the shared snapshot usable when reading for one stream table fails.
        with translate_errors(), snapshot.connection.transaction():
            return catalog.windows(snapshot.connection, table, targets)

    def plan(
        self, snapshot: Snapshot, table: StreamTable, windows: dict[int, ChangeRange], inside: bool = False
    ) -> RefreshPlan:
        """Plan one refresh between the frontiers of some windows; `inside` a transaction Spark cannot read."""
        with defects_named(f"planning {table.name}"), translate_errors(), snapshot.connection.transaction():
            shape = self.shape(snapshot.connection, table.pgt_id)
            if shape.full_reason and table.refresh_mode == "DIFFERENTIAL":
                kind = Defect if shape.defect else NotDifferentiable
                raise kind(f"{table.name} cannot be refreshed differentially: {shape.full_reason}.")
            if table.window_end is not None:
                check_append(shape, table.window_end)
            table = _with_state(snapshot.connection, table, shape)
            choice = _choice(snapshot.connection, table, shape, windows, table.pgt_id in self.slow)
            plan = self._plan(table, shape, windows, choice, sys.maxsize if inside else self.small_delta_rows)
        direct = inside or (plan.read is not None and self._is_small(plan, choice))
        return replace(plan, direct=direct, reason=table.decision.explained(plan.reason))

    def _is_small(self, plan: RefreshPlan, choice: Choice | None) -> bool:
        """Whether few rows are handed on: those of few changes, or of a whole refresh of a stream table of few rows."""
        if plan.action is Action.DIFFERENTIAL:
            return plan.delta_rows <= self.direct_delta_rows
        chosen = choice is not None and choice.action is plan.action
        return chosen and choice is not None and choice.stored_rows <= self.direct_delta_rows

    def remember(self, pgt_id: int, result: RefreshResult) -> None:
        """Only tables that refreshed slowly are asked about after few changes: else that is a query for nothing."""
        if result.action == Action.DIFFERENTIAL:
            slow = result.duration.total_seconds() >= SLOW
            (self.slow.add if slow else self.slow.discard)(pgt_id)

    def _plan(
        self, table: StreamTable, shape: Analysis, windows: dict[int, ChangeRange], choice: Choice | None, small: int
    ) -> RefreshPlan:
        if not table.populated or table.reinitialize_reason:
            action = Action.REINITIALIZE if table.populated else Action.FULL
            reason = table.reinitialize_reason or "first load"
            return self._whole(table, shape, windows, action, reason)
        if table.refresh_mode == "FULL":
            return self._whole(table, shape, windows, Action.FULL, "refresh_mode is FULL")
        if table.output_mode == "complete":
            return self._whole(table, shape, windows, Action.FULL, "output_mode is complete")
        if shape.full_reason:
            return self._whole(table, shape, windows, Action.FULL, f"no delta rule: {shape.full_reason}")
        if choice is not None and choice.action is Action.FULL:
            return self._whole(table, shape, windows, Action.FULL, choice.reason)
        plan = plan_differential(shape, windows, small, state_table(table.pgt_id))
        return plan if choice is None else replace(plan, reason=choice.reason)

    def _whole(
        self, table: StreamTable, shape: Analysis, windows: dict[int, ChangeRange], action: Action, reason: str
    ) -> RefreshPlan:
        if shape.query is not None and table.refresh_mode != "FULL":
            return plan_initial(shape, windows, action, reason)
        return self.as_written(shape, windows, reason, action)

    def as_written(
        self, shape: Analysis, windows: dict[int, ChangeRange], reason: str, action: Action = Action.FULL
    ) -> RefreshPlan:
        """Plan the evaluation of the query as PostgreSQL would by itself."""
        with server_probe(self.connection) as probe:
            query = query_at(shape.definition, windows, probe)
        return plan_full(shape, query, windows, action, reason)


def _with_state(reading: psycopg.Connection, table: StreamTable, shape: Analysis) -> StreamTable:
    """Have a table computed anew that was refreshed as a whole so far, and so lacks what increments are added to."""
    needed = [state_table(table.pgt_id)] if shape.grouped else []
    needed += [body_table(table.pgt_id)] if shape.query and shape.query.top else []
    if not (needed and table.populated) or table.reinitialize_reason or table.refresh_mode == "FULL":
        return table
    found = "SELECT bool_and(to_regclass(name) IS NOT NULL) FROM unnest(%s::text[]) AS name"
    row = reading.execute(found, (needed,)).fetchone()
    return table if row and row[0] else replace(table, reinitialize_reason="its changes can be computed now")


def _choice(
    reading: psycopg.Connection, table: StreamTable, shape: Analysis, windows: dict[int, ChangeRange], slow: bool
) -> Choice | None:
    """AUTO's choice where there is one to make; few changes are worth another query for a slow table only."""
    delta_rows = sum(window.delta_rows for window in windows.values())
    asked = slow or delta_rows >= WORTH_ASKING
    if table.refresh_mode != "AUTO" or table.output_mode != "update" or shape.full_reason or not asked:
        return None
    known = evidence(reading, table)
    choice = choose_action(delta_rows, known, shape.grouped is not None, least_worth_asking(known))
    worth_telling = choice.action is Action.FULL or delta_rows >= WORTH_ASKING
    return choice if worth_telling else None


def needs_refresh(table: StreamTable, windows: Mapping[int, ChangeRange]) -> bool:
    """Whether a refresh could change anything: the first load, a void frontier, changes, or what no buffer shows."""
    return not table.follows_its_buffers or any(window.delta_rows for window in windows.values())
