"""Run the benchmark: `python -m benchmarks.propagation [--rounds N] [--output DIRECTORY]`."""

import argparse
import os
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
from benchmarks.propagation.topologies import BASE, Topology, topologies
from benchmarks.server import debian_binaries, server_settings
from pytrickle.client import Client
from pytrickle.db import connect
from pytrickle.demo.server import postgres_server

ROWS, CHANGES = 100_000, 10

console = Console(stderr=True)


@dataclass(slots=True)
class Measured:
    """Seconds of one topology: ticks after a change, and ticks without one."""

    topology: Topology
    changed: list[float] = field(default_factory=list)
    quiet: list[float] = field(default_factory=list)

    @property
    def per_table(self) -> float:
        """Seconds per stream table."""
        return median(self.changed) / len(self.topology.tables)


def main() -> None:
    """Measure the topologies on a server started for the purpose, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.propagation", description="Measure propagation.")
    parser.add_argument("--rounds", type=int, default=7, help="ticks measured for each topology")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    measured = []
    with postgres_server(options.binaries, server_settings("512MB")) as server:
        for number, topology in enumerate(topologies()):
            console.print(f"{topology.name} …")
            dsn = _database(server.dsn, f"propagation_{number}")
            with connect(dsn, role="benchmark") as connection, pytrickle.connect(dsn) as client:
                measured.append(_measure(connection, client, topology, options.rounds))
        with connect(server.dsn, role="benchmark") as connection:
            found = conditions(connection, SparkSession.builder.getOrCreate(), load)
    options.output.mkdir(parents=True, exist_ok=True)
    write_report(measured, found, options.output)
    console.print(f"Wrote {options.output / 'benchmarks-propagation.md'}.")


def _database(dsn: str, name: str) -> str:
    with connect(dsn, role="benchmark") as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    made = psycopg.conninfo.make_conninfo(dsn, dbname=name)
    pytrickle.install(made)
    return made


def _measure(connection: psycopg.Connection, client: Client, topology: Topology, rounds: int) -> Measured:
    connection.execute(f"CREATE TABLE {BASE} (id bigint PRIMARY KEY, amount int)".encode())
    connection.execute(f"INSERT INTO {BASE} SELECT n, n % 1000 FROM generate_series(1, {ROWS}) AS n".encode())
    for name, query in topology.tables:
        client.create_stream_table(name, query)
        client.refresh(name)
        for column in ("id",):
            connection.execute(f"CREATE INDEX ON {name} ({column})".encode())
    measured = Measured(topology)
    for number in range(rounds + 1):
        first = ROWS + 1 + number * CHANGES
        insert = f"INSERT INTO {BASE} SELECT n, 1 FROM generate_series({first}, {first + CHANGES - 1}) AS n"
        connection.execute(insert.encode())
        started = monotonic()
        results = client.tick()
        _check(connection, topology, first, results)
        if number:
            measured.changed.append(monotonic() - started)
        started = monotonic()
        client.tick()
        if number:
            measured.quiet.append(monotonic() - started)
    return measured


def _check(
    connection: psycopg.Connection, topology: Topology, first: int, results: tuple[pytrickle.RefreshResult, ...]
) -> None:
    assert {result.action for result in results} == {"DIFFERENTIAL"}, {result.action for result in results}
    for name in topology.last:
        row = connection.execute(f"SELECT count(*) FROM {name} WHERE id >= {first}".encode()).fetchone()
        assert row == (CHANGES,), f"{name} shows {row} of {CHANGES} changes"


if __name__ == "__main__":
    main()
