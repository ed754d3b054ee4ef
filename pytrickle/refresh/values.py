"""A refresh as values: what it aims at, what was computed for it, and what came of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import Protocol

from pytrickle.apply.commitment import Commitment, Committed
from pytrickle.apply.measures import COMPUTE, Measures
from pytrickle.catalog.capture_print import CapturePrint
from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.session_settings import limit_statements, naming_statement, session_statements
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.compute.staged import Staged
from pytrickle.cut import Cut
from pytrickle.errors import PytrickleError
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.readable import Readable

# So the reason begins to compute everything anew because taking in the changes failed; no change was missed.
AFTER_FAILURE = "the differential refresh failed: "


class Engine(Protocol):
    """Computes the rows of a plan in an exported snapshot: Spark, or what a test puts in its place."""

    def prepare(self) -> None:
        """Raise at once if all refreshes need it, and it cannot compute any."""

    def runs(self) -> bool:
        """Whether it would compute without having to start."""

    def compute(
        self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...], staging: str | None = None
    ) -> Staged:
        """Return the rows that the plan stages, or write them to the staging table."""


@dataclass(frozen=True, slots=True, repr=False)
class RefreshResult(Readable):
    """What one refresh did; `action` is NO_DATA, DIFFERENTIAL, FULL, REINITIALIZE, SKIP or, in a tick, FAILED.

    `engine` is who computed it, spark or postgres, None where there was nothing to compute. `duration` runs from the
    snapshot, or the end of the refresh before it in the same tick, to the commit.
    """

    stream_table: str
    action: str
    reason: str
    rows_inserted: int
    rows_deleted: int
    effective_watermark: datetime | None
    duration: timedelta
    error: str | None = None
    effective_batch: int | None = None
    engine: str | None = None


@dataclass(frozen=True, slots=True)
class Goal:
    """How far to refresh: a target cut per source (None or absent: all that the snapshot shows), and on whose behalf.

    `moment` is the time at which the base tables are read, which becomes the stream table's data_timestamp; `since` is
    the reading of the monotonic clock from which the refresh is timed. `counted` are the ranges to the targets that
    were counted in a snapshot, by its name, so that it is not done again when another way is taken. `captured` is what
    capture of the base tables was like in the snapshot of the pass, where they are read in a later one.
    """

    targets: Mapping[int, Cut | None]
    moment: datetime
    initiated_by: str
    since: float
    counted: dict[str, dict[int, ChangeRange]] = field(default_factory=dict)
    captured: CapturePrint | None = None


@contextmanager
def attempting(plan: RefreshPlan | None) -> Iterator[None]:
    """Note in what makes a planned refresh fail what that was about to do."""
    try:
        yield
    except PytrickleError as error:
        error.attempted = plan.action.value if plan else None
        raise


@dataclass(slots=True)
class Computation:
    """A refresh on its way: without a plan there is nothing to do, without staged rows it is not computed yet.

    `next_reason` says why the refresh after it must compute the whole table again, `defect` what another plan failed on
    that should not have.
    """

    table: StreamTable
    goal: Goal
    plan: RefreshPlan | None = None
    staged: Staged | None = None
    next_reason: str | None = None
    defect: str | None = None
    measures: Measures = field(default_factory=Measures)

    @property
    def started(self) -> float:
        """The reading of the monotonic clock when it began."""
        return self.measures.started

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings under which the defining query is evaluated, the limits of the refresh, and whose it is."""
        return (*session_statements(self.table), *limit_statements(self.table), naming_statement(self.table))

    @property
    def planner_defect(self) -> str | None:
        """What planning failed on; the one that is known stays until a plan for changes succeeds."""
        if self.plan is None or self.defect:
            return self.defect or self.table.planner_defect
        tried = self.plan.action is Action.DIFFERENTIAL or self.plan.shape.query is None
        return self.plan.shape.defect if tried else self.table.planner_defect

    def planned(self) -> None:
        """Note that it is planned, and will be computed now."""
        self.measures.enter(COMPUTE)
        self.measures.choosing(self.plan.choosing if self.plan else 0.0)

    def commitment(self, cut: Cut) -> Commitment:
        """Say what the write transaction stores beside the rows, which were read in a snapshot at a cut."""
        table, goal = self.table, self.goal
        return Commitment(
            table.pgt_id,
            table.frontier_version,
            table.view_stamp,
            self.settings,
            cut,
            goal.moment,
            table.decision.effective,
            table.decision.let_through,
            goal.initiated_by,
            self.started,
            self.measures,
            table.reinitialize_reason,
            self.next_reason,
            table.window_end,
            table.frozen_by,
            table.frozen_before,
            self.planner_defect,
        )

    def close(self) -> None:
        """Let go of the staged rows."""
        if self.staged is not None:
            self.staged.close()


def nothing_done(table: StreamTable, since: float) -> RefreshResult:
    """Tell that a stream table showed everything already."""
    return outcome(table, (Action.NO_DATA, table.decision.explained("no changes")), None, since, None)


def outcome(
    table: StreamTable, done_as: tuple[Action, str], done: Committed | None, since: float, engine: str | None
) -> RefreshResult:
    """Tell what was done, and for how long it took."""
    effective = table.effective.joined(table.decision.effective)
    action, reason = done_as
    return RefreshResult(
        table.name,
        action.value,
        reason,
        done.rows_inserted if done else 0,
        done.rows_deleted if done else 0,
        effective.watermark,
        timedelta(seconds=monotonic() - since),
        effective_batch=effective.batch,
        engine=engine,
    )
