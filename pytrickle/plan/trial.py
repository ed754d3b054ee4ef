"""For how long a way is followed if nobody knows what it takes, for PostgreSQL's planner may be wrong by ten times.

What is given up costs no more than a known share of what is done instead.
"""

from dataclasses import replace

from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import MARGIN, WORTH_LIMITING, Choice, Costs, readable_seconds

# What is expected to be quicker may take as long as the whole, and what the first plan of its kind takes beyond that.
PLANNING = 0.1
# What is expected to be slower than a whole refresh, but was never measured, is tried once: for as long as planning it
# takes, and then for this share of what a whole refresh takes. So is a whole refresh that may take no more than this
# share of what a differential one takes; any other that may be quicker is timed once the differential one is done.
SHARE = 0.3
# What was given up is tried again where it may take so many times longer by now: a delta where whole refreshes took
# longer than was expected, a whole refresh after changes of which a delta takes longer. That one is tried sooner, for
# it delays nothing, and may have had to wait for something else.
AGAIN = 1.5
SOONER = 1.15
# Unless this share of all rows has changed.
MOST_CHANGED = 0.05
# Instead of a short whole refresh only a delta is tried that is expected to take at most so many times as long,
NEARLY = 2
# and to be planned within so many seconds.
SOON = 0.015
# Instead of one that takes fewer seconds than these, none is tried.
SHORT = 0.03


def limited(choice: Choice, delta_rows: int) -> Choice:
    """Limit how long a differential refresh may read if none of about as many changes was measured.

    Try the other way instead, for a shorter time, where it may be quicker and was never measured.
    """
    costs = choice.costs
    if costs is None:
        return choice
    known, differential = costs.experience.knows(delta_rows), choice.action is Action.DIFFERENTIAL
    if differential and known:
        return _trying_the_whole(choice, costs, delta_rows)
    if costs.whole < WORTH_LIMITING and not _is_worth_trying(choice, costs, delta_rows):
        return choice
    if differential:
        return replace(choice, most_seconds=MARGIN * costs.whole + PLANNING)
    seconds, given_up = SHARE * costs.whole + costs.planning, costs.experience.given_up(delta_rows)
    untried = not known or (given_up is not None and seconds >= AGAIN * given_up)
    if not untried or delta_rows > MOST_CHANGED * costs.source_rows:
        return choice
    return _tried(choice, Action.DIFFERENTIAL, seconds)


def _trying_the_whole(choice: Choice, costs: Costs, delta_rows: int) -> Choice:
    """Try a whole refresh that may be far quicker than a differential one that is known; else have it timed after."""
    differential = costs.differential(delta_rows)
    share, least = SHARE * differential, costs.least_whole
    # What takes longer would not be chosen after it.
    seconds = differential / MARGIN
    longer = costs.whole_limit is not None and seconds >= SOONER * costs.whole_limit
    if not (longer or costs.whole_may_be_quicker(delta_rows)):
        return choice
    if differential >= WORTH_LIMITING and least is not None and least <= share:
        return _tried(choice, Action.FULL, share)
    return replace(choice, other_seconds=seconds)


def _tried(choice: Choice, action: Action, seconds: float) -> Choice:
    reason = f"{choice.reason}, and is tried for {readable_seconds(seconds)}"
    return replace(choice, action=action, reason=reason, most_seconds=seconds)


def _is_worth_trying(choice: Choice, costs: Costs, delta_rows: int) -> bool:
    """Whether a delta that is expected to be slower than a short whole refresh may be quicker, which is found soon."""
    near = costs.differential(delta_rows) <= NEARLY * costs.whole and costs.planning <= SOON
    return choice.action is Action.FULL and costs.whole >= SHORT and near
