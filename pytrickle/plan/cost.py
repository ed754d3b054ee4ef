"""How long refreshes take: measured defaults, and what differential ones of as many changes took before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt
from statistics import median_low

from pytrickle.catalog.definition import Evidence, PastRefresh, size_class

# Measured defaults, in seconds: once, per buffered change (an update counts as two), and per row of the stream table
# that a delta touches.
FIXED = 0.01
PER_CHANGE = 4e-6
PER_TOUCHED_ROW = 10e-6
# Of a whole refresh, per row that is kept, shown or hidden, and compared; a group costs more, because its state is
# written as well.
PER_STORED_ROW = 15e-6
PER_STORED_GROUP = 45e-6
# Of little data only what differs is written, and the rest compared.
PER_COMPARED_ROW = 3e-6

# What was measured tells of changes up to so many size classes further, of which each takes at least so many seconds.
REACH = 3
LEAST_PER_CHANGE = 0.4e-6

# So many of the newest refreshes of either kind are taken into account.
CONSIDERED = 3
# After so many refreshes of the other way a single one is not believed any more.
PATIENCE = 8
LEAST_SLOWNESS = 0.01
# A whole refresh that reads or keeps no more rows than these is read as what it changes, and writes only that.
MOST_ROWS_READ = 200_000
MOST_ROWS_KEPT = 50_000
# A database takes so many times as long as by default, at least and at most.
PACES = (0.5, 2.0)


def pace_of(evidence: Evidence) -> float:
    """Return how many times longer than by default a database takes, by its quickest refreshes of any stream table.

    Half of the difference is believed, as a ratio: those may all be of long queries, or the first of a process.

    >>> pace_of(Evidence(0, 0, quick=FIXED * 2.25)), pace_of(Evidence(0, 0, quick=60.0)), pace_of(Evidence(0, 0))
    (1.5, 2.0, 1.0)
    """
    least, most = PACES
    return 1.0 if evidence.quick is None else min(max(sqrt(evidence.quick / FIXED), least), most)


def is_little(rows_read: int, kept_rows: int | None) -> bool:
    """Whether a whole refresh that reads and keeps so many rows writes only what it changes; None if nobody knows."""
    return rows_read <= MOST_ROWS_READ or (kept_rows is not None and kept_rows <= MOST_ROWS_KEPT)


def storing(evidence: Evidence, grouped: bool) -> float:
    """Estimate the seconds in which rows are compared with those that are kept, and what differs is written."""
    if is_little(evidence.source_rows, evidence.largest_rows):
        return PER_COMPARED_ROW * evidence.largest_rows
    return (PER_STORED_GROUP if grouped else PER_STORED_ROW) * evidence.largest_rows


@dataclass(frozen=True, slots=True)
class Experience:
    """How many times longer than by default the differential refreshes of a stream table took, by size class.

    `reading` are the seconds by default that reading the delta takes, whatever its size, at a pace of 1, and `planning`
    those of planning it. Where these are spread, `recurring` are the classes of all refreshes, whole or not. `limits`
    are the seconds after which one of a class was given up. Where it is `cautious`, more changes than were measured are
    not expected to go as well as these.
    """

    stored_rows: int
    slowness: Mapping[int, float]
    reading: float = 0.0
    pace: float = 1.0
    limits: Mapping[int, float] = field(default_factory=dict)
    planning: float = 0.0
    recurring: tuple[int, ...] = ()
    cautious: bool = False

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        reading: float = 0.0,
        planning: float = 0.0,
        *,
        spread: bool = False,
        cautious: bool = False,
        least: int = 1,
    ) -> "Experience":
        """Learn from refreshes, newest first: the median of those of a class counts, between two the shorter one.

        Nothing is learned from fewer than `least` refreshes of a class. Planning is `spread` over those to come.

        A single slow refresh is believed until whole ones have been made instead of it for a while. One of Spark's
        changes nothing: it may have waited for Spark to start.
        """
        untaught = cls(evidence.stored_rows, {}, reading, pace_of(evidence), cautious=cautious)
        taken: dict[int, list[float]] = {}
        for size, pasts in _by_class(evidence.refreshes).items():
            found = measured(pasts, whole=False)
            slowness = [past.seconds / untaught.by_default(past.delta_rows) for past in found]
            if len(slowness) >= least:
                taken[size] = [1.0, *slowness] if found[0].spark else slowness
        medians = {size: median_low(slowness) for size, slowness in taken.items()}
        deltas = [past for past in evidence.refreshes if not past.whole]
        limits = {size_class(past.delta_rows): past.limit for past in deltas if past.limit is not None}
        kept = {size: max(each, LEAST_SLOWNESS) for size, each in medians.items()}
        recurring = tuple(size_class(past.delta_rows) for past in evidence.refreshes) if spread else ()
        return replace(untaught, slowness=kept, limits=limits, planning=planning, recurring=recurring)

    def by_default(self, delta_rows: int) -> float:
        """Return what a differential refresh takes of which nothing is known, in seconds."""
        changes = PER_CHANGE * delta_rows + PER_TOUCHED_ROW * min(delta_rows, self.stored_rows)
        return self.pace * (FIXED + self.reading + changes)

    def given_up(self, delta_rows: int) -> float | None:
        """Return the seconds after which one of about as many changes was given up; None where none was."""
        return self.limits.get(size_class(delta_rows))

    def knows(self, delta_rows: int) -> bool:
        """Whether a differential refresh of about as many changes was measured."""
        return size_class(delta_rows) in self.slowness

    def reaches(self, delta_rows: int) -> bool:
        """Whether a differential refresh of about as many changes was measured, or of more."""
        return any(known >= size_class(delta_rows) for known in self.slowness)

    def taken(self, delta_rows: int) -> float:
        """Return the seconds that measured refreshes took, of so many changes or fewer; 0 where none was measured."""
        size = size_class(delta_rows)
        fewer = [(4 << 2 * known) - 1 for known in self.slowness if known < size]
        return max(map(self._alone, [*fewer, *([delta_rows] if size in self.slowness else [])]), default=0.0)

    @property
    def slow(self) -> bool:
        """Whether refreshes after some number of changes took longer than by default."""
        return any(slowness > 1 for slowness in self.slowness.values())

    def seconds(self, delta_rows: int) -> float:
        """Return the expected seconds of a differential refresh, which never fall when changes are added."""
        fewer = ((4 << 2 * size) - 1 for size in range(size_class(delta_rows)))
        return max(map(self._alone, (delta_rows, *fewer))) + self._planning(delta_rows)

    def _planning(self, delta_rows: int) -> float:
        """Return the seconds of planning that a refresh bears of which none of about as many changes was measured.

        A plan that is kept is taken to serve as many refreshes more as there were of this size: most come once.
        """
        if self.reaches(delta_rows):
            return 0.0
        size = size_class(delta_rows)
        return self.pace * self.planning / (1 + sum(known >= size for known in self.recurring))

    def _alone(self, delta_rows: int) -> float:
        """Judge by the same class, else by the next larger one, else by the default."""
        size = size_class(delta_rows)
        default = self.by_default(delta_rows)
        larger = min((known for known in self.slowness if known >= size), default=None)
        if larger is None:
            return self._beyond(delta_rows, default)
        slowness = self.slowness[larger]
        if larger == size or slowness <= 1:
            return default * slowness
        # What many changes took beyond the default is due to the changes.
        rows = 1 << 2 * larger
        return default + (slowness - 1) * self.by_default(rows) * delta_rows / rows

    def _beyond(self, delta_rows: int, default: float) -> float:
        """Judge more changes than were measured: by the default, or by how measured ones grew, if that is near.

        Either is wrong by several times for some queries, their geometric mean less often.
        """
        if not self.slowness:
            return default
        largest = max(self.slowness)
        slower = default * max(1.0, self.slowness[largest])
        # That few changes went fast does not mean that very many will.
        if size_class(delta_rows) - largest > REACH:
            return slower
        extended = self._extended(delta_rows)
        return sqrt(slower * extended) if self.cautious else min(slower, extended)

    def _extended(self, delta_rows: int) -> float:
        """Extend the line through the smallest and the largest class that were measured.

        Through a single class it is drawn from what no changes take.
        """
        smallest, largest = (2 << 2 * size for size in (min(self.slowness), max(self.slowness)))
        most = self._alone(largest)
        least = self._alone(smallest) if smallest < largest else min(self.pace * FIXED, most)
        per_change = (most - least) / (largest - smallest if smallest < largest else largest)
        return most + max(per_change, self.pace * LEAST_PER_CHANGE) * max(delta_rows - largest, 0)


def measured(refreshes: Sequence[PastRefresh], whole: bool) -> list[PastRefresh]:
    """Return the newest refreshes of one way; none where a single one was followed by many of the other.

    That one may have waited for something: it is worth another trial.

    >>> slow, quick = PastRefresh(False, 5, 9.0), PastRefresh(True, 5, 0.1)
    >>> [len(measured([quick] * times + [slow], whole=False)) for times in (7, 8)]
    [1, 0]
    """
    found = [past for past in refreshes if past.whole is whole][:CONSIDERED]
    doubtful = len(found) == 1 and refreshes.index(found[0]) >= PATIENCE
    return [] if doubtful else found


def _by_class(refreshes: Iterable[PastRefresh]) -> dict[int, list[PastRefresh]]:
    classes: dict[int, list[PastRefresh]] = {}
    for past in refreshes:
        classes.setdefault(size_class(past.delta_rows), []).append(past)
    return classes
