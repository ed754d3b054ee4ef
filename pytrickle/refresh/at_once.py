"""A refresh of few changes in one transaction: they are counted, computed and applied at one snapshot."""

from dataclasses import dataclass
from time import monotonic

import psycopg

from pytrickle.apply.commit import read_and_commit, reading_at, transaction
from pytrickle.apply.measures import COMPUTE
from pytrickle.catalog.change_ranges import ranges
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.definition_stamp import Standing, ask_standing, standing
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.compute.postgres import undone
from pytrickle.database import Snapshot, pipelined, settle, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import PytrickleError, RefreshConflict
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.refresh.guards import is_worth_another_way, respect_fuse
from pytrickle.refresh.member import Done
from pytrickle.refresh.planner import kept_tables, needs_refresh
from pytrickle.refresh.refresher import MANY_CHANGES, Refresher
from pytrickle.refresh.values import Computation, Goal


def refresh_at_once(refresher: Refresher, table: StreamTable, goal: Goal, base: Snapshot | None) -> Done | None:
    """Refresh a stream table as its last refresh leads to expect: by few changes, of a definition that is known.

    It is read in the snapshot `base`, without one in a later snapshot of its own. Return None where it must be
    refreshed another way after all; nothing was written then.
    """
    expected = refresher.planner.past.planned_few.get(table.pgt_id)
    shape = refresher.planner.known_shape(table.pgt_id)
    if expected is None or shape is None or not table.follows_its_buffers or table.window_end is not None:
        return None
    try:
        with defects_named(f"refreshing {table.name}"), translate_errors():
            return AtOnce(refresher, table, goal, base, kept_tables(shape)).refresh(expected)
    except RefreshConflict as conflict:
        # Perhaps only what is not about the frontier was altered, such as a schedule, which is no obstacle.
        if not isinstance(conflict.__cause__, psycopg.errors.SerializationFailure):
            raise
    except PytrickleError as error:
        if not is_worth_another_way(table, error):
            raise
    return None


@dataclass(frozen=True, slots=True)
class AtOnce:
    """One such refresh, which needs some hidden tables to be there."""

    refresher: Refresher
    table: StreamTable
    goal: Goal
    base: Snapshot | None
    needed: list[str]

    def refresh(self, expected: tuple[str, ...]) -> Done | None:
        """Carry it out, by a plan that reads under the `expected` settings if all is as it was; None if it cannot."""
        connection, computation, taken = self.refresher.connection, Computation(self.table, self.goal), monotonic()
        name = self.base.name if self.base else None
        with transaction(connection, reading_at(name, (*computation.settings, *expected))):
            found, changed = self._standing()
            shape = self.refresher.planner.unchanged_shape(self.table.pgt_id, found.stamp)
            cut = self.base.cut if self.base else found.cut
            if shape is None or cut is None or not found.complete:
                return None
            if needs_refresh(self.table, changed):
                plan = self._plan(shape, changed)
                if plan is None:
                    return None
                if plan.settings != expected:
                    settle(connection, (*undone(expected), *plan.settings))
                computation.plan = plan
                computation.measures.enter(COMPUTE)
                what = self.refresher.commitment(computation, Snapshot(connection, name or "", cut, taken))
                done = read_and_commit(connection, plan, what)
                return self.refresher.result(computation, done), done
        return self.refresher.mark_up_to_date(self.table, self.goal), None

    def _standing(self) -> tuple[Standing, dict[int, ChangeRange]]:
        """Ask how the definition stands, and count the changes."""
        connection = self.refresher.connection
        with pipelined(connection):
            asked = ask_standing(connection, self.table.pgt_id, self.needed, cut=self.base is None)
            changed = ranges(connection, self.table, self.goal.targets)
            return standing(asked), changed

    def _plan(self, shape: Analysis, changed: dict[int, ChangeRange]) -> RefreshPlan | None:
        """Plan it, if all that the plan depends on is known, and if the changes are few."""
        delta_rows = sum(change_range.delta_rows for change_range in changed.values())
        respect_fuse(self.table, delta_rows)
        if delta_rows >= MANY_CHANGES:
            return None
        with defects_named(f"planning {self.table.name}"):
            plan = self.refresher.planner.foreseen(self.table, shape, changed)
        return plan if plan and plan.computed_where_applied else None
