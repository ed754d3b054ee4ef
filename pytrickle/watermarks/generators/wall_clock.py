"""The time of the clock, minus a fixed delay: W = now - d."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Counts


class WallClock:
    """Keeps nothing: rows do not move it."""

    def __init__(self, delay: int) -> None:
        self._delay = delay

    def include(self, event_time: int, arrived_at: int) -> None:
        """Leave an event time out of account."""

    def include_batch(self, event_times: Counts, arrived_at: Counts | int) -> None:
        """Leave a column of event times out of account."""

    def candidate(self, at: int) -> int | None:
        """Return the moment asked about minus the delay."""
        return at - self._delay
