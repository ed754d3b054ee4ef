"""AUTO's choice: take in the delta, or compute the whole table and write what differs."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from statistics import median_low

from pytrickle.catalog.definition import Evidence, PastRefresh
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.cost import FIXED, Experience, measured, pace_of, storing
from pytrickle.plan.quote import Quote
from pytrickle.readable import counted

# From so many changed rows on there is always a choice.
WORTH_ASKING = 10_000
# After fewer, there is one where the sources have so many rows together: of fewer, either way takes about as long,
SMALL = 5_000
# unless the SQL of the delta has so many characters, as that of a join of many tables: to plan it takes longer.
LONG = 20_000
# By so many seconds a whole refresh must be cheaper after few changes.
GAIN = 0.003
# Asking PostgreSQL's planner what a delta costs takes about as long as planning it: worth it if the whole takes longer,
# and more seconds than these.
NEAR = 0.02
# Where Spark computes, there is a choice after few changes if the last differential refresh took so many seconds,
SLOW = 0.1
# unless the sources have fewer rows than this: then it waited for something else, such as Spark to start.
LARGE = 100_000
# Where a whole refresh takes so many seconds, other ways are tried under a limit; of a shorter one there is too little
# to lose, or to gain.
WORTH_LIMITING = 0.1
# There, a plan that PostgreSQL keeps is taken to serve so many refreshes.
SERVED = 4
# How many times cheaper the other way must be before AUTO changes its way.
MARGIN = 1.3
# Where differential refreshes were slower than by default, a whole one is tried if it may take so many times less than
# by default: many queries read a small part of their sources, which only a measurement tells.
TRIAL = 4

# Measured default of a whole refresh, in seconds per row of the sources.
PER_SOURCE_ROW = 0.4e-6
# Seconds of a first load that the start may have taken, of Spark or of this process; what it took beyond them, a whole
# refresh takes too.
STARTING = 20.0
WARMING = 0.2
# So many seconds less than a single whole refresh took, the next one may take: it filled caches, or had to wait.
DOUBT = 0.1
# So many times more than a first load took, a whole refresh is expected to take if its sources were filled since.
FILLED = 5
# So many times longer than from memory the first load may have read from the disk.
FROM_DISK = 1.5
# A whole refresh that was never made is tried where it takes no more than MARGIN times the other way and so many
# seconds, even if it takes as long as the first load leads to expect.
BEARABLE = 0.01


@dataclass(frozen=True, slots=True)
class Costs:
    """Expected seconds of either way: what differential refreshes took before tells what one takes for so many changes.

    `few_whole` and `many_whole` are whether the last refresh after fewer than 10,000 changes, or after more, was whole,
    and not as a trial. With `quoted` PostgreSQL's planner was asked about the delta, for none was measured. It takes
    `planning` seconds to plan the delta. With `guessed` no whole refresh was measured: then it may take as little as
    `least_whole`, for the first load may have read what was in no cache yet; if one was tried, it was given up after
    `whole_limit` seconds. `steady` knows what differential refreshes took of which there were two of about a size: the
    first may have been slow for once. The sources have `source_rows` together.
    """

    experience: Experience
    whole: float
    few_whole: bool
    many_whole: bool
    planning: float = 0.0
    quoted: bool = False
    guessed: bool = False
    least_whole: float | None = None
    steady: Experience | None = None
    source_rows: int = 0
    whole_limit: float | None = None

    def differential(self, delta_rows: int) -> float:
        """Return the expected seconds of a differential refresh, which grow with the changed rows."""
        return self.experience.seconds(delta_rows)

    def factor(self, delta_rows: int) -> float:
        """Return how many times longer than a whole refresh a differential one may take and still be chosen.

        The way of the last refresh is left only where the other is clearly cheaper. A table that is computed whole
        after few changes is so after many, too. The cheaper way is taken where nobody knows what as many changes take,
        and a whole refresh of which none was made is tried where it may be as quick as differential ones are steadily.
        """
        if self.stays_whole(delta_rows):
            return 1 / MARGIN
        tried = self.guessed and self.steady and self.steady.knows(delta_rows)
        return 1.0 if tried or not self.experience.reaches(delta_rows) else MARGIN

    def favours_whole(self, delta_rows: int) -> bool:
        """Whether a whole refresh is to be chosen; if so, it is for more changes too."""
        if self._is_worth_a_trial(delta_rows):
            return True
        differential = self.differential(delta_rows)
        if differential <= self.factor(delta_rows) * self.whole:
            return False
        least = 0.0 if self.stays_whole(delta_rows) else GAIN
        return delta_rows >= WORTH_ASKING or differential - self.whole >= least

    def _is_worth_a_trial(self, delta_rows: int) -> bool:
        """Whether a whole refresh may be much quicker and is bearable if it is not."""
        taken = self.steady.taken(delta_rows) if self.steady else 0.0
        return self.whole_may_be_quicker(delta_rows) and self.whole <= MARGIN * taken + BEARABLE

    def whole_may_be_quicker(self, delta_rows: int) -> bool:
        """Whether a whole refresh, of which none was made, may be much quicker than differential ones were."""
        if self.least_whole is None or self.steady is None:
            return False
        return MARGIN * self.least_whole + GAIN < self.steady.taken(delta_rows)

    def is_worth_asking_about(self, delta_rows: int) -> bool:
        """Whether PostgreSQL's planner may know better: none was measured, and asking pays."""
        unknown = not self.experience.knows(delta_rows) and self.whole > max(NEAR, self.planning)
        return unknown and not self.favours_whole(delta_rows)

    def stays_whole(self, delta_rows: int) -> bool:
        """Whether the last refresh of about as many changes was whole, and whole ones are known."""
        return self.few_whole or (self.many_whole and delta_rows >= WORTH_ASKING)

    def switch_rows(self, least: int) -> int:
        """Return the number of changed rows, `least` or more, from which a whole refresh is chosen."""
        return least + bisect_left(range(least, 1 << 50), True, key=self.favours_whole)


@dataclass(frozen=True, slots=True)
class Choice:
    """DIFFERENTIAL or FULL, the sentence that says why, and how many rows the stream table has.

    `costs` are what it goes by; it may read for `most_seconds`, if that is limited, and the other way may be timed
    after it for `other_seconds`.
    """

    action: Action
    reason: str
    stored_rows: int = 0
    costs: Costs | None = None
    most_seconds: float | None = None
    other_seconds: float | None = None


def choose_action(
    delta_rows: int, evidence: Evidence, grouped: bool, least: int = WORTH_ASKING, quote: Quote | None = None
) -> Choice:
    """Choose how to take in `delta_rows` changes of all sources together; more of them never favour DIFFERENTIAL.

    Fewer than `least` are always taken in differentially.

    >>> choose_action(1_000_000, Evidence(source_rows=5_000_000, stored_rows=250), grouped=True).reason
    '1000000 changed rows: a whole refresh is expected to take 2.0 s, a differential one 4.0 s'
    >>> choose_action(100_000, Evidence(source_rows=5_000_000, stored_rows=250), grouped=True).action.value
    'DIFFERENTIAL'
    """
    costs = expected(evidence, grouped, quote)
    differential = _told(costs.differential(delta_rows), costs.experience.given_up(delta_rows))
    whole = _told(costs.whole, costs.whole_limit)
    asked = ", by PostgreSQL's planner" if costs.quoted and not costs.experience.knows(delta_rows) else ""
    if delta_rows >= least and costs.favours_whole(delta_rows):
        ways = f"a whole refresh is expected to take {whole}, a differential one {differential}{asked}"
        return Choice(Action.FULL, f"{counted(delta_rows, 'changed row')}: {ways}", evidence.stored_rows, costs)
    ways = f"a differential refresh is expected to take {differential}, a whole one {whole}{asked}"
    return Choice(Action.DIFFERENTIAL, f"{counted(delta_rows, 'changed row')}: {ways}", evidence.stored_rows, costs)


def least_worth_asking(evidence: Evidence, spark: bool = False, length: int = 0) -> int:
    """Return from how many changes on there is a choice: any number where sources or the delta's SQL are large enough.

    Where Spark computes, which takes some time for any number, only where the last differential refresh was slow.
    """
    if not spark:
        return 1 if evidence.source_rows >= SMALL or length >= LONG else WORTH_ASKING
    last = next((past.seconds for past in evidence.refreshes if not past.whole), 0.0)
    return 1 if last >= SLOW and evidence.source_rows >= LARGE else WORTH_ASKING


def is_unfamiliar(delta_rows: int, evidence: Evidence, length: int = 0) -> bool:
    """Whether there is a choice, and no refresh of about as many changes tells what one takes."""
    experience = Experience.of(evidence)
    return delta_rows >= least_worth_asking(evidence, length=length) and not experience.knows(delta_rows)


def expected(evidence: Evidence, grouped: bool, quote: Quote | None = None) -> Costs:
    """Estimate costs from the newest refreshes, and by a quote or by default what was not measured.

    Where two measured whole refreshes are in the middle, the shorter one counts, as of two differential ones.
    """
    quote = quote or Quote()
    wholes = [past.seconds for past in measured(evidence.refreshes, whole=True)]
    tried = len(wholes) > 1
    whole = median_low(wholes) if tried else _whole_by_default(evidence, grouped, quote)
    if len(wholes) == 1:
        (taken,) = wholes
        whole = max(_between(min(taken, whole), taken, 2 / 3), taken - DOUBT * pace_of(evidence))
    reading = quote.of_delta(max(whole / pace_of(evidence) - FIXED, 0.0))
    short = whole < WORTH_LIMITING
    planning = quote.planning if short or not quote.kept else quote.planning / SERVED
    learn = partial(Experience.of, evidence, reading, planning, spread=short and quote.kept, cautious=short)
    experience = learn()
    completed = [past for past in evidence.refreshes if past.limit is None]
    return Costs(
        experience,
        whole,
        few_whole=tried and _last_was_whole(past for past in completed if past.delta_rows < WORTH_ASKING),
        many_whole=tried and _last_was_whole(past for past in completed if past.delta_rows >= WORTH_ASKING),
        planning=pace_of(evidence) * quote.planning,
        quoted=quote.asked,
        guessed=not wholes,
        least_whole=_least_whole(evidence, quote),
        steady=learn(least=2),
        source_rows=evidence.source_rows,
        whole_limit=_whole_limit(evidence),
    )


def _whole_limit(evidence: Evidence) -> float | None:
    """Return the seconds after which whole refreshes were given up; None where one was made, or none was tried."""
    longest = max((past.limit or inf for past in evidence.refreshes if past.whole), default=inf)
    return None if longest == inf else longest


def _least_whole(evidence: Evidence, quote: Quote) -> float | None:
    """Estimate what a whole refresh takes at least that writes little; None where one was made, or it is known.

    The first load may have read from the disk, and PostgreSQL's planner may know that the query reads little. Where it
    is not known in how much of that load the query was read, the lower estimate counts already.
    """
    if evidence.reading is None or any(past.whole for past in evidence.refreshes):
        return None
    read, quoted, pace = evidence.reading / FROM_DISK, quote.of_whole(), pace_of(evidence)
    least = read if quoted is None else min(read, pace * quoted)
    return least + pace * (FIXED + storing(evidence, grouped=False))


def lacks_whole(evidence: Evidence) -> bool:
    """Whether too little was measured of whole refreshes, so that the planner is asked what the whole query costs."""
    return len(measured(evidence.refreshes, whole=True)) < 2


def _whole_by_default(evidence: Evidence, grouped: bool, quote: Quote) -> float:
    """Estimate by rows or by the quote, but no more than the first load took, nor less than that beyond its start.

    PostgreSQL takes as long to read the query again as it took on the first load, whose planning and storing were
    slower. Where only the time of that load is known, the truth is taken to be in between, the nearer to the load the
    longer that took, as long as no differential refresh was measured. From then on the lower estimate counts, so that a
    whole refresh is tried if it may be quicker. Where neither a load nor the quote is known, the estimate by rows may
    be TRIAL times too high if differential refreshes were slower than by default.
    """
    read, load, pace = quote.of_whole(), evidence.first_load, pace_of(evidence)
    kept = storing(evidence, grouped)
    rows = kept + (PER_SOURCE_ROW * evidence.source_rows if read is None else read)
    by_rows = read is None and (load is None or evidence.loaded_by_spark)
    experience = Experience.of(evidence)
    estimated = pace * (FIXED + rows / (TRIAL if by_rows and experience.slow else 1))
    if load is None or (read is not None and load * FILLED < estimated):
        return estimated
    if evidence.loaded_by_spark:
        return max(min(estimated, load), load - STARTING)
    if evidence.reading is not None:
        return min(load, evidence.reading + pace * (FIXED + kept))
    warming = WARMING * pace
    if read is not None and experience.slowness:
        return max(min(estimated, load), load - warming)
    return _between(min(estimated, load), load, warming / (warming + load))


def _between(low: float, high: float, share: float) -> float:
    """Return the geometric mean of two estimates, in which the low one has this share."""
    return float(low**share * high ** (1 - share))


def _told(seconds: float, limit: float | None) -> str:
    """Write what is expected, or that it was given up after a while."""
    return readable_seconds(seconds) if limit is None else f"more than {readable_seconds(limit)}"


def readable_seconds(seconds: float) -> str:
    """Write a duration in seconds, or in milliseconds where it is shorter."""
    return f"{seconds:.1f} s" if seconds >= 0.95 else f"{seconds * 1e3:.0f} ms"


def _last_was_whole(refreshes: Iterator[PastRefresh]) -> bool:
    return next((past.whole for past in refreshes), False)
