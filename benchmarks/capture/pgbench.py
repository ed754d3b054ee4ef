"""What pgbench's clients notice: throughput and latencies without capture, with it, and with a refresher at work."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

import psycopg
from psycopg import sql

import pytrickle
from pytrickle.database import connect

CLIENTS, JOBS = 8, 2
SCRIPTS = {"TPC-B-like": ("--builtin", "tpcb-like"), "mixed": ("--file", str(Path(__file__).with_name("mixed.sql")))}
PLAIN, CAPTURED, REFRESHED = STATES = ("without capture", "with capture", "with a refresher too")
TABLES = {
    "balances": "SELECT bid, count(*) AS accounts, sum(abalance) AS balance FROM public.pgbench_accounts GROUP BY bid",
    "movements": "SELECT bid, count(*) AS movements, sum(delta) AS moved FROM public.pgbench_history GROUP BY bid",
}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of pgbench: transactions per second, and the latency that 95 of 100 transactions kept to, in seconds."""

    throughput: float
    p95: float


@dataclass(frozen=True, slots=True)
class Bench:
    """Two databases that pgbench filled alike; in the second, two stream tables read what its clients write."""

    programs: Path
    dsns: dict[str, str]
    scale: int

    def measure(self, seconds: int, rounds: int) -> dict[tuple[str, str], list[Run]]:
        """Run every script in every state, in turns."""
        runs: dict[tuple[str, str], list[Run]] = {}
        for _ in range(rounds):
            for script in SCRIPTS:
                for state in STATES:
                    runs.setdefault((script, state), []).append(self.run(script, state, seconds))
        return runs

    def run(self, script: str, state: str, seconds: int) -> Run:
        """Let the clients of one script write for some seconds, and return what they noticed."""
        dsn = self.dsns[PLAIN if state == PLAIN else CAPTURED]
        self._tidy(dsn)
        with tempfile.TemporaryDirectory() as directory, _refresher(dsn if state == REFRESHED else None):
            options = ["--client", str(CLIENTS), "--jobs", str(JOBS), "--time", str(seconds), "--no-vacuum", "--log"]
            told = self._pgbench(dsn, *options, "--define", f"scale={self.scale}", *SCRIPTS[script], home=directory)
            logs = [path.read_text().split("\n") for path in Path(directory).glob("pgbench_log.*")]
        microseconds = [int(line.split()[2]) for log in logs for line in log if line]
        match = re.search(r"tps = ([0-9.]+)", told)
        assert match is not None, told
        return Run(float(match[1]), quantiles(microseconds, n=20)[-1] / 1e6)

    def fill(self) -> None:
        """Create pgbench's tables in both databases, and the stream tables in the second."""
        for dsn in self.dsns.values():
            self._pgbench(dsn, "--initialize", "--quiet", "--scale", str(self.scale))
        with pytrickle.connect(self.dsns[CAPTURED], engine="postgres") as client:
            for name, query in TABLES.items():
                client.create_stream_table(name, query)
            client.tick()

    def _pgbench(self, dsn: str, *options: str, home: str | None = None) -> str:
        address = psycopg.conninfo.conninfo_to_dict(dsn)
        environment = {**os.environ, "PGPASSWORD": str(address.pop("password", ""))}
        program = [str(self.programs / "pgbench"), *options, psycopg.conninfo.make_conninfo("", **address)]
        done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True, cwd=home)
        return done.stdout

    def _tidy(self, dsn: str) -> None:
        """Let every run begin alike: nothing left to refresh, nothing to vacuum, nothing to write back."""
        with connect(dsn, role="benchmark") as connection:
            connection.execute("TRUNCATE public.pgbench_history")
            if dsn == self.dsns[CAPTURED]:
                with pytrickle.connect(dsn, engine="postgres") as client:
                    client.tick()
            connection.execute("VACUUM ANALYZE")
            connection.execute("CHECKPOINT")


def cost(runs: dict[tuple[str, str], list[Run]], script: str, state: str) -> tuple[float, float]:
    """Return throughput and p95 of a state as parts of those without capture: medians of the ratios of each round."""
    pairs = list(zip(runs[script, state], runs[script, PLAIN], strict=True))
    return (
        median(run.throughput / plain.throughput for run, plain in pairs),
        median(run.p95 / plain.p95 for run, plain in pairs),
    )


@contextmanager
def databases(dsn: str) -> Iterator[dict[str, str]]:
    """Hold a database without capture and one with it."""
    names = {PLAIN: "pgbench_plain", CAPTURED: "pgbench_captured"}
    dsns = {state: psycopg.conninfo.make_conninfo(dsn, dbname=name) for state, name in names.items()}
    with connect(dsn, role="benchmark") as connection:
        for name in names.values():
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        pytrickle.install(dsns[CAPTURED])
        try:
            yield dsns
        finally:
            for name in names.values():
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _refresher(dsn: str | None) -> Iterator[None]:
    """Have a daemon refresh the stream tables of a database every second, as it does by default, if one is given."""
    if dsn is None:
        yield
        return
    program = [str(Path(sys.executable).with_name("pytrickle")), "run"]
    environment = {**os.environ, "PYTRICKLE_DSN": dsn, "PYTRICKLE_ENGINE": "postgres"}
    daemon = subprocess.Popen(program, env=environment, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        daemon.terminate()
        daemon.wait(timeout=60)
