"""Run the benchmark: `python -m benchmarks.scale [--fleets 500/50,5000/500] [--rounds N] [--output DIRECTORY]`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg import sql
from rich.console import Console

import pytrickle
from benchmarks.conditions import machine, server_conditions
from benchmarks.scale.measure import Bench, Figures
from benchmarks.scale.report import figures_of, write_report
from benchmarks.scale.tables import Fleet
from benchmarks.server import debian_binaries, server_settings
from pytrickle.database import connect
from pytrickle.demo.server import Server, postgres_server

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure the fleets on a server started for the purpose, each in a database of its own; write the report.

    Return what later runs are compared by.
    """
    options = _options(arguments)
    load = os.getloadavg()[0]
    with postgres_server(options.binaries, server_settings("2GB")) as server:
        measured = [_measured(server, number, fleet, options.rounds) for number, fleet in enumerate(options.fleets)]
        with connect(server.dsn, role="benchmark") as connection:
            found = {**machine(load, "PostgreSQL and the benchmark share it"), **server_conditions(connection)}
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "benchmarks-scale.md"
    write_report(measured, options.rounds, found, path)
    console.print(f"Wrote {path}.")
    return figures_of(measured)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Measure many stream tables.")
    parser.add_argument(
        "--fleets", type=_fleets, default="500/50,5000/500", help="stream tables over sources, by comma"
    )
    parser.add_argument("--rounds", type=int, default=5, help="how often each tick is measured")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    return parser.parse_args(arguments)


def _fleets(text: str) -> list[Fleet]:
    pairs = (pair.split("/") for pair in text.split(","))
    return [Fleet(int(sources), int(tables)) for tables, sources in pairs]


def _measured(server: Server, number: int, fleet: Fleet, rounds: int) -> Figures:
    console.print(f"{fleet.tables:,} stream tables over {fleet.sources:,} sources …")
    with connect(server.dsn, role="benchmark") as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(f"fleet_{number}")))
    dsn = psycopg.conninfo.make_conninfo(server.dsn, dbname=f"fleet_{number}")
    pytrickle.install(dsn)
    postmaster = int((server.home / "data" / "postmaster.pid").read_text().split()[0])
    with connect(dsn, role="benchmark") as connection, pytrickle.connect(dsn, engine="postgres") as client:
        return Bench(client, connection, dsn, postmaster, console.print).measure(fleet, rounds)


if __name__ == "__main__":
    main()
