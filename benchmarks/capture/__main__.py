"""Run the benchmark: `python -m benchmarks.capture [--scale N] [--seconds N] [--rounds N] [--output DIRECTORY]`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import pytrickle
from benchmarks.capture.cost import Sizes, measure_capture
from benchmarks.capture.pgbench import Bench, databases
from benchmarks.capture.report import figures, write_report
from benchmarks.conditions import machine, server_conditions
from benchmarks.server import debian_binaries, server_settings
from pytrickle.database import connect
from pytrickle.demo.server import postgres_server

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure on a server started for the purpose, write the report, and return what later runs are compared by."""
    options = _options(arguments)
    load = os.getloadavg()[0]
    sizes = Sizes(options.rows, options.inserts, options.rounds)
    with (
        postgres_server(options.binaries, server_settings("2GB")) as server,
        connect(server.dsn, role="benchmark") as connection,
        databases(server.dsn) as dsns,
    ):
        pytrickle.install(server.dsn)
        console.print("Writing with capture and without …")
        costs = measure_capture(connection, sizes)
        bench = Bench(options.binaries, dsns, options.scale)
        console.print("Filling pgbench's tables …")
        bench.fill()
        console.print(f"Running pgbench, {options.seconds} seconds each …")
        runs = bench.measure(options.seconds, options.rounds)
        found = {**machine(load, "PostgreSQL, pgbench and the refresher share it"), **server_conditions(connection)}
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "benchmarks-capture.md"
    write_report(costs, runs, (options.scale, options.seconds, options.rounds), found, path)
    console.print(f"Wrote {path}.")
    return figures(costs, runs)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture", description="Measure what capture costs.")
    parser.add_argument("--rows", type=int, default=500_000, help="rows of a COPY")
    parser.add_argument("--inserts", type=int, default=20_000, help="single rows inserted")
    parser.add_argument("--scale", type=int, default=20, help="pgbench's scale: a hundred thousand accounts each")
    parser.add_argument("--seconds", type=int, default=60, help="how long each run of pgbench takes")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything is measured")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and pgbench")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
