"""How late rows arrive: the skew, arrival minus event time, of live rows."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import Any

from pytrickle.errors import InvalidArgument, TooFewObservations
from pytrickle.watermarks.advice.advise import Advice, Loss, Subject, advise
from pytrickle.watermarks.advice.distribution import Distribution
from pytrickle.watermarks.arrays import column
from pytrickle.watermarks.instant import Clock, microseconds, placed, utc_now

WINDOW = 100_000


class SkewAnalyzer:
    """Keeps the skews of the latest `window` rows, to recommend the lateness of a generator.

    For a watermark max(t) - d the late share it expects is an upper bound, since a row's skew is at least as long as
    the row is out of order, unless clocks are ahead; for one of processing time it is exact.
    """

    def __init__(self, window: int = WINDOW, clock: Clock = utc_now) -> None:
        if window < 1:
            raise InvalidArgument(f"window must be one row or more, it is {window}.", "Give a number such as 100000.")
        self._skews: deque[int] = deque(maxlen=window)
        self._clock = clock

    def record(self, event_time: datetime | None, arrived_at: datetime | None = None) -> None:
        """Measure a row that arrived at a moment, else now; one without a usable event time is left out."""
        count = placed(event_time)
        if count is not None:
            self._skews.append(microseconds(arrived_at or self._clock()) - count)

    def record_batch(self, event_times: Any, arrived_at: Any = None) -> None:
        """Measure a column of rows, as `Generator.observe_batch` takes it."""
        counts, usable = column(event_times)
        if arrived_at is None or isinstance(arrived_at, datetime):
            skews = microseconds(arrived_at or self._clock()) - counts
        else:
            arrivals, there = column(arrived_at)
            if there is not None or len(arrivals) != len(counts):
                raise InvalidArgument("Not every row has an arrival.", "Give one moment, or as many arrivals as rows.")
            skews = arrivals - counts
        self._skews.extend((skews if usable is None else skews[usable])[-(self._skews.maxlen or 0) :].tolist())

    def distribution(self) -> Distribution:
        """Return the skews; raise TooFewObservations without any."""
        if not self._skews:
            raise TooFewObservations("No row was measured yet.", "Record rows first.")
        return Distribution.of((skew, 1) for skew in self._skews)

    def advise(self, name: str = "rows", loss: Loss | None = None) -> Advice:
        """Return the latenesses to choose from; raise TooFewObservations without any row."""
        return advise(name, Subject.LATENESS, self.distribution(), loss)
