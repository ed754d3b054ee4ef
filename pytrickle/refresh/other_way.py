"""The way that was not taken, timed after the refresh: it may be the quicker one after all.

A trial of a delta has a share of the time that the whole is expected to take, so as to delay a refresh by little. Once
that is committed, nobody waits for what is timed. The trial may have met changes that are dear for once, such as those
of a nation; so the delta is timed again, ever more seldom. The same goes for a single delta that was slower than the
whole. A whole refresh that was never made, but may be quicker than the deltas were, is only ever timed like this. What
is found out enters the history, for the next process.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from logging import getLogger
from time import monotonic

from sqlalchemy import bindparam, func, select, update

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.catalog.past_refreshes import evidence
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.catalog.tables import refresh_history
from pytrickle.compute.postgres import read_directly
from pytrickle.database import Snapshot, translate_errors
from pytrickle.database.statement import statement
from pytrickle.defects import defects_named
from pytrickle.errors import PytrickleError, StatementTimeout
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import MARGIN
from pytrickle.plan.cost import FIXED, storing
from pytrickle.plan.difference import plan_difference
from pytrickle.plan.placement import Way, delta_way
from pytrickle.plan.planning import plan_differential, plan_refresh
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.plan.task import Task
from pytrickle.plan.trial import SHORT
from pytrickle.refresh.choosing import changed_sources
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.standing import limited, with_state
from pytrickle.refresh.values import Computation

# Beside a refresh that takes so many seconds nothing is timed: other stream tables wait for the same connection.
LONGEST = 60.0
NEWEST = (
    select(func.max(refresh_history.c.refresh_id))
    .where(refresh_history.c.pgt_id == bindparam("pgt_id"))
    .scalar_subquery()
)
NOTE = statement(update(refresh_history).where(refresh_history.c.refresh_id == NEWEST), ["other_ms"])
NOTE_GIVEN_UP = statement(update(refresh_history).where(refresh_history.c.refresh_id == NEWEST), ["gave_up_ms"])


def time_given_up(
    planner: Planner, snapshot: Snapshot, plan: RefreshPlan, settings: tuple[str, ...], whole: float
) -> None:
    """Read the rows of a delta that was given up, in the snapshot of the whole refresh that took so many seconds.

    Remember how long the delta takes if that is clearly less. Without the groups that a query keeps it takes longer
    than the next one will.
    """
    direct = plan.action is Action.DIFFERENTIAL and plan.read is not None and plan.placement.direct
    if not direct or plan.lacks_groups or whole >= LONGEST:
        return
    with _harmless(plan):
        seconds = _read(snapshot, replace(plan, most_seconds=whole / MARGIN), settings) + FIXED
        if seconds * MARGIN <= whole:
            _note(planner, plan, seconds)


def time_other_way(planner: Planner, snapshot: Snapshot, computation: Computation, again: bool) -> None:
    """Time the other way if it may be quicker than the one that was taken: a delta where that is due `again`."""
    plan = computation.plan
    if plan is None:
        return
    with _harmless(plan):
        if again:
            _time_again(planner, snapshot, computation, plan)
        if plan.other_seconds is not None and plan.other_seconds < LONGEST:
            _time_whole(planner, snapshot, computation, plan, plan.other_seconds)


@contextmanager
def _harmless(plan: RefreshPlan) -> Iterator[None]:
    """Fail nothing: the refresh is committed."""
    name = f"stream table number {plan.shape.definition.pgt_id}"
    try:
        with defects_named(f"timing the other way of {name}"):
            yield
    except PytrickleError as error:
        getLogger(__name__).debug("The other way of %s was not timed: %s", name, error)


def _time_again(planner: Planner, snapshot: Snapshot, computation: Computation, plan: RefreshPlan) -> None:
    """Time a delta that may be the quicker way after all, after a whole refresh of the same changes."""
    whole = computation.measures.of_its_own()
    if plan.action is not Action.FULL or computation.table.refresh_mode != "AUTO" or whole < SHORT:
        return
    with _task(planner, snapshot, computation, plan) as task:
        delta = plan_differential(task, delta_way(plan.delta_rows)) if task else None
    if delta:
        time_given_up(planner, snapshot, delta, computation.settings, whole)


def _time_whole(
    planner: Planner, snapshot: Snapshot, computation: Computation, plan: RefreshPlan, seconds: float
) -> None:
    """Time a whole refresh that may be quicker than the delta that was taken in, for so many seconds at most.

    Remember how long it takes, or that it takes longer. Where Spark would read it, or it fails, it is not timed again.
    """
    table = computation.table
    planner.past.unlimited.add(table.pgt_id)
    with _task(planner, snapshot, computation, plan) as task:
        whole = _limited_whole(planner, snapshot, table, task, seconds) if task else None
    if whole is None or not whole.placement.direct:
        return
    rest = FIXED if whole.may_be_at_once else FIXED + _storing(planner, table, whole)
    try:
        _note(planner, whole, _read(snapshot, whole, computation.settings) + rest)
    except StatementTimeout:
        _note_given_up(planner, whole, whole.most_seconds or seconds)
    planner.past.unlimited.discard(table.pgt_id)


def _limited_whole(planner: Planner, snapshot: Snapshot, table: StreamTable, task: Task, seconds: float) -> RefreshPlan:
    way = Way(Action.FULL, "").sized(_known(planner, table))
    plan = plan_difference(task, way, table.refresh_mode)
    plan = plan or plan_refresh(task, way, table.refresh_mode, lambda: planner.query(task))
    return limited(plan, seconds, snapshot.connection, table)


def _storing(planner: Planner, table: StreamTable, whole: RefreshPlan) -> float:
    return storing(_known(planner, table), whole.shape.grouped is not None)


def _known(planner: Planner, table: StreamTable) -> Evidence:
    return planner.past.evidence(table.pgt_id, lambda: evidence(planner.connection, table))


@contextmanager
def _task(planner: Planner, snapshot: Snapshot, computation: Computation, plan: RefreshPlan) -> Iterator[Task | None]:
    """Give what the refresh had to do, as the snapshot still shows it; None where its query has no delta any more."""
    table = computation.table
    shape = planner.known_shape(table.pgt_id)
    if shape is None or shape.query is None:
        yield None
        return
    with translate_errors(), snapshot.connection.transaction():
        stands = with_state(snapshot.connection, table, shape)
        yield planner.task(stands, shape, {each.relid: each for each in plan.ranges})


def _read(snapshot: Snapshot, plan: RefreshPlan, settings: tuple[str, ...]) -> float:
    """Return how many seconds it takes to read the rows of a plan."""
    began = monotonic()
    with translate_errors(), read_directly(snapshot.connection, plan, settings):
        return monotonic() - began


def _note(planner: Planner, plan: RefreshPlan, seconds: float) -> None:
    pgt_id, whole = plan.shape.definition.pgt_id, plan.action is not Action.DIFFERENTIAL
    planner.past.found_out(pgt_id, PastRefresh(whole, plan.delta_rows, seconds), changed_sources(plan.ranges))
    with translate_errors():
        planner.connection.execute(NOTE, {"pgt_id": pgt_id, "other_ms": 1000 * seconds})


def _note_given_up(planner: Planner, plan: RefreshPlan, seconds: float) -> None:
    planner.give_up(plan, seconds)
    with translate_errors():
        planner.connection.execute(
            NOTE_GIVEN_UP, {"pgt_id": plan.shape.definition.pgt_id, "gave_up_ms": 1000 * seconds}
        )
