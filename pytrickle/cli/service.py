"""What a service manager is told: that this process is ready, still alive, and ending (systemd's sd_notify)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic

MICROSECONDS = 1_000_000
# Without a watchdog, the main loop is taken for dead after so many seconds.
LIMIT = 120.0


@dataclass(slots=True)
class Service:
    """Reports to the socket that NOTIFY_SOCKET names; silent where there is none.

    With WATCHDOG_USEC it reports twice per that time that the process is alive: while a tick is under way, however long
    that takes, and while the last `beat` is younger than that time.
    """

    address: str | None
    watchdog: float | None = None
    busy: bool = False
    last: float = field(default_factory=monotonic)
    end: Event = field(default_factory=Event)

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Service:
        """Return what the environment names; a watchdog that is meant for another process is none of ours."""
        microseconds = environ.get("WATCHDOG_USEC")
        meant = environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        watchdog = int(microseconds) / MICROSECONDS if microseconds and microseconds.isdigit() and meant else None
        return cls(environ.get("NOTIFY_SOCKET"), watchdog)

    def beat(self, busy: bool) -> None:
        """Take note that the main loop goes round, and whether it is busy from now on."""
        self.busy, self.last = busy, monotonic()

    def ready(self, status: str) -> None:
        """Report that the process serves, and how."""
        self.tell(f"READY=1\nSTATUS={status}")

    def tell(self, state: str) -> None:
        """Send a report; nobody who cannot take it may end the process."""
        if not self.address:
            return
        # A name that begins with @ is in Linux's abstract namespace.
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.settimeout(1)
            connection.sendto(state.encode(), address)

    def is_alive(self) -> bool:
        """Whether the main loop does its work."""
        return self.busy or monotonic() - self.last < (self.watchdog or LIMIT)

    def watch(self) -> None:
        """Report that the process is alive, for as long as it is, until the end."""
        assert self.watchdog is not None
        while not self.end.wait(self.watchdog / 2):
            if self.is_alive():
                self.tell("WATCHDOG=1")


@contextmanager
def serving(environ: Mapping[str, str] = os.environ) -> Iterator[Service]:
    """Report to the service manager for the length of the block."""
    service = Service.of(environ)
    if service.address and service.watchdog:
        Thread(target=service.watch, name="watchdog", daemon=True).start()
    try:
        yield service
    finally:
        service.end.set()
        service.tell("STOPPING=1")
