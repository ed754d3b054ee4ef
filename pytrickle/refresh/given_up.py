"""A delta that was given up, timed after the whole refresh that was made instead: it may be the quicker way after all.

A trial has a share of the time that the whole is expected to take, so as to delay a refresh by little. Once that is
committed, nobody waits for what is timed. The trial may have met changes that are dear for once, such as those of a
nation; so the delta is timed again, ever more seldom. The same goes for a single delta that was slower than the whole.
What is found out enters the history, for the next process.
"""

from dataclasses import replace
from logging import getLogger
from time import monotonic

from sqlalchemy import bindparam, func, select, update

from pytrickle.catalog.definition import PastRefresh
from pytrickle.catalog.tables import refresh_history
from pytrickle.compute.postgres import read_directly
from pytrickle.database import Snapshot, translate_errors
from pytrickle.database.statement import statement
from pytrickle.defects import defects_named
from pytrickle.errors import PytrickleError
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import MARGIN
from pytrickle.plan.cost import FIXED
from pytrickle.plan.placement import delta_way
from pytrickle.plan.planning import plan_differential
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.plan.trial import SHORT
from pytrickle.refresh.choosing import changed_sources
from pytrickle.refresh.planner import Planner
from pytrickle.refresh.standing import with_state
from pytrickle.refresh.values import Computation

# Beside a whole refresh that takes so many seconds no delta is timed: other stream tables wait for the same connection.
LONGEST = 60.0
NEWEST = (
    select(func.max(refresh_history.c.refresh_id))
    .where(refresh_history.c.pgt_id == bindparam("pgt_id"))
    .scalar_subquery()
)
NOTE = statement(update(refresh_history).where(refresh_history.c.refresh_id == NEWEST), ["other_ms"])


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
    limited, began = replace(plan, most_seconds=whole / MARGIN), monotonic()
    try:
        with translate_errors(), read_directly(snapshot.connection, limited, settings):
            seconds = monotonic() - began + FIXED
        if seconds * MARGIN <= whole:
            _note(planner, plan, seconds)
    except PytrickleError as error:
        getLogger(__name__).debug("A delta was not timed: %s", error)


def _note(planner: Planner, plan: RefreshPlan, seconds: float) -> None:
    pgt_id, found = plan.shape.definition.pgt_id, PastRefresh(False, plan.delta_rows, seconds)
    planner.past.found_out(pgt_id, found, changed_sources(plan.ranges))
    with translate_errors():
        planner.connection.execute(NOTE, {"pgt_id": pgt_id, "other_ms": 1000 * seconds})


def time_again(planner: Planner, snapshot: Snapshot, computation: Computation) -> None:
    """Time a delta that may be the quicker way after all, after a whole refresh of the same changes."""
    plan, table, whole = computation.plan, computation.table, computation.measures.of_its_own()
    shape = planner.known_shape(table.pgt_id)
    if plan is None or shape is None or shape.query is None or plan.action is not Action.FULL:
        return
    if table.refresh_mode != "AUTO" or whole < SHORT:
        return
    try:
        with defects_named(f"planning {table.name}"), translate_errors(), snapshot.connection.transaction():
            stands = with_state(snapshot.connection, table, shape)
            task = planner.task(stands, shape, {each.relid: each for each in plan.ranges})
            delta = plan_differential(task, delta_way(plan.delta_rows))
    except PytrickleError as error:
        getLogger(__name__).debug("A delta was not planned: %s", error)
        return
    time_given_up(planner, snapshot, delta, computation.settings, whole)
