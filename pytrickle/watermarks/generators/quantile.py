"""A quantile of the latest event times instead of the greatest, minus a fixed delay: W = quantile(t) - d."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from fractions import Fraction
from typing import TYPE_CHECKING

from pytrickle.watermarks.percentile import rank

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Counts


class Quantile:
    """Keeps the event times of the latest rows."""

    def __init__(self, share: Fraction, window: int, delay: int) -> None:
        self._share = share
        self._delay = delay
        self._latest: deque[int] = deque(maxlen=window)

    def include(self, event_time: int, arrived_at: int) -> None:
        """Take one event time into account."""
        self._latest.append(event_time)

    def include_batch(self, event_times: Counts, arrived_at: Counts | int) -> None:
        """Take a column of event times into account."""
        self._latest.extend(event_times[-(self._latest.maxlen or 0) :].tolist())

    def candidate(self, at: int) -> int | None:
        """Return the quantile minus the delay, None before there are two different event times.

        The newest event time never counts, however few rows there are and however often it came: a far-future row that
        is delivered twice is still one.
        """
        ordered = sorted(self._latest)
        earlier = bisect_left(ordered, ordered[-1]) if ordered else 0
        return ordered[min(rank(len(ordered), self._share), earlier) - 1] - self._delay if earlier else None
