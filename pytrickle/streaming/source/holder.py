"""A snapshot that a process of its own holds open while the tasks of a parallel read come and go.

No Python process of Spark's outlives the planning of a read. So one is started that ends by itself: when Spark has
ended, when every task has said that it read its part, or when no task has read for long.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

import psycopg
from psycopg import sql

from pytrickle.database import connect, filled, translate_errors
from pytrickle.database.snapshot import BEGIN, keep_open
from pytrickle.errors import DatabaseError, PytrickleError

NO_TASK_FOR = 600.0
"""Seconds without a task after which nobody waits for the others any more."""
NO_REPETITION_FOR = 60.0
"""Seconds for tasks that are repeated, after every part was read or one was left: by a LIMIT, or because it failed."""
LOOKS_EVERY = 1.0
_NOTIFY = "SELECT pg_notify(%s, %s)"
_OPEN = "SELECT pid FROM pg_stat_get_activity(NULL) WHERE pid = ANY (%s)"


@dataclass(frozen=True, slots=True)
class Held:
    """The name of an exported snapshot, and the channel on which its readers say how far they are."""

    snapshot: str
    channel: str

    def begun(self, connection: psycopg.Connection, part: int) -> None:
        """Say that the task of a part begins, on the connection that it will read from."""
        self._say(connection, f"{part} {connection.info.backend_pid}")

    def read(self, connection: psycopg.Connection, part: int) -> None:
        """Say that all rows of a part were read."""
        self._say(connection, f"{part}")

    def _say(self, connection: psycopg.Connection, message: str) -> None:
        with translate_errors():
            connection.execute(_NOTIFY, (self.channel, message))


def can_hold(connection: psycopg.Connection) -> bool:
    """Return whether tasks can be heard on this server: a standby passes nothing on."""
    with translate_errors():
        ((standby,),) = connection.execute("SELECT pg_is_in_recovery()").fetchall()
    return not standby


def hold(dsn: str, parts: int, process: int) -> Held:
    """Start a process that holds a snapshot for so many parts, and ends with the given process at the latest.

    Raises DatabaseError where it cannot.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    started = subprocess.Popen(
        [sys.executable, "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env=environment,
    )
    assert started.stdin and started.stdout
    with started.stdin, started.stdout, suppress(BrokenPipeError):
        # Everybody on the machine sees the arguments of a process, so the connection string is not among them.
        started.stdin.write(json.dumps({"dsn": dsn, "parts": parts, "process": process}).encode())
        started.stdin.close()
        answer = json.loads(started.stdout.readline() or "{}")
    started.wait()
    if "snapshot" not in answer:
        reason = answer.get("error", "the process that holds it did not start")
        raise DatabaseError(f"No snapshot was held for a parallel read: {reason}", "Set the option partitions to 1.")
    return Held(**answer)


@dataclass(slots=True)
class _Tasks:
    """What tasks have said: the parts that nobody has read to the end, and the backends that read now.

    `left` says that the last task to end did so before it had read its part: Spark repeats it at once, if it wants to.
    """

    unread: set[int]
    backends: dict[int, int] = field(default_factory=dict)
    left: bool = False
    heard: float = field(default_factory=monotonic)

    def hear(self, message: str) -> None:
        part, _, backend = message.partition(" ")
        self.left, self.heard = False, monotonic()
        if backend:
            self.backends[int(part)] = int(backend)
        else:
            self.unread.discard(int(part))
            self.backends.pop(int(part), None)

    def are_over(self, ear: psycopg.Connection) -> bool:
        if self.backends:
            open_now = {backend for (backend,) in ear.execute(_OPEN, (list(self.backends.values()),))}
            self.left = not open_now
            self.backends = {part: backend for part, backend in self.backends.items() if backend in open_now}
            self.heard = monotonic()
        return monotonic() >= self.heard + (NO_TASK_FOR if self.unread and not self.left else NO_REPETITION_FOR)


def _hold(request: dict[str, Any]) -> None:
    dsn = request["dsn"]
    with connect(dsn, role="reader snapshot") as holding, connect(dsn, role="reader") as ear:
        channel = f"pytrickle_{secrets.token_hex(8)}"
        with translate_errors():
            keep_open(holding)
            keep_open(ear)
            ear.execute(filled("LISTEN {channel}", channel=sql.Identifier(channel)))
            holding.execute(BEGIN)
            ((snapshot,),) = holding.execute("SELECT pg_export_snapshot()").fetchall()
        _answer(asdict(Held(snapshot, channel)))
        tasks = _Tasks(set(range(request["parts"])))
        while _runs(request["process"]) and not tasks.are_over(ear):
            for notification in ear.notifies(timeout=LOOKS_EVERY):
                tasks.hear(notification.payload)


def _answer(answer: dict[str, str]) -> None:
    """Write the one line that the process says, and close its output, for which Spark may wait."""
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    os.close(sys.stdout.fileno())


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def main() -> None:
    """Hold a snapshot as asked for on standard input, and tell its name and channel, or the error, on the output."""
    # Whoever started it waits for the first process; the second is nobody's child, and no zombie when it ends.
    if os.fork():
        os._exit(0)
    try:
        _hold(json.load(sys.stdin))
    except PytrickleError as error:
        with suppress(OSError):
            _answer({"error": str(error)})


if __name__ == "__main__":
    main()
