"""The newest event time seen, minus a fixed delay: W = max(t) - d."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Counts


class Newest:
    """Keeps the greatest event time."""

    def __init__(self, delay: int) -> None:
        self._delay = delay
        self._newest: int | None = None

    def include(self, event_time: int, arrived_at: int) -> None:
        """Take one event time into account."""
        if self._newest is None or event_time > self._newest:
            self._newest = event_time

    def include_batch(self, event_times: Counts, arrived_at: Counts | int) -> None:
        """Take a column of event times into account."""
        self.include(int(event_times.max()), 0)

    def candidate(self, at: int) -> int | None:
        """Return the newest event time minus the delay."""
        return None if self._newest is None else self._newest - self._delay
