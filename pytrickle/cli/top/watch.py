"""What `pytrickle top` shows, read again and again beside the screen, so that keys work while the server does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from typing import Protocol

from pytrickle.catalog.reports import Status
from pytrickle.catalog.running_reports import RunningRow
from pytrickle.errors import PytrickleError


class Source(Protocol):
    """What is asked: the part of a client that reads the catalog."""

    def status(self) -> Status:
        """Return groups, watermarks and stream tables."""

    def running(self) -> tuple[RunningRow, ...]:
        """Return what is being refreshed."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read last; `lost_at` is since when the database does not answer, with what it said."""

    state: Status | None = None
    running: tuple[RunningRow, ...] = ()
    lost_at: datetime | None = None
    trouble: str | None = None
    back_at: datetime | None = None


class Watch:
    """Reads the catalog in a thread of its own, every so many seconds or when asked to, and keeps what it saw."""

    def __init__(self, source: Source, seconds: float, clock: Callable[[], datetime] = lambda: datetime.now(UTC)):
        self._source, self._seconds, self._clock = source, seconds, clock
        self._seen, self._lock = Seen(), Lock()
        self._wake, self._end = Event(), Event()
        self._thread = Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        # The thread is not waited for: a server that does not answer must not keep anybody from leaving.
        self._end.set()
        self._wake.set()

    def seen(self) -> Seen:
        """Return what was read last."""
        with self._lock:
            return self._seen

    def again(self) -> None:
        """Have it read again at once."""
        self._wake.set()

    def read(self) -> None:
        """Read once."""
        try:
            state, running = self._source.status(), self._source.running()
        except PytrickleError as error:
            with self._lock:
                lost_at = self._seen.lost_at or self._clock()
                self._seen = replace(self._seen, lost_at=lost_at, trouble=str(error), back_at=None, running=())
            return
        with self._lock:
            back_at = self._clock() if self._seen.lost_at else self._seen.back_at
            self._seen = Seen(state, running, back_at=back_at)

    def _run(self) -> None:
        while not self._end.is_set():
            self.read()
            self._wake.wait(self._seconds)
            self._wake.clear()
