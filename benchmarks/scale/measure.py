"""Creates the tables of a fleet, then measures ticks, commands that look at the catalog, and a daemon's memory."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

import psycopg

from benchmarks.engines.processor import processor_seconds
from benchmarks.scale.tables import Fleet
from pytrickle.client.client import Client

TICKS_OF_A_DAEMON = 3
DAEMON = """
import sys, pytrickle
with pytrickle.connect(sys.argv[1], engine="postgres") as client:
    for _ in range({ticks}):
        client.tick()
    print(open("/proc/self/status").read())
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one thing took each time: seconds of the clock, of our processor, and of the server's processors."""

    clock: list[float] = field(default_factory=list)
    client: list[float] = field(default_factory=list)
    server: list[float] = field(default_factory=list)

    def median(self, kind: str) -> float:
        """Return the median of a kind of seconds, over what came after the first time where there was more."""
        seconds = getattr(self, kind)
        return float(median(seconds[1:] or seconds))


@dataclass(frozen=True, slots=True)
class Figures:
    """What a fleet took, by what was done, and the bytes of memory that a refresher of it holds."""

    fleet: Fleet
    costs: dict[str, Cost]
    memory: int


@dataclass(frozen=True, slots=True)
class Bench:
    """What a measurement works with; `postmaster` is the server's first process."""

    client: Client
    connection: psycopg.Connection
    dsn: str
    postmaster: int
    report: Callable[[str], None]

    def measure(self, fleet: Fleet, rounds: int) -> Figures:
        """Measure one fleet in an empty database; what is repeated has one repetition that does not count."""
        fleet.create_sources(self.connection)
        costs = {
            "create": self._take("create", self._create(fleet)),
            "first tick": self._take("first tick", self._tick),
        }
        self.connection.execute("VACUUM ANALYZE")
        # While nothing at all is committed, a tick rests; in a database in use something else always is.
        costs["quiet tick"] = self._take("quiet tick", self._tick, rounds + 1, self._commit_something)
        change = partial(fleet.change_one, self.connection, 0)
        costs["one source"] = self._take("one source", self._tick, rounds + 1, change)
        for command in ("status", "dag"):
            costs[command] = self._take(command, self._command(command), rounds)
        return Figures(fleet, costs, self._memory())

    def _take(
        self, name: str, work: Callable[[], object], times: int = 1, before: Callable[[], object] = lambda: None
    ) -> Cost:
        cost = Cost()
        for _ in range(times):
            before()
            clock, client, server = time.perf_counter(), time.process_time(), processor_seconds(self.postmaster)
            work()
            cost.clock.append(time.perf_counter() - clock)
            cost.client.append(time.process_time() - client)
            cost.server.append(processor_seconds(self.postmaster) - server)
        self.report(f"{name}: {', '.join(f'{k} {cost.median(k):.3f} s' for k in ('clock', 'client', 'server'))}")
        return cost

    def _create(self, fleet: Fleet) -> Callable[[], object]:
        def create() -> None:
            for name, query in fleet.definitions():
                self.client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", schedule="calculated")

        return create

    def _commit_something(self) -> None:
        self.connection.execute("SELECT pg_current_xact_id()")

    def _tick(self) -> None:
        failed = [result for result in self.client.tick() if result.error is not None]
        assert not failed, failed[0]

    def _command(self, command: str) -> Callable[[], object]:
        program = [str(Path(sys.executable).with_name("pytrickle")), command]
        environment = {**os.environ, "PYTRICKLE_DSN": self.dsn}
        return lambda: subprocess.run(program, env=environment, check=True, stdout=subprocess.DEVNULL)

    def _memory(self) -> int:
        """Return the bytes that another process holds after it has ticked."""
        program = [sys.executable, "-c", DAEMON.format(ticks=TICKS_OF_A_DAEMON), self.dsn]
        told = subprocess.run(program, check=True, capture_output=True, text=True).stdout
        lines = dict(line.split(":", 1) for line in told.splitlines() if ":" in line)
        return int(lines["VmHWM"].split()[0]) * 1024
