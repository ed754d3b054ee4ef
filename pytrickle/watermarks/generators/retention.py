"""How long an interval join of two sources keeps a row: while the other source may still send a match."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pytrickle.watermarks.instant import length, microseconds, span, utc


@dataclass(frozen=True, slots=True)
class IntervalJoin:
    """A join of the rows whose event times are at most `interval` apart: |t(left) - t(right)| <= interval.

    Raises InvalidArgument for a negative interval. A watermark of None stands for a source that asserted nothing yet.

    >>> from datetime import UTC
    >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> join = IntervalJoin(timedelta(minutes=5))
    >>> [join.keeps(noon, noon + timedelta(minutes=minute)) for minute in (4, 5, 6)]
    [True, True, False]
    """

    interval: timedelta

    def __post_init__(self) -> None:
        length("interval", self.interval)

    def keeps(self, event_time: datetime, other_watermark: datetime | None) -> bool:
        """Return whether a row of one side may still find a match: ``W(other) <= t + interval``."""
        end = microseconds(event_time) + span(self.interval)
        return other_watermark is None or microseconds(other_watermark) <= end

    def watermark(self, left: datetime | None, right: datetime | None) -> datetime | None:
        """Return the watermark of the joined rows, where each carries the later of its two event times: the least."""
        return None if left is None or right is None else min(utc(left), utc(right))
