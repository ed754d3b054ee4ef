"""The daemon: tick, listen, poll, until told to stop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import psycopg

from pytrickle.db import connect, translate_errors
from pytrickle.errors import PytrickleError

CHANNELS = ("pgtrickle_watermark", "pgtrickle_refresh")
SLICE = 0.2


@dataclass(slots=True)
class Daemon:
    """Repeats `tick` after every notification and at least every `poll_interval`, until `stop` is set.

    A retryable error, such as a lost connection, is reported to `on_error` and waited out.
    """

    dsn: str
    poll_interval: timedelta
    tick: Callable[[], object]
    on_error: Callable[[PytrickleError], None]
    stop: Event = field(default_factory=Event)

    def run(self) -> None:
        """Run until stopped; the tick under way is finished first."""
        while not self.stop.is_set():
            try:
                self._listen_and_tick()
            except PytrickleError as error:
                if not error.retryable:
                    raise
                self.on_error(error)
                self.stop.wait(self.poll_interval.total_seconds())

    def _listen_and_tick(self) -> None:
        with connect(self.dsn, role="listener") as connection:
            with translate_errors():
                for channel in CHANNELS:
                    connection.execute(f"LISTEN {channel}")
            while not self.stop.is_set():
                self.tick()
                self._wait(connection)

    def _wait(self, connection: psycopg.Connection) -> None:
        """Wait in short slices, so that stopping does not take a whole poll interval."""
        left = self.poll_interval.total_seconds()
        with translate_errors():
            while left > 0 and not self.stop.is_set():
                woken = list(connection.notifies(timeout=min(SLICE, left), stop_after=1))
                if woken:
                    return
                left -= SLICE
