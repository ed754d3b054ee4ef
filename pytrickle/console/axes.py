"""Axes of a chart: which values go where, and where their labels stand."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil, inf, isfinite

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Tick:
    """A label and its place on the axis, in pixels."""

    place: float
    label: str


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from `low` to `high` on pixels from `start` to `end`; `is_time` says that they are seconds since 1970."""

    low: float
    high: float
    start: float
    end: float
    is_time: bool = True

    def place(self, value: float) -> float:
        """Return the pixel of a value; what lies beyond an end is put there.

        >>> Axis(0, 10, 100, 200).place(5), Axis(0, 10, 100, 0).place(20)
        (150.0, 0.0)
        """
        within = min(max(value, self.low), self.high)
        return self.start + (within - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self, count: int) -> tuple[Tick, ...]:
        """Return about so many labels at round values.

        >>> [tick.label for tick in Axis(0, 600, 0, 100).ticks(3)]
        ['00:00', '00:05', '00:10']
        """
        step = _step((self.high - self.low) / count, self.is_time)
        first = ceil(self.low / step) * step
        values = [first + number * step for number in range(count * 2 + 2)]
        return tuple(Tick(self.place(value), self._label(value, step)) for value in values if value <= self.high)

    def _label(self, value: float, step: float) -> str:
        if not self.is_time:
            return f"{value:,.0f}"
        moment = datetime.fromtimestamp(value, UTC)
        return f"{moment:%m-%d}" if step >= _DAY else f"{moment:%H:%M:%S}" if step < 60 else f"{moment:%H:%M}"


def spanned(values: list[float], least: float) -> tuple[float, float]:
    """Return the lowest and highest of the finite values, at least so far apart.

    >>> spanned([3, float("inf")], 2)
    (2.0, 4.0)
    """
    finite = [value for value in values if isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    lack = max(0.0, least - (high - low)) / 2
    return low - lack, high + lack


def _step(wanted: float, is_time: bool) -> float:
    """Return the least round step that is as large as wanted."""
    if is_time and (step := next((each for each in _SECONDS if each >= wanted), inf)) < inf:
        return float(step)
    unit = _DAY if is_time else 1.0
    while True:
        for digit in (1, 2, 5):
            if digit * unit >= wanted:
                return digit * unit
        unit *= 10
