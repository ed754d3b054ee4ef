"""How long differential refreshes take: measured defaults, and what refreshes of as many changes took before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low

from pytrickle.catalog.definition import PastRefresh

# Measured defaults, in seconds: once, per buffered change (an update counts as two), and per row of the stream table
# that a delta touches.
FIXED = 0.02
PER_CHANGE = 4e-6
PER_TOUCHED_ROW = 20e-6

# So many of the newest refreshes of either kind are taken into account.
CONSIDERED = 5
LEAST_SLOWNESS = 0.01


@dataclass(frozen=True, slots=True)
class Experience:
    """How many times longer than by default the differential refreshes of a stream table took, by size class."""

    stored_rows: int
    slowness: Mapping[int, float]

    @classmethod
    def of(cls, refreshes: Iterable[PastRefresh], stored_rows: int) -> "Experience":
        """Learn from refreshes, newest first.

        The median of the refreshes of a class and the default together counts, and between two the shorter one: a
        single slow refresh, which may have waited for a lock or for Spark to start, changes nothing.
        """
        taken: dict[int, list[float]] = {}
        for past in refreshes:
            if not past.whole:
                slowness = past.seconds / _default(past.delta_rows, stored_rows)
                taken.setdefault(size_class(past.delta_rows), []).append(slowness)
        medians = {size: median_low([1.0, *slowness[:CONSIDERED]]) for size, slowness in taken.items()}
        return cls(stored_rows, {size: max(slowness, LEAST_SLOWNESS) for size, slowness in medians.items()})

    @property
    def slow(self) -> bool:
        """Whether refreshes after some number of changes took longer than by default."""
        return any(slowness > 1 for slowness in self.slowness.values())

    def seconds(self, delta_rows: int) -> float:
        """Return the expected seconds of a differential refresh, which never fall when changes are added."""
        fewer = ((4 << 2 * size) - 1 for size in range(size_class(delta_rows)))
        return max(map(self._alone, (delta_rows, *fewer)))

    def _alone(self, delta_rows: int) -> float:
        """Judge by the same class, else by the next larger one, else by the default."""
        size = size_class(delta_rows)
        default = _default(delta_rows, self.stored_rows)
        larger = min((known for known in self.slowness if known >= size), default=None)
        if larger is None:
            # That few changes went fast does not mean that many will.
            return default * max(1.0, self.slowness[max(self.slowness)] if self.slowness else 1.0)
        slowness = self.slowness[larger]
        if larger == size or slowness <= 1:
            return default * slowness
        # What many changes took beyond the default is due to the changes.
        rows = 1 << 2 * larger
        return default + (slowness - 1) * _default(rows, self.stored_rows) * delta_rows / rows


def size_class(delta_rows: int) -> int:
    """Return the class of a number of changes: each is four times as wide as the one before.

    >>> [size_class(rows) for rows in (0, 1, 3, 4, 15, 16, 1_000_000)]
    [0, 0, 0, 1, 1, 2, 9]
    """
    return (max(delta_rows, 1).bit_length() - 1) // 2


def _default(delta_rows: int, stored_rows: int) -> float:
    return FIXED + PER_CHANGE * delta_rows + PER_TOUCHED_ROW * min(delta_rows, stored_rows)
