"""A refresh of few changes in one transaction: they are counted, computed and applied at one snapshot."""

from dataclasses import dataclass, replace
from time import monotonic

import psycopg

from pytrickle.apply.commit import read_and_commit, reading_at, transaction, write_few
from pytrickle.apply.commitment import Commitment, Committed
from pytrickle.apply.few_rows import MOST_GROUPS, FewRows, answered, ask_few
from pytrickle.apply.kept_groups import given_rows
from pytrickle.apply.measures import APPLY
from pytrickle.catalog.change_ranges import ask_counts, counted, partly_read, uncounted_ranges
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.definition_stamp import Standing, ask_standing, standing
from pytrickle.catalog.kept_statistics import renew_kept
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.compute.postgres import reset
from pytrickle.database import Snapshot, pipelined, settle, translate_errors
from pytrickle.defects import defects_named
from pytrickle.errors import PytrickleError, RefreshConflict
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.refresh_plan import FewRead, RefreshPlan
from pytrickle.refresh.guards import is_worth_another_way, respect_fuse
from pytrickle.refresh.kept_plans import too_many_untold
from pytrickle.refresh.member import Done
from pytrickle.refresh.refresher import Refresher
from pytrickle.refresh.standing import kept_tables, needs_refresh
from pytrickle.refresh.values import Computation, Goal
from pytrickle.tracing import phase


def refresh_at_once(refresher: Refresher, table: StreamTable, goal: Goal, base: Snapshot | None) -> Done | None:
    """Refresh a stream table as its last refresh leads to expect: by few changes, of a definition that is known.

    It is read in the snapshot `base`, without one in a later snapshot of its own. Return None where it must be
    refreshed another way after all; nothing was written then.
    """
    past = refresher.planner.past
    past.failed.discard(table.pgt_id)
    expected = past.planned_few.get(table.pgt_id)
    shape = refresher.planner.known_shape(table.pgt_id)
    if expected is None or shape is None or not table.follows_its_buffers or table.window_end is not None:
        return None
    try:
        with defects_named(f"refreshing {table.name}"), translate_errors():
            _renew_statistics(refresher, table)
            if done := AtOnce(refresher, table, goal, base, kept_tables(table, shape)).refresh(expected):
                return done
    except RefreshConflict as conflict:
        # Perhaps only what is not about the frontier was altered, such as a schedule, which is no obstacle.
        if not isinstance(conflict.__cause__, psycopg.errors.SerializationFailure):
            raise
    except PytrickleError as error:
        if not is_worth_another_way(table, error):
            raise
    else:
        return None
    past.failed.add(table.pgt_id)
    return None


def _renew_statistics(refresher: Refresher, table: StreamTable) -> None:
    """Have what many changes have filled analyzed, as other refreshes have it before they are planned."""
    if table.pgt_id in refresher.planner.past.grown:
        refresher.planner.past.grown.discard(table.pgt_id)
        renew_kept(refresher.connection, table.pgt_id)


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
            if (seen := self._look(expected)) is None:
                return None
            if self.base:
                self.goal.counted[self.base.name] = seen.changed
            cut = self.base.cut if self.base else seen.standing.cut
            if seen.shape is None or cut is None or not seen.standing.complete:
                return None
            if needs_refresh(self.table, seen.changed):
                if (read := self._read(seen, seen.shape, expected)) is None:
                    return None
                computation.plan, few = read
                computation.planned()
                snapshot = Snapshot(connection, name or "", cut, taken, self.goal.moment)
                what = computation.commitment(snapshot.cut)
                done = self._write(computation.plan, few, what)
                return self.refresher.result(computation, done), done
        return self.refresher.mark_up_to_date(self.table, self.goal), None

    @phase("count changes")
    def _look(self, expected: tuple[str, ...]) -> "Seen | None":
        """Ask how the definition stands, count the changes, and read them already, as if the same sources changed.

        Return None where that reading failed: perhaps it belongs to an older definition, so it is not tried again.
        """
        planner = self.refresher.planner
        uncounted = uncounted_ranges(self.table, self.goal.targets)
        foreseen = planner.foreseen_read(self.table.pgt_id, uncounted.values())
        try:
            return self._answers(uncounted, foreseen if foreseen and foreseen.settings == expected else None)
        except psycopg.Error as error:
            planner.templates.forget(self.table.pgt_id)
            # Of a limit, or a lost connection, nothing would come another way either.
            renamed = isinstance(error, psycopg.errors.UndefinedColumn)
            if isinstance(error, psycopg.OperationalError) or (foreseen is None and not renamed):
                raise
            planner.past.failed.add(self.table.pgt_id)
            return None

    def _answers(self, uncounted: dict[int, ChangeRange], foreseen: FewRead | None) -> "Seen":
        connection, known = self.refresher.connection, self.refresher.planner.known_shape(self.table.pgt_id)
        read = partly_read(known.definition if known else None)
        with pipelined(connection) as together:
            stands = ask_standing(connection, self.table.pgt_id, self.needed, cut=self.base is None)
            captured = self.goal.captured.ask(connection) if self.goal.captured else None
            counts = ask_counts(connection, self.table, uncounted, read)
            asked = ask_few(connection, foreseen, too_many_untold(foreseen)) if foreseen and together else []
            if self.goal.captured and captured:
                self.goal.captured.confirm(captured)
            found, changed = standing(stands), counted(uncounted, counts, read)
            self.refresher.planner.searched.note(self.table, changed)
            shape = self.refresher.planner.unchanged_shape(self.table.pgt_id, found.stamp)
            plan = self._plan(shape, changed) if shape and needs_refresh(self.table, changed) else None
            if plan and plan.few and plan.few == foreseen and asked:
                return Seen(found, changed, shape, plan, answered(plan.few, asked), True)
        return Seen(found, changed, shape, plan)

    def _read(
        self, seen: "Seen", shape: Analysis, expected: tuple[str, ...]
    ) -> tuple[RefreshPlan, FewRows | None] | None:
        """Return a plan, and the rows if they are few; where they are many, a plan by which they are copied."""
        connection, plan, few = self.refresher.connection, seen.plan, seen.few
        if plan is None:
            return None
        if plan.settings != expected:
            settle(connection, (*reset(expected), *plan.settings))
        if (asked := plan.few) and not seen.was_read:
            making = self.refresher.planner.templates.kept_plans.make(connection, asked)
            plan = replace(plan, choosing=plan.choosing + making)
            with pipelined(connection):
                few = answered(asked, ask_few(connection, asked))
        if plan.few is None or few:
            return plan, few
        self._note(many=True)
        plan = self._plan(shape, seen.changed)
        return (plan, None) if plan else None

    def _write(self, plan: RefreshPlan, few: FewRows | None, what: Commitment) -> Committed:
        """Write the few rows that were read, or copy and write them; see whether so many are to be copied again."""
        if few:
            what.measures.enter(APPLY)
            what.measures.staged_bytes = few.size
            return write_few(self.refresher.connection, plan, what, few, given_rows(plan, few.kept))
        done = read_and_commit(self.refresher.connection, plan, what)
        self._note(many=done.rows_inserted + done.rows_deleted > MOST_GROUPS)
        return done

    def _note(self, many: bool) -> None:
        self.refresher.planner.templates.note(self.table.pgt_id, many)

    def _plan(self, shape: Analysis, changed: dict[int, ChangeRange]) -> RefreshPlan | None:
        """Plan it, if all that the plan depends on is known."""
        delta_rows = sum(change_range.delta_rows for change_range in changed.values())
        respect_fuse(self.table, delta_rows)
        with defects_named(f"planning {self.table.name}"):
            plan = self.refresher.planner.foreseen(self.table, shape, changed)
        return plan if plan and plan.computed_where_applied else None


@dataclass(frozen=True, slots=True)
class Seen:
    """What was found before anything is written; `shape` is None where the definition is not as it was.

    `plan` is None where there is nothing to do, or where it must be done another way. `was_read` says whether the rows
    of the plan were read already: `few` has them, None where they are many.
    """

    standing: Standing
    changed: dict[int, ChangeRange]
    shape: Analysis | None
    plan: RefreshPlan | None
    few: FewRows | None = None
    was_read: bool = False
