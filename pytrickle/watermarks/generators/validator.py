"""Watching a watermark that somebody else makes: it must never move back."""

from __future__ import annotations

from datetime import datetime

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks.instant import utc


class Validator:
    """Counts the times a watermark moved back, and keeps the greatest, in UTC.

    >>> from datetime import UTC
    >>> validator = Validator()
    >>> [validator.check(datetime(2026, 1, day, tzinfo=UTC)) for day in (1, 3, 2, 3)], validator.regressions
    ([True, True, False, True], 1)
    """

    def __init__(self, watermark: datetime | None = None) -> None:
        self.watermark = None if watermark is None else utc(watermark)
        self.regressions = 0

    def check(self, watermark: datetime) -> bool:
        """Return whether a watermark is not behind the ones before it, else count and forget it; never raise.

        One without a UTC offset counts as behind: nobody can say that it is not.
        """
        try:
            moment = utc(watermark)
        except InvalidArgument:
            moment = None
        if moment is None or (self.watermark is not None and moment < self.watermark):
            self.regressions += 1
            return False
        self.watermark = moment
        return True
