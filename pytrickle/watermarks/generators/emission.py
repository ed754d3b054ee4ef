"""When to emit: not for every row, but at an interval that fits the throughput."""

from __future__ import annotations

from datetime import datetime, timedelta

from pytrickle.watermarks.instant import Clock, length, utc, utc_now

# Rows per second below which an interval in milliseconds is right.
_INTERVALS = ((1_000, 1_000), (100_000, 200), (1_000_000, 100))
_SHORTEST = 50


def emission_interval(rows_per_second: float) -> timedelta:
    """Return how long to wait between two watermarks.

    >>> [emission_interval(rate) / timedelta(milliseconds=1) for rate in (999, 1_000, 100_000, 1_000_000)]
    [1000.0, 200.0, 100.0, 50.0]
    """
    fitting = (wait for below, wait in _INTERVALS if rows_per_second < below)
    return timedelta(milliseconds=next(fitting, _SHORTEST))


class Emission:
    """Says when the next watermark is due; `interval` is fixed (zero: every time), or None to go by the throughput."""

    def __init__(self, interval: timedelta | None = None, clock: Clock = utc_now) -> None:
        if interval is not None:
            length("interval", interval)
        self._interval = interval
        self._clock = clock
        self._since = utc(clock())
        self._rows = 0

    def due(self, rows: int, at: datetime | None = None) -> bool:
        """Count rows that arrived and return whether to emit now; the interval then begins anew."""
        moment = utc(at or self._clock())
        # A clock that was set back would otherwise put the next watermark off for as long.
        self._since = min(self._since, moment)
        self._rows += rows
        elapsed = moment - self._since
        if elapsed < self._wait(elapsed):
            return False
        self._since, self._rows = moment, 0
        return True

    def _wait(self, elapsed: timedelta) -> timedelta:
        if self._interval is not None:
            return self._interval
        # No time has passed, so there is no throughput yet.
        return emission_interval(self._rows / elapsed.total_seconds() if elapsed else 0)
