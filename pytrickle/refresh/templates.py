"""The templates of plans for changes that one process keeps, by stream table."""

from collections.abc import Collection
from dataclasses import dataclass, field

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.placement import Way
from pytrickle.plan.planning import plan_differential
from pytrickle.plan.refresh_plan import FewRead, RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.plan.template import Outline, Template

# So many templates of one stream table are kept: there is one for each set of sources that change together.
MOST_TEMPLATES = 8


@dataclass(slots=True)
class OfOne:
    """The templates of one analysed query; `last` is the one that was used last.

    `many` says that changes of the kind that comes now are too many rows to be read as few.
    """

    shape: Analysis
    by_outline: dict[Outline, Template | None] = field(default_factory=dict)
    last: Template | None = None
    many: bool = False


@dataclass(slots=True)
class Templates:
    """Plans the changes of stream tables by templates, which it makes where there are none yet."""

    known: dict[int, OfOne] = field(default_factory=dict)

    def plan(self, task: Task, way: Way) -> RefreshPlan:
        """Plan the changes of a task; the shape is the same object until the definition changes."""
        kept = self._kept(task)
        outline = Outline.of(task)
        if outline not in kept.by_outline:
            kept.by_outline[outline] = Template.of(task, way)
        template = kept.last = kept.by_outline[outline]
        if template is None:
            return plan_differential(task, way)
        return (None if kept.many else template.filled_for_few(task, way)) or template.filled(task, way)

    def few_read(self, shape: Analysis, ranges: Collection[ChangeRange]) -> FewRead | None:
        """Return what reads these ranges if the same sources changed as the last time, None where that is not known."""
        kept = self.known.get(shape.definition.pgt_id)
        if kept is None or kept.shape is not shape or kept.last is None or kept.many:
            return None
        return kept.last.few_read(ranges)

    def note(self, pgt_id: int, many: bool) -> None:
        """Note whether what was read of a stream table was too many rows, so that they are copied the next time."""
        if kept := self.known.get(pgt_id):
            kept.many = many

    def forget(self, pgt_id: int) -> None:
        """Make the templates of a stream table anew when it is planned the next time."""
        self.known.pop(pgt_id, None)

    def _kept(self, task: Task) -> OfOne:
        pgt_id = task.shape.definition.pgt_id
        kept = self.known.get(pgt_id)
        if kept is None or kept.shape is not task.shape or len(kept.by_outline) > MOST_TEMPLATES:
            kept = self.known[pgt_id] = OfOne(task.shape)
        return kept
