"""The newest event time minus a delay learned from how late rows arrive: W = max(t) - quantile(arrival - t)."""

from __future__ import annotations

from collections import deque
from fractions import Fraction
from typing import TYPE_CHECKING

from pytrickle.watermarks.percentile import rank

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Counts

ENOUGH = 100


class Adaptive:
    """Keeps the greatest event time, and the skews of the latest rows.

    Its candidates may fall: a longer delay sets them back. Who emits them must not let the watermark follow.
    """

    def __init__(self, completeness: Fraction, window: int, initial_delay: int) -> None:
        self._completeness = completeness
        self._initial_delay = initial_delay
        self._skews: deque[int] = deque(maxlen=window)
        self._newest: int | None = None

    def include(self, event_time: int, arrived_at: int) -> None:
        """Take one row into account."""
        self._skews.append(arrived_at - event_time)
        if self._newest is None or event_time > self._newest:
            self._newest = event_time

    def include_batch(self, event_times: Counts, arrived_at: Counts | int) -> None:
        """Take a column of rows into account."""
        window = self._skews.maxlen or 0
        arrivals = arrived_at if isinstance(arrived_at, int) else arrived_at[-window:]
        self._skews.extend((arrivals - event_times[-window:]).tolist())
        newest = int(event_times.max())
        self._newest = newest if self._newest is None else max(newest, self._newest)

    def candidate(self, at: int) -> int | None:
        """Return the newest event time minus the delay in force."""
        return None if self._newest is None else self._newest - self.delay()

    def delay(self) -> int:
        """Return the delay that as many of the latest rows as are to be complete did not exceed, and never less than 0.

        Rows from a clock that is ahead have a negative skew; a negative delay would claim what nobody has seen.
        """
        if len(self._skews) < ENOUGH:
            return self._initial_delay
        return max(0, sorted(self._skews)[rank(len(self._skews), self._completeness) - 1])
