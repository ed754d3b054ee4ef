"""The daemon: tick, listen, poll, until told to stop."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event

import psycopg

from pytrickle.db import connect, translate_errors
from pytrickle.errors import PytrickleError

CHANNELS = ("pgtrickle_watermark", "pgtrickle_refresh")
LEADER_LOCK = 0x70677464
SLICE = 0.2
TAKEOVER = timedelta(seconds=1)


@dataclass(slots=True)
class Daemon:
    """Repeats `tick` after every notification and at least every `poll_interval`, until `stop` is set.

    Of several daemons on one database the one that holds the leader's lock ticks; the others try for it every second
    at least. The lock goes with its session, so a leader that dies is followed at once. `on_leader` is told True when
    this daemon begins to lead, False when it begins to stand by. A retryable error, such as a lost connection, is
    reported to `on_error` and waited out.
    """

    dsn: str
    poll_interval: timedelta
    tick: Callable[[], object]
    on_error: Callable[[PytrickleError], None]
    on_leader: Callable[[bool], None]
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
            leads: bool | None = None
            while not self.stop.is_set():
                if leads is not True and leads is not (found := _try_to_lead(connection)):
                    leads = found
                    self.on_leader(leads)
                if leads:
                    self.tick()
                self._wait(connection, self.poll_interval if leads else min(self.poll_interval, TAKEOVER))

    def _wait(self, connection: psycopg.Connection, interval: timedelta) -> None:
        """Wait in short slices, so that stopping does not take a whole poll interval."""
        left = interval.total_seconds()
        with translate_errors():
            while left > 0 and not self.stop.is_set():
                woken = list(connection.notifies(timeout=min(SLICE, left), stop_after=1))
                if woken:
                    return
                left -= SLICE


def _try_to_lead(connection: psycopg.Connection) -> bool:
    with translate_errors():
        row = connection.execute("SELECT pg_try_advisory_lock(%s, 0)", (LEADER_LOCK,)).fetchone()
    return bool(row and row[0])
