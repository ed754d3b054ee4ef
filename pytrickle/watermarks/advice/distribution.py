"""How long things took: durations with weights, their percentiles and their shape."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Self

from pytrickle.errors import TooFewObservations
from pytrickle.watermarks.instant import span
from pytrickle.watermarks.percentile import in_percent, rank

_SECOND = 1_000_000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3_600 * _SECOND, 86_400 * _SECOND
# The steps people think in; a bar for every microsecond up to a month would show nothing.
_EDGES = (
    *(count * 1_000 for count in (1, 2, 5, 10, 20, 50, 100, 200, 500)),
    *(count * _SECOND for count in (1, 2, 5, 10, 20, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 20, 30)),
    *(count * _HOUR for count in (1, 2, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 30)),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """The share of the weight above one duration and up to another; None is without an end."""

    above: timedelta | None
    up_to: timedelta | None
    share: float


@dataclass(frozen=True, slots=True)
class Distribution:
    """Durations in microseconds, ascending and distinct, with the weight of all up to each, and the number observed."""

    lengths: tuple[int, ...]
    cumulated: tuple[int, ...]
    observations: int

    @classmethod
    def of(cls, weighted: Iterable[tuple[int, int]]) -> Self:
        """Return the distribution of pairs (duration, weight); raise TooFewObservations if none has a weight."""
        weights: defaultdict[int, int] = defaultdict(int)
        observations = 0
        for duration, weight in weighted:
            weights[duration] += weight
            observations += 1
        ordered = sorted(duration for duration, weight in weights.items() if weight > 0)
        if not ordered:
            raise TooFewObservations("There is nothing to measure yet.")
        return cls(tuple(ordered), tuple(accumulate(weights[one] for one in ordered)), observations)

    def percentile(self, percent: float) -> timedelta:
        """Return the least duration that `percent` of the weight does not exceed, by nearest rank.

        >>> Distribution.of((second * 1_000_000, 1) for second in range(1, 101)).percentile(95)
        datetime.timedelta(seconds=95)
        """
        weight = rank(self.cumulated[-1], in_percent(percent))
        return timedelta(microseconds=self.lengths[bisect_left(self.cumulated, weight)])

    def share_above(self, duration: timedelta) -> float:
        """Return the share of the weight that took longer."""
        return (self.cumulated[-1] - self._up_to(span(duration))) / self.cumulated[-1]

    def bars(self) -> tuple[Bar, ...]:
        """Return the shares of the steps from milliseconds to a month, those at the ends that are empty left out."""
        edges = [None, 0, *_EDGES, None]
        found = [Bar(_length(low), _length(high), self._between(low, high)) for low, high in pairwise(edges)]
        filled = [number for number, bar in enumerate(found) if bar.share]
        return tuple(found[filled[0] : filled[-1] + 1])

    def _between(self, low: int | None, high: int | None) -> float:
        below = 0 if low is None else self._up_to(low)
        through = self.cumulated[-1] if high is None else self._up_to(high)
        return (through - below) / self.cumulated[-1]

    def _up_to(self, duration: int) -> int:
        within = bisect_right(self.lengths, duration)
        return self.cumulated[within - 1] if within else 0


def _length(value: int | None) -> timedelta | None:
    return None if value is None else timedelta(microseconds=value)
