"""What a process can plan of a refresh by what it remembers, without asking the database anything."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cache, partial

from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.errors import DeltaTooLong
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.difference import plan_difference
from pytrickle.plan.placement import Way, delta_way
from pytrickle.plan.refresh_plan import FEW_CHANGES, FewRead, RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.refresh.choosing import changed_sources, known_way
from pytrickle.refresh.kept_plans import too_many_untold
from pytrickle.refresh.remembered import Remembered
from pytrickle.refresh.standing import is_again, standing_of
from pytrickle.refresh.templates import MOST_SECONDS_GUESSED, Templates


@dataclass(frozen=True, slots=True)
class Foresight:
    """The past refreshes of stream tables, and the templates of their plans."""

    past: Remembered
    templates: Templates

    def read(self, shape: Analysis | None, ranges: Collection[ChangeRange]) -> FewRead | None:
        """Return what reads few changes if the same sources changed as the last time; None if that is not known.

        None also where the last refresh took long: then a guess saves little, and may be for nothing.
        """
        if shape is None or self.past.last_seconds(shape.definition.pgt_id) >= MOST_SECONDS_GUESSED:
            return None
        return self.templates.few_read(shape, ranges)

    def plan(self, table: StreamTable, task: Task) -> RefreshPlan | None:
        """Plan a refresh; None where the database would have to be asked.

        Of many changes it has to be told before it joins them, unless it keeps the plan.
        """
        standing = standing_of(table, task, table.pgt_id not in self.past.unlimited)
        known, delta = self.past.fresh(table.pgt_id), cache(partial(self._delta, task))
        try:
            way = known_way(self.past, task, standing, known, delta)
        except DeltaTooLong:
            return None
        if way is None:
            return None
        way = replace(way, reason=table.decision.explained(way.reason))
        if way.action is not Action.DIFFERENTIAL:
            again = is_again(way, standing) and not (table.strict or self._has_sequel(task))
            return self._whole(table, task, way.sized(known) if known else way) if again else None
        if task.delta_rows > FEW_CHANGES or (task.may_keep and not task.keeps):
            return None
        try:
            plan = delta().because(way.reason)
        except DeltaTooLong:
            return None
        return plan if task.delta_rows < too_many_untold(plan.few) else None

    def _has_sequel(self, task: Task) -> bool:
        """Whether something is to be done after a whole refresh, in its snapshot; that is not made at once.

        The groups within the query are to be filled, or a delta that was given up is to be timed again.
        """
        pgt_id = task.shape.definition.pgt_id
        fills = task.may_keep and self.past.left_behind[pgt_id] + 1 >= self.past.enough_left(pgt_id, whole=True)
        return fills or self.past.is_due_again(pgt_id, changed_sources(task.ranges.values()), task.delta_rows)

    def _delta(self, task: Task) -> RefreshPlan:
        return self.templates.plan(task, delta_way(task.delta_rows))

    def _whole(self, table: StreamTable, task: Task, way: Way) -> RefreshPlan | None:
        make = partial(plan_difference, task, way, table.refresh_mode)
        return self.templates.whole(task, way, table.refresh_mode, make)
