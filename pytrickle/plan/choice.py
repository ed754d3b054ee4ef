"""AUTO's choice after many changes: take in the delta, or compute the whole table and write what differs."""

from bisect import bisect_left
from dataclasses import dataclass
from statistics import median_high, median_low

from pytrickle.catalog.definition import Evidence
from pytrickle.plan.refresh_plan import Action

# Below so many changed rows a differential refresh takes little more than the fixed time, which a whole one takes too.
WORTH_ASKING = 10_000
# A table whose last differential refresh took so many seconds is worth asking about after any number of changes.
SLOW = 1.0
# Unless its sources have fewer rows than this: then it waited for something else, such as Spark to start.
LARGE = 100_000
# How many times cheaper the other way must be before AUTO changes its way.
MARGIN = 1.3
# So many of the newest refreshes of either kind are taken into account.
CONSIDERED = 5
LEAST_SLOWNESS = 0.01

# Measured defaults, in seconds: once, per buffered change (an update counts as two), per row of the sources, per row of
# the stream table that a delta touches, and per row that a whole refresh compares; one that shows a group costs more,
# because the groups' state is written as well.
FIXED = 0.1
PER_CHANGE = 4e-6
PER_SOURCE_ROW = 0.4e-6
PER_TOUCHED_ROW = 20e-6
PER_STORED_ROW = 15e-6
PER_STORED_GROUP = 45e-6


@dataclass(frozen=True, slots=True)
class Costs:
    """Expected seconds of either way: `slowness` is how many times longer than by default a differential refresh takes.

    `factor` is how many times longer than a whole refresh it may take and still be chosen.
    """

    stored_rows: int
    slowness: float
    whole: float
    factor: float

    def differential(self, delta_rows: int) -> float:
        """Return the expected seconds of a differential refresh, which grow with the changed rows."""
        return self.slowness * _differential(delta_rows, self.stored_rows)

    @property
    def switch_rows(self) -> int:
        """The number of changed rows from which a whole refresh is chosen."""
        return WORTH_ASKING + bisect_left(
            range(WORTH_ASKING, 1 << 50), True, key=lambda rows: self.differential(rows) > self.factor * self.whole
        )


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
    '1000000 changed rows: a whole refresh is expected to take 2.1 s, a differential one 4.1 s'
    >>> choose_action(100_000, Evidence(source_rows=5_000_000, stored_rows=250), grouped=True).action.value
    'DIFFERENTIAL'
    """
    costs = expected(evidence, grouped)
    differential = f"{costs.differential(delta_rows):.1f} s"
    whole = f"{costs.whole:.1f} s"
    if delta_rows >= least and costs.differential(delta_rows) > costs.factor * costs.whole:
        ways = f"a whole refresh is expected to take {whole}, a differential one {differential}"
        return Choice(Action.FULL, f"{delta_rows} changed rows: {ways}", evidence.stored_rows)
    ways = f"a differential refresh is expected to take {differential}, a whole one {whole}"
    return Choice(Action.DIFFERENTIAL, f"{delta_rows} changed rows: {ways}", evidence.stored_rows)


def expected(evidence: Evidence, grouped: bool) -> Costs:
    """Estimate costs from the newest refreshes, with the defaults as one more measurement of each.

    A whole refresh is not expected to take longer than the first load took, if that was quicker than by default.
    Where two values are in the middle, the one that favours a differential refresh counts: a single slow refresh,
    which may have waited for a lock or for Spark to start, changes nothing.
    """
    stored = evidence.stored_rows
    slowness = [p.seconds / _differential(p.delta_rows, stored) for p in evidence.refreshes if not p.whole]
    wholes = [past.seconds for past in evidence.refreshes if past.whole]
    by_default = (
        FIXED + PER_SOURCE_ROW * evidence.source_rows + (PER_STORED_GROUP if grouped else PER_STORED_ROW) * stored
    )
    if evidence.first_load is not None:
        by_default = min(by_default, evidence.first_load)
    return Costs(
        stored,
        max(median_low([1.0, *slowness[:CONSIDERED]]), LEAST_SLOWNESS),
        median_high([by_default, *wholes[:CONSIDERED]]),
        _factor(evidence),
    )


def _differential(delta_rows: int, stored_rows: int) -> float:
    return FIXED + PER_CHANGE * delta_rows + PER_TOUCHED_ROW * min(delta_rows, stored_rows)


def _factor(evidence: Evidence) -> float:
    """Stay with the way of the last large refresh unless the other is clearly cheaper."""
    stays_whole = bool(evidence.refreshes) and evidence.refreshes[0].whole
    return 1 / MARGIN if stays_whole else MARGIN
