"""Plans for changes, kept as templates: from one refresh to the next often only the cuts differ between which it reads.

What a plan depends on beside the cuts is the `Outline` of its task; tasks with one outline have one template.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from secrets import token_hex
from typing import NamedTuple

from pytrickle.catalog.definition import ChangeRange
from pytrickle.cut import Cut
from pytrickle.plan.delta_terms import FEW_ROWS
from pytrickle.plan.few_read import FewStatements
from pytrickle.plan.limits import Limits
from pytrickle.plan.placement import Place, Way
from pytrickle.plan.planning import plan_differential
from pytrickle.plan.postgres.buffer import is_netted
from pytrickle.plan.postgres.few_rows import literal
from pytrickle.plan.postgres.old_lookups import take_back_few
from pytrickle.plan.refresh_plan import KEPT_PLAN, FewRead, PostgresQuery, RefreshPlan
from pytrickle.plan.task import Task

# Nobody can know it before this process starts, so no query's text contains it.
SECRET = token_hex(16)
# A kept plan takes a third of a change buffer for new. Of a larger buffer, in which others still have much to read,
# PostgreSQL is asked each time how much is.
MOST_PAGES = 500
# A plan that is there may join a source before another with up to so many times fewer changes; those are taken to be so
# many at least.
ALIKE, FEWEST = 8, 4
CONDITION = re.compile(rf"pgt_{SECRET}_(\d+)_(old|new)_(covered|beyond)")


@dataclass(frozen=True, slots=True)
class OpenCut(Cut):
    """A cut that is not known yet: it writes a name in place of each condition."""

    name: str = ""

    def covered(self) -> str:
        """Write the name of the condition that a buffered change is covered."""
        return f"pgt_{SECRET}_{self.name}_covered"

    def beyond(self) -> str:
        """Write the name of the condition that it is not."""
        return f"pgt_{SECRET}_{self.name}_beyond"


class Kind(NamedTuple):
    """Whether a source has an old and a new cut, whether there are changes between them and beyond, whether those that
    cancel each other are left out, and whether the few of them are taken back by lookups.
    """

    relid: int
    old: bool
    new: bool
    changed: bool
    future: bool
    netted: bool
    few: bool

    def takes_in(self, other: "Kind") -> bool:
        """Whether a plan for this kind does for another one, which has no changes."""
        same = self._replace(changed=False, netted=other.netted, few=other.few) == other
        return self.changed and not other.changed and same


@dataclass(frozen=True, slots=True)
class Outline:
    """All that the plan for changes depends on, beside the definition and the cuts themselves.

    `ranges` has the kind of each source, `ranks` its place by the class of its number of changes: in this order they
    are joined.
    """

    ranges: tuple[Kind, ...]
    ranks: tuple[int, ...]
    few: bool
    direct: bool
    let_spark_join: bool
    limits: Limits
    frozen_by: str | None
    keeps: bool = False

    @classmethod
    def of(cls, task: Task) -> "Outline":
        """Return the outline of a task."""
        counts = [change_range.past_rows for change_range in task.ranges.values()]
        classes = sorted({change_range.past_class for change_range in task.ranges.values()})
        ranks = {each: rank for rank, each in enumerate(classes)}
        few = take_back_few(task.ranges.values())
        return cls(
            tuple(_kind(change_range, change_range.relid in few) for change_range in task.ranges.values()),
            tuple(ranks[change_range.past_class] for change_range in task.ranges.values()),
            sum(counts) <= FEW_ROWS,
            task.delta_rows <= task.limits.direct,
            task.limits.let_spark_join(task.delta_rows),
            task.limits,
            task.frozen_by,
            task.keeps,
        )

    def serves(self, other: "Outline", counts: Sequence[int]) -> bool:
        """Whether a plan of this outline does for a task of another one, of which so many changes are taken back.

        They may differ in the order in which sources are joined, where none comes before another that has far fewer
        changes, so that numbers that vary from one refresh to the next do not need a plan for each of their orders. And
        the plan may take in changes of more sources than there are: nothing comes of those.
        """
        joined = [counts[place] for place in sorted(range(len(counts)), key=lambda place: self.ranks[place])]
        fewest_after = [min(filter(None, joined[place:]), default=0) for place in range(len(joined))]
        near = all(count <= ALIKE * max(fewest, FEWEST) for count, fewest in zip(joined, fewest_after, strict=True))
        kinds = zip(self.ranges, other.ranges, strict=True)
        return (
            near
            and len(self.ranges) == len(other.ranges)
            and all(mine == kind or mine.takes_in(kind) for mine, kind in kinds)
            and replace(self, ranks=other.ranks, ranges=other.ranges) == other
        )

    def in_vain(self, other: "Outline") -> int:
        """Count the sources whose changes a plan of this outline takes in although there are none in another one."""
        return sum(mine.changed > kind.changed for mine, kind in zip(self.ranges, other.ranges, strict=True))


def _kind(change_range: ChangeRange, few: bool) -> Kind:
    return Kind(
        change_range.relid,
        change_range.old is not None,
        change_range.new is not None,
        change_range.changed,
        bool(change_range.future_rows),
        is_netted(change_range),
        few,
    )


@dataclass(frozen=True, slots=True)
class Template:
    """The plan for changes between cuts that are not known yet; `few` reads them as parameters, if they are few."""

    plan: RefreshPlan
    few: FewStatements | None

    @classmethod
    def of(cls, task: Task, way: Way) -> "Template | None":
        """Plan a task, whatever its cuts; None where more is read than one or two queries."""
        ranges = {relid: _opened(change_range) for relid, change_range in task.ranges.items()}
        plan = plan_differential(replace(task, ranges=ranges), way)
        if plan.read is None or plan.staging:
            return None
        kept = tuple(replace(each, read=_given(each.read)) for each in plan.kept)
        keyed = _given(plan.keyed) if plan.keyed else None
        given = replace(plan, read=_given(plan.read), keyed=keyed, kept=kept)
        return cls(plan, FewStatements.of(given, task.ranges.values()))

    def filled(self, task: Task, way: Way) -> RefreshPlan:
        """Return the plan for a task of the same outline, as `plan_differential` would."""
        read, keyed = (_filled(each, task.ranges) if each else None for each in (self.plan.read, self.plan.keyed))
        kept = tuple(replace(each, read=_filled(each.read, task.ranges)) for each in self.plan.kept)
        return replace(self._between(task, way), read=read, keyed=keyed, kept=kept)

    def filled_for_few(self, task: Task, way: Way) -> RefreshPlan | None:
        """Return the plan whose statements are given the cuts; None where there is none."""
        few = self.few_read(task.ranges.values())
        return replace(self._between(task, way), few=few, read=None, keyed=None) if few else None

    def few_read(self, ranges: Iterable[ChangeRange]) -> FewRead | None:
        """Return what reads few changes in these ranges, if they have the cuts that the template has.

        Where changes look up what they join, that is so for any number of them: the plan of a long delta, which takes
        far longer to make than to run, is kept.
        """
        ranges = tuple(ranges)
        if self.few is None or [_has(each) for each in ranges] != [_has(each) for each in self.plan.ranges]:
            return None
        given = {name: value for each in ranges for name, value in each.given().items()}
        looked_up = self.plan.placement.place is Place.INDEX and all(each.pages <= MOST_PAGES for each in ranges)
        settings = (*self.plan.settings, KEPT_PLAN) if looked_up else self.plan.settings
        return FewRead(self.few.rows, self.few.keyed, given, settings, self.few.kept)

    def _between(self, task: Task, way: Way) -> RefreshPlan:
        return between(self.plan, task, way)


@dataclass(frozen=True, slots=True)
class WholeTemplate:
    """The plan for what a whole refresh changes, which reads no cut; `few` reads that, if it is few rows."""

    plan: RefreshPlan
    few: FewRead | None

    @classmethod
    def of(cls, plan: RefreshPlan) -> "WholeTemplate":
        """Keep a plan that `plan_difference` made."""
        few = FewStatements.of(replace(plan, read=_given(plan.read)), ()) if plan.read else None
        return cls(plan, FewRead(few.rows, None, {}, (*plan.settings, KEPT_PLAN)) if few else None)

    def few_read(self, ranges: Iterable[ChangeRange]) -> FewRead | None:
        """Return what reads it, whatever changed."""
        return self.few

    def filled(self, task: Task, way: Way, many: bool) -> RefreshPlan:
        """Return the plan for a task; where its rows are `many`, they are copied."""
        plan = between(self.plan, task, way)
        return plan if many or self.few is None else replace(plan, few=self.few, read=None)


def between(plan: RefreshPlan, task: Task, way: Way) -> RefreshPlan:
    """Return a plan for other ranges, and for another reason."""
    placement = replace(plan.placement, action=way.action, reason=way.reason)
    return replace(plan, placement=placement, ranges=tuple(task.ranges.values()), may_keep=task.may_keep)


def _has(change_range: ChangeRange) -> tuple[int, bool, bool]:
    """Return the source of a range, and which cuts it has."""
    return change_range.relid, change_range.old is not None, change_range.new is not None


def _opened(change_range: ChangeRange) -> ChangeRange:
    def opened(cut: Cut | None, end: str) -> Cut | None:
        return OpenCut("1:1:", None, None, None, f"{change_range.relid}_{end}") if cut else None

    return replace(change_range, old=opened(change_range.old, "old"), new=opened(change_range.new, "new"))


def _filled(read: PostgresQuery, ranges: Mapping[int, ChangeRange]) -> PostgresQuery:
    """Fill in the cuts themselves."""

    def condition(found: re.Match[str]) -> str:
        change_range = ranges[int(found[1])]
        cut = change_range.old if found[2] == "old" else change_range.new
        if cut is None:
            raise TypeError("a template was made for other cuts")
        return cut.covered() if found[3] == "covered" else cut.beyond()

    return replace(read, query=CONDITION.sub(condition, read.query))


def _given(read: PostgresQuery) -> PostgresQuery:
    """Fill in parameters for the cuts; of a statement with parameters each other percent sign is doubled."""

    def condition(found: re.Match[str]) -> str:
        empty = ChangeRange(int(found[1]), None, None)
        cut = empty.given_old if found[2] == "old" else empty.given_new
        return cut.covered() if found[3] == "covered" else cut.beyond()

    return replace(read, query=CONDITION.sub(condition, literal(read.query)))
