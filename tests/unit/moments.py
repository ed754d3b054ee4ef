"""Moments and clocks for the tests of watermarks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def noon(seconds: float = 0) -> datetime:
    """Return the moment so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


class SetClock:
    """A clock that shows what it was set to."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now
