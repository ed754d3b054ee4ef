"""The templates of plans for changes that one process keeps, by stream table."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import monotonic

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.difference import is_difference
from pytrickle.plan.limits import Limits
from pytrickle.plan.placement import Way
from pytrickle.plan.planning import plan_differential
from pytrickle.plan.refresh_plan import FewRead, RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.plan.template import Outline, Template, WholeTemplate
from pytrickle.refresh.kept_plans import KeptPlans

# So many templates of one stream table are kept, those that were used last. There is one for each set of sources that
# change together, and for orders of how many changes they have that are far apart.
MOST_TEMPLATES = 32
# To take in changes of so many sources that have none costs little; to make a template costs as much as doing so often.
MOST_IN_VAIN, MOST_BORROWED = 2, 8
# A guess saves a round trip. Where other sources changed it was for nothing, and of such a length it costs far more.
MOST_GUESSED = 20_000
# Where a refresh takes as many seconds, a round trip does not matter, but reading for nothing does.
MOST_SECONDS_GUESSED = 0.02


@dataclass(slots=True)
class OfOne:
    """The templates of one analysed query, in the order of their use; `last` is the one that was used last. Of whole
    refreshes there is one for each refresh mode, under some limits.

    `many` says that changes of the kind that comes now are too many rows to be read as few. `borrowed` counts how often
    the template of more sources served for an outline, `made` how many templates were made.
    """

    shape: Analysis
    by_outline: dict[Outline, Template | None] = field(default_factory=dict)
    wholes: dict[tuple[str, Limits], WholeTemplate | None] = field(default_factory=dict)
    last: Template | WholeTemplate | None = None
    many: bool = False
    borrowed: Counter[Outline] = field(default_factory=Counter)
    made: int = 0

    def template(self, outline: Outline, counts: Sequence[int], make: Callable[[], Template | None]) -> Template | None:
        """Return the template for an outline and so many changes of each source; forget the one longest unused.

        It is one that serves for it too, or `make` makes it.
        """
        if outline not in self.by_outline:
            outline = self._serving(outline, counts) or outline
        self.made += outline not in self.by_outline
        found = self.by_outline.pop(outline) if outline in self.by_outline else make()
        self.by_outline[outline] = found
        if len(self.by_outline) > MOST_TEMPLATES:
            del self.by_outline[next(iter(self.by_outline))]
        self.last = found
        return found

    def _serving(self, outline: Outline, counts: Sequence[int]) -> Outline | None:
        """Find the outline whose template serves another one best; in vain it does so a few times."""
        serving = [each for each in reversed(self.by_outline) if each.serves(outline, counts)]
        best = min(serving, key=lambda each: each.in_vain(outline), default=None)
        in_vain = best.in_vain(outline) if best else 0
        if best is None or in_vain == 0:
            return best
        if in_vain > MOST_IN_VAIN or self.by_outline[best] is None or self.borrowed[outline] >= MOST_BORROWED:
            return None
        if len(self.borrowed) > MOST_TEMPLATES:
            self.borrowed.clear()
        self.borrowed[outline] += 1
        return best


@dataclass(slots=True)
class Templates:
    """Plans the changes of stream tables by templates, which it makes where there are none yet."""

    known: dict[int, OfOne] = field(default_factory=dict)
    kept_plans: KeptPlans = field(default_factory=KeptPlans)

    def plan(self, task: Task, way: Way) -> RefreshPlan:
        """Plan the changes of a task; the shape is the same object until the definition changes.

        The next refresh like it need not make its template, so that this counts as choosing.
        """
        kept, began = self._kept(task), monotonic()
        made = kept.made
        template = self._template(kept, task, way)
        if template is None:
            return plan_differential(task, way)
        making = monotonic() - began if kept.made > made else 0.0
        plan = (None if kept.many else template.filled_for_few(task, way)) or template.filled(task, way)
        return replace(plan, choosing=making)

    def whole(
        self, task: Task, way: Way, refresh_mode: str, make: Callable[[], RefreshPlan | None]
    ) -> RefreshPlan | None:
        """Plan a whole refresh as a difference, which `make` does the first time; None where it is to be none."""
        if not is_difference(task, way):
            return None
        kept = self._kept(task)
        key = refresh_mode, task.limits
        if key not in kept.wholes:
            plan = make()
            kept.wholes[key] = WholeTemplate.of(plan) if plan else None
        template = kept.last = kept.wholes[key]
        return template.filled(task, way, kept.many) if template else None

    def few_read(self, shape: Analysis, ranges: Collection[ChangeRange]) -> FewRead | None:
        """Return what reads these ranges, or all, if the same sources changed as the last time; None if nobody knows.

        None also where it is too much for a guess.
        """
        kept = self.known.get(shape.definition.pgt_id)
        if kept is None or kept.shape is not shape or kept.last is None or kept.many:
            return None
        found = kept.last.few_read(ranges)
        return found if found and found.length <= MOST_GUESSED else None

    def note(self, pgt_id: int, many: bool) -> None:
        """Note whether what was read of a stream table was too many rows, so that they are copied the next time."""
        if kept := self.known.get(pgt_id):
            kept.many = many

    def copies(self, pgt_id: int) -> bool:
        """Whether what was read of a stream table last was too many rows, so that they are copied."""
        kept = self.known.get(pgt_id)
        return kept is not None and kept.many

    def forget(self, pgt_id: int) -> None:
        """Make the templates of a stream table anew when it is planned the next time."""
        self.known.pop(pgt_id, None)

    def _template(self, kept: OfOne, task: Task, way: Way) -> Template | None:
        counts = [change_range.past_rows for change_range in task.ranges.values()]
        return kept.template(Outline.of(task), counts, partial(Template.of, task, way))

    def _kept(self, task: Task) -> OfOne:
        pgt_id = task.shape.definition.pgt_id
        kept = self.known.get(pgt_id)
        if kept is None or kept.shape is not task.shape:
            kept = self.known[pgt_id] = OfOne(task.shape)
        return kept
