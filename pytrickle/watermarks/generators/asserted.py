"""The watermark in force: what was asserted last, against which rows are judged."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import TYPE_CHECKING

from pytrickle.watermarks.generators.metrics import Metrics, advancement_rate
from pytrickle.watermarks.generators.validator import Validator
from pytrickle.watermarks.instant import INFINITY, LOWEST, instant, microseconds

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Counts, Mask

_CADENCE = 20
_NOTHING_ASSERTED = -(2**63)


class Asserted:
    """A watermark that never moves back, the rows that came under it, and its latest advances; in UTC."""

    def __init__(self, start: datetime | None) -> None:
        self._validator = Validator(start)
        self._in_force = _NOTHING_ASSERTED if start is None else microseconds(start)
        self._advances: deque[tuple[datetime, datetime]] = deque(maxlen=_CADENCE)
        self._rows = self._late = self._unplaced = 0

    @property
    def watermark(self) -> datetime | None:
        """Return the watermark in force, None while nothing was asserted."""
        return self._validator.watermark

    def outcome(self, candidate: int | None) -> datetime | None:
        """Return the watermark that would be in force if the candidate were put in force."""
        if candidate is None or candidate < LOWEST or candidate <= self._in_force:
            return self.watermark
        return instant(candidate)

    def put(self, candidate: int | None, at: datetime) -> datetime | None:
        """Put a candidate in force unless it is behind, which is counted; return what is in force then."""
        if candidate is None or candidate < LOWEST:
            return self.watermark
        before = self.watermark
        if self._validator.check(instant(candidate)) and self.watermark != before:
            self._in_force = candidate
            self._advances.append((instant(candidate), at))
        return self.watermark

    def judge(self, event_time: int | None) -> bool:
        """Count a row and return whether it is late; one without an event time is not."""
        self._rows += 1
        if event_time is None:
            self._unplaced += 1
            return False
        late = event_time < self._in_force
        self._late += late
        return late

    def judge_batch(self, event_times: Counts, usable: Mask | None) -> Mask:
        """Count a column of rows and return which of them are late."""
        late = event_times < self._in_force
        self._rows += len(event_times)
        if usable is not None:
            late &= usable
            self._unplaced += len(event_times) - int(usable.sum())
        self._late += int(late.sum())
        return late

    def metrics(self, at: datetime, *, idle_share: float, regressions: int, ahead: int) -> Metrics:
        """Return what is known; `regressions` are those of others, to be added to its own."""
        watermark = self.watermark
        endless = watermark is None or watermark == INFINITY
        return Metrics(
            watermark=watermark,
            lag=None if watermark is None or endless else at - watermark,
            advancement_rate=None if endless else advancement_rate(tuple(self._advances), at),
            rows=self._rows,
            late=self._late,
            late_ratio=self._late / self._rows if self._rows else 0.0,
            unplaced=self._unplaced,
            ahead=ahead,
            idle_share=idle_share,
            regressions=self._validator.regressions + regressions,
        )
