"""Run the benchmark: `python -m benchmarks.propagation [--rounds N] [--output DIRECTORY]`."""

import argparse
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from time import monotonic

import psycopg
from psycopg import sql
from pyspark.sql import SparkSession
from rich.console import Console

import pytrickle
from benchmarks.conditions import conditions
from benchmarks.propagation.report import write_report
from benchmarks.propagation.topologies import BASE, LANES, Topology, topologies
from benchmarks.propagation.wake import measure_wake
from benchmarks.server import debian_binaries, server_settings
from pytrickle.client.client import Client
from pytrickle.database import connect
from pytrickle.demo.server import postgres_server

ROWS, CHANGES = 100_000, 10

console = Console(stderr=True)


@dataclass(slots=True)
class Measured:
    """Seconds of one topology: ticks after a change, one refresh at a time and in lanes, and ticks without a change."""

    topology: Topology
    changed: list[float] = field(default_factory=list)
    parallel: list[float] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)

    @property
    def per_table(self) -> float:
        """Seconds per stream table."""
        return median(self.changed) / len(self.topology.tables)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure the topologies on a server started for the purpose, and write the report.

    Return what later runs are compared by.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.propagation", description="Measure propagation.")
    parser.add_argument("--rounds", type=int, default=7, help="ticks measured for each topology")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    measured = []
    with postgres_server(options.binaries, server_settings("512MB")) as server:
        for number, topology in enumerate(topologies()):
            console.print(f"{topology.name} …")
            measured.append(_measured(_database(server.dsn, f"propagation_{number}"), topology, options.rounds))
        wakes = measure_wake(_database(server.dsn, "wake"))
        with connect(server.dsn, role="benchmark") as connection:
            found = conditions(connection, SparkSession.builder.getOrCreate(), load)
    options.output.mkdir(parents=True, exist_ok=True)
    write_report(measured, wakes, found, options.output)
    console.print(f"Wrote {options.output / 'benchmarks-propagation.md'}.")
    return {f"{each.topology.name}, ms for each table": each.per_table * 1e3 for each in measured}


def _database(dsn: str, name: str) -> str:
    with connect(dsn, role="benchmark") as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    made = psycopg.conninfo.make_conninfo(dsn, dbname=name)
    pytrickle.install(made)
    return made


def _measured(dsn: str, topology: Topology, rounds: int) -> Measured:
    with (
        connect(dsn, role="benchmark") as connection,
        pytrickle.connect(dsn, max_concurrent_refreshes=1) as sequential,
        pytrickle.connect(dsn, max_concurrent_refreshes=LANES) as parallel,
    ):
        _create(connection, sequential, topology)
        measured = Measured(topology)
        for number in range(2 * (rounds + 1)):
            client, times = ((sequential, measured.changed), (parallel, measured.parallel))[number % 2]
            warm = number >= 2
            changed = _change(connection, client, topology, ROWS + 1 + number * CHANGES)
            quiet = _timed(client.tick)
            if warm:
                times.append(changed)
                measured.quiet.append(quiet)
    return measured


def _create(connection: psycopg.Connection, client: Client, topology: Topology) -> None:
    connection.execute("SET search_path TO DEFAULT")
    connection.execute(f"CREATE TABLE {BASE} (id bigint PRIMARY KEY, amount int)".encode())
    connection.execute(f"INSERT INTO {BASE} SELECT n, n % 1000 FROM generate_series(1, {ROWS}) AS n".encode())
    for name, query in topology.tables:
        client.create_stream_table(name, query)
        client.refresh(name)
        connection.execute(f"CREATE INDEX ON {name} (id)".encode())


def _change(connection: psycopg.Connection, client: Client, topology: Topology, first: int) -> float:
    """Insert rows and return how many seconds the tick took that brought them to the last stream table."""
    insert = f"INSERT INTO {BASE} SELECT n, 1 FROM generate_series({first}, {first + CHANGES - 1}) AS n"
    connection.execute(insert.encode())
    started = monotonic()
    results = client.tick()
    taken = monotonic() - started
    _check(connection, topology, first, results)
    return taken


def _timed(work: Callable[[], object]) -> float:
    started = monotonic()
    work()
    return monotonic() - started


def _check(
    connection: psycopg.Connection, topology: Topology, first: int, results: tuple[pytrickle.RefreshResult, ...]
) -> None:
    assert {result.action for result in results} == {"DIFFERENTIAL"}, {result.action for result in results}
    for name in topology.last:
        row = connection.execute(f"SELECT count(*) FROM {name} WHERE id >= {first}".encode()).fetchone()
        assert row == (CHANGES,), f"{name} shows {row} of {CHANGES} changes"


if __name__ == "__main__":
    main()
