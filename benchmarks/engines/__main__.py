"""Run the benchmark: `python -m benchmarks.engines [--orders N] [--rounds N] [--output DIRECTORY]`."""

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

import pytrickle
from benchmarks.conditions import conditions
from benchmarks.data import Orders
from benchmarks.engines.measure import Bench, sizes
from benchmarks.engines.report import write_report
from benchmarks.server import debian_binaries, server_settings
from pytrickle.compute.spark.session import build_session
from pytrickle.database import connect
from pytrickle.demo.server import Server, postgres_server

console = Console(stderr=True)


def main() -> None:
    """Measure every engine on a server started for the purpose, and write the report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description="Measure the engines.")
    parser.add_argument("--orders", type=int, default=5_000_000, help="orders in the table")
    parser.add_argument("--customers", type=int, default=100_000, help="customers that they are of")
    parser.add_argument("--rounds", type=int, default=5, help="how often each size is measured")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with (
        postgres_server(options.binaries, server_settings("2GB")) as server,
        connect(server.dsn, role="benchmark") as connection,
    ):
        pytrickle.install(server.dsn)
        spark = build_session(pytrickle.Settings(spark_master="local[2]"))
        with pytrickle.connect(server.dsn, spark) as client:
            orders = Orders("bench", options.orders, options.customers, 250)
            bench = Bench(client, spark, connection, server.dsn, orders, _postmaster(server))
            console.print("Creating and loading …")
            first = bench.prepare(options.rounds)
            measured = {}
            for rows in sizes(options.orders):
                console.print(f"Changing {rows:,} rows …")
                measured[rows] = bench.measure(rows, options.rounds)
            found = conditions(connection, spark, load)
    path = options.output / "benchmarks-engines.md"
    write_report(measured, first, (options.orders, options.customers, options.rounds), found, path)
    console.print(f"Wrote {path}.")


def _postmaster(server: Server) -> int:
    return int((server.home / "data" / "postmaster.pid").read_text().split()[0])


if __name__ == "__main__":
    main()
