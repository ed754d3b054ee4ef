"""AUTO's choice: take in the delta, or compute the whole table and write what differs."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_high

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.cost import CONSIDERED, FIXED, Experience

# Below so many changed rows a differential refresh takes little more than the fixed time, which a whole one takes too.
WORTH_ASKING = 10_000
# A table whose last differential refresh took so many seconds is worth asking about after any number of changes.
SLOW = 0.1
# Unless its sources have fewer rows than this: then it waited for something else, such as Spark to start.
LARGE = 100_000
# How many times cheaper the other way must be before AUTO changes its way.
MARGIN = 1.3
# Where differential refreshes were slower than by default, a whole one is tried if it may take so many times less than
# by default: many queries read a small part of their sources, which only a measurement tells.
TRIAL = 4

# Measured defaults of a whole refresh, in seconds: per row of the sources, and per row of the stream table that is
# compared; one that shows a group costs more, because the groups' state is written as well.
PER_SOURCE_ROW = 0.4e-6
PER_STORED_ROW = 15e-6
PER_STORED_GROUP = 45e-6
# Seconds of a first load that Spark's start may have taken; what it took beyond them, a whole refresh takes too.
STARTING = 20.0


@dataclass(frozen=True, slots=True)
class Costs:
    """Expected seconds of either way: what differential refreshes took before tells what one takes for so many changes.

    `few_whole` and `many_whole` are whether the last refresh after fewer than 10,000 changes, or after more, was whole,
    and not as a trial.
    """

    experience: Experience
    whole: float
    few_whole: bool
    many_whole: bool

    def differential(self, delta_rows: int) -> float:
        """Return the expected seconds of a differential refresh, which grow with the changed rows."""
        return self.experience.seconds(delta_rows)

    def factor(self, delta_rows: int) -> float:
        """Return how many times longer than a whole refresh a differential one may take and still be chosen.

        The way of the last refresh is left only where the other is clearly cheaper. A table that is computed whole
        after few changes is so after many, too.
        """
        stays_whole = self.few_whole or (self.many_whole and delta_rows >= WORTH_ASKING)
        return 1 / MARGIN if stays_whole else MARGIN

    def favours_whole(self, delta_rows: int) -> bool:
        """Whether a whole refresh is to be chosen; if so, it is for more changes too."""
        return self.differential(delta_rows) > self.factor(delta_rows) * self.whole

    def switch_rows(self, least: int) -> int:
        """Return the number of changed rows, `least` or more, from which a whole refresh is chosen."""
        return least + bisect_left(range(least, 1 << 50), True, key=self.favours_whole)


@dataclass(frozen=True, slots=True)
class Choice:
    """DIFFERENTIAL or FULL, the sentence that says why, and how many rows the stream table has."""

    action: Action
    reason: str
    stored_rows: int = 0


def choose_action(delta_rows: int, evidence: Evidence, grouped: bool, least: int = WORTH_ASKING) -> Choice:
    """Choose how to take in `delta_rows` changes of all sources together; more of them never favour DIFFERENTIAL.

    Fewer than `least` are always taken in differentially.

    >>> choose_action(1_000_000, Evidence(source_rows=5_000_000, stored_rows=250), grouped=True).reason
    '1000000 changed rows: a whole refresh is expected to take 2.0 s, a differential one 4.0 s'
    >>> choose_action(100_000, Evidence(source_rows=5_000_000, stored_rows=250), grouped=True).action.value
    'DIFFERENTIAL'
    """
    costs = expected(evidence, grouped)
    differential = f"{costs.differential(delta_rows):.1f} s"
    whole = f"{costs.whole:.1f} s"
    if delta_rows >= least and costs.favours_whole(delta_rows):
        ways = f"a whole refresh is expected to take {whole}, a differential one {differential}"
        return Choice(Action.FULL, f"{delta_rows} changed rows: {ways}", evidence.stored_rows)
    ways = f"a differential refresh is expected to take {differential}, a whole one {whole}"
    return Choice(Action.DIFFERENTIAL, f"{delta_rows} changed rows: {ways}", evidence.stored_rows)


def least_worth_asking(evidence: Evidence) -> int:
    """Return from how many changes on there is a choice: any number where the last differential refresh was slow."""
    last = next((past.seconds for past in evidence.refreshes if not past.whole), 0.0)
    return 1 if last >= SLOW and evidence.source_rows >= LARGE else WORTH_ASKING


def expected(evidence: Evidence, grouped: bool) -> Costs:
    """Estimate costs from the newest refreshes, and by default what was not measured.

    Where two measured whole refreshes are in the middle, the one that favours a differential refresh counts.
    """
    experience = Experience.of(evidence.refreshes, evidence.stored_rows)
    wholes = [past.seconds for past in evidence.refreshes if past.whole][:CONSIDERED]
    tried = len(wholes) > 1
    return Costs(
        experience,
        median_high(wholes) if wholes else _whole_by_default(evidence, grouped, TRIAL if experience.slow else 1),
        few_whole=tried and _last_was_whole(past for past in evidence.refreshes if past.delta_rows < WORTH_ASKING),
        many_whole=tried and _last_was_whole(past for past in evidence.refreshes if past.delta_rows >= WORTH_ASKING),
    )


def _whole_by_default(evidence: Evidence, grouped: bool, hope: float) -> float:
    """Estimate by rows, `hope` times too high, but no more than the first load took, which does the same.

    It is at least what the first load took beyond Spark's start.
    """
    per_stored = PER_STORED_GROUP if grouped else PER_STORED_ROW
    by_rows = FIXED + PER_SOURCE_ROW * evidence.source_rows + per_stored * evidence.stored_rows
    if evidence.first_load is None:
        return by_rows / hope
    return max(min(by_rows, evidence.first_load) / hope, evidence.first_load - STARTING)


def _last_was_whole(refreshes: Iterator[PastRefresh]) -> bool:
    return next((past.whole for past in refreshes), False)
