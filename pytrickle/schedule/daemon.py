"""The daemon: it repeats ticks after notifications, and of several daemons on one database one leads."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from threading import Event
from time import monotonic

import psycopg
from psycopg.pq import TransactionStatus

from pytrickle.database import connect, keep_open, refuse_standby, translate_errors
from pytrickle.errors import PytrickleError, ReadOnly, StatementTimeout
from pytrickle.schedule.requests import calls

CHANNELS = ("pgtrickle_watermark", "pgtrickle_refresh")
# A lock that nobody else may take; anybody could take the key of an advisory lock. It is on a view: VACUUM of the whole
# database would wait for one on a table, as long as somebody leads.
LEAD = "LOCK TABLE pgtrickle.pgt_leader IN EXCLUSIVE MODE NOWAIT"
# Asks whether the session is there without a snapshot, even for a moment: CREATE INDEX CONCURRENTLY would wait for a
# transaction that it saw with one, as long as somebody leads.
THERE = "SHOW transaction_isolation"
SLICE = 0.2
BREATH = 0.25
TAKEOVER = timedelta(seconds=1)


@dataclass(slots=True)
class Daemon:
    """Repeats `tick` after notifications and at least every `poll_interval`, until `stop` is set.

    Notifications that come within a quarter of a second after a tick began are answered by one tick together.

    Of several daemons on one database the one that holds the leader's lock ticks; the others try for it every second
    at least. The lock goes with its session, so a leader that dies is followed at once. `on_leader` is told True when
    this daemon begins to lead, False when it begins to stand by. A retryable error, such as a lost connection or a
    server that is a standby, is reported to `on_error` and waited out, and so is a statement beside the refreshes that
    took longer than the server allows, and a server that takes no changes any more though it did while this one
    `has_led`. `on_beat` is called several times per second, with False, and before each tick, with True, until the end
    of which it is not called again.
    """

    dsn: str
    poll_interval: timedelta
    tick: Callable[[], object]
    on_error: Callable[[PytrickleError], None]
    on_leader: Callable[[bool], None]
    stop: Event = field(default_factory=Event)
    on_beat: Callable[[bool], None] = lambda busy: None
    has_led: bool = False

    def run(self) -> None:
        """Run until stopped; the tick under way is finished first."""
        while not self.stop.is_set():
            try:
                self._listen_and_tick()
            except PytrickleError as error:
                if not self._waits_out(error):
                    raise
                self.on_error(error)
                self._rest()

    def _waits_out(self, error: PytrickleError) -> bool:
        """Whether an error ends by itself.

        Beside the refreshes only a few rows are looked up, so that a server on which they take long is busy for a
        while. One that took changes before takes none while its disk is full, as some providers have it.
        """
        return error.retryable or isinstance(error, StatementTimeout) or (isinstance(error, ReadOnly) and self.has_led)

    def _listen_and_tick(self) -> None:
        with connect(self.dsn, role="listener") as connection, connect(self.dsn, role="leader") as seat:
            refuse_standby(connection)
            with translate_errors():
                # Neither is used during a tick, which may take long.
                keep_open(connection)
                keep_open(seat)
                for channel in CHANNELS:
                    connection.execute(f"LISTEN {channel}")
            leads: bool | None = None
            while not self.stop.is_set():
                began = monotonic()
                if leads is not (found := _leads(seat)):
                    leads = found
                    self.on_leader(leads)
                seen = calls(connection)
                if leads:
                    self.on_beat(True)
                    self.tick()
                    self.has_led = True
                self._wait(connection, self.poll_interval if leads else min(self.poll_interval, TAKEOVER), seen)
                self._gather(connection, began + min(BREATH, self.poll_interval.total_seconds()))

    def _gather(self, connection: psycopg.Connection, until: float) -> None:
        """Take in what else comes, so that whoever notifies often does not make as many ticks."""
        with translate_errors():
            while (left := until - monotonic()) > 0 and not self.stop.is_set():
                list(connection.notifies(timeout=min(SLICE, left)))
            list(connection.notifies(timeout=0))

    def _wait(self, connection: psycopg.Connection, interval: timedelta, seen: int) -> None:
        """Wait in short slices, so that whoever stops us, or waits for us, need not wait a whole poll interval.

        Somebody who waits for a refresh cannot notify, since notifications come with a commit; but the number of calls
        has then grown since it was `seen`.
        """
        left = interval.total_seconds()
        with translate_errors():
            while left > 0 and not self.stop.is_set():
                self.on_beat(False)
                woken = list(connection.notifies(timeout=min(SLICE, left), stop_after=1))
                if woken or calls(connection) != seen:
                    return
                left -= SLICE

    def _rest(self) -> None:
        until = monotonic() + self.poll_interval.total_seconds()
        while (left := until - monotonic()) > 0 and not self.stop.is_set():
            self.on_beat(False)
            self.stop.wait(min(SLICE, left))


def _leads(seat: psycopg.Connection) -> bool:
    """Say whether this daemon leads, or now begins to: it does while this connection's transaction is open."""
    with translate_errors():
        if seat.info.transaction_status == TransactionStatus.INTRANS:
            # A prepared statement could keep a snapshot until the transaction ends, which VACUUM would wait for.
            seat.execute(THERE, prepare=False)
            return True
        seat.execute("BEGIN")
        try:
            seat.execute(LEAD)
        except psycopg.errors.LockNotAvailable:
            seat.execute("ROLLBACK")
            return False
        return True
