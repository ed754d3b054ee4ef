"""A delta that was given up, timed after the whole refresh that was made instead: it may be the quicker way after all.

A trial has a share of the time that the whole is expected to take, so as to delay a refresh by little. Once that is
committed, nobody waits for what is timed.
"""

from dataclasses import replace
from logging import getLogger
from time import monotonic

from pytrickle.catalog.definition import PastRefresh
from pytrickle.compute.postgres import read_directly
from pytrickle.database import Snapshot, translate_errors
from pytrickle.errors import PytrickleError
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import MARGIN
from pytrickle.plan.cost import FIXED
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.refresh.choosing import changed_sources
from pytrickle.refresh.remembered import SLOW, Remembered


def time_given_up(
    past: Remembered, snapshot: Snapshot, plan: RefreshPlan, settings: tuple[str, ...], whole: float
) -> None:
    """Read the rows of a delta that was given up, in the snapshot of the whole refresh that took so many seconds.

    Remember how long the delta takes if that is clearly less.
    """
    if plan.action is not Action.DIFFERENTIAL or plan.read is None or whole >= SLOW:
        return
    limited, began = replace(plan, most_seconds=whole / MARGIN), monotonic()
    try:
        with translate_errors(), read_directly(snapshot.connection, limited, settings):
            seconds = monotonic() - began + FIXED
    except PytrickleError as error:
        getLogger(__name__).debug("A delta was not timed: %s", error)
        return
    if seconds * MARGIN <= whole:
        found = PastRefresh(False, plan.delta_rows, seconds)
        past.found_out(plan.shape.definition.pgt_id, found, changed_sources(plan.ranges))
