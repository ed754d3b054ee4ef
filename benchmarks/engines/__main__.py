"""Run the benchmark: `python -m benchmarks.engines [--orders N] [--rounds N] [--output DIRECTORY]`.

With `--first-refresh`, `--cluster [--rows N]` or `--primary [--rows N] [--tpch-orders N]` only that is measured, and
its section of the report replaced.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import psycopg
from rich.console import Console

import pytrickle
from benchmarks.conditions import conditions
from benchmarks.data import Orders
from benchmarks.engines.cluster import measure_cluster
from benchmarks.engines.first_refresh import measure_first_refresh
from benchmarks.engines.measure import Bench, sizes
from benchmarks.engines.primary import Primary
from benchmarks.engines.report import figures, write_report
from benchmarks.engines.sections import CLUSTER, FIRST_REFRESH, PRIMARY, put_section, sections_apart
from benchmarks.server import debian_binaries, server_settings
from benchmarks.tpch.database import Database
from pytrickle.compute.spark.session import build_session
from pytrickle.database import connect
from pytrickle.demo.server import Server, postgres_server

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure every engine on a server started for the purpose, and write the report.

    Return what later runs are compared by.
    """
    options = _options(arguments)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "benchmarks-engines.md"
    load = os.getloadavg()[0]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    with (
        postgres_server(options.binaries, server_settings("2GB")) as server,
        connect(server.dsn, role="benchmark") as connection,
    ):
        pytrickle.install(server.dsn)
        if options.first_refresh or options.cluster or options.primary:
            _measure_apart(options, path, connection, server)
            return {}
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
    apart = sections_apart(path)
    write_report(measured, first, (options.orders, options.customers, options.rounds), found, path)
    for title, text in apart.items():
        put_section(path, title, text)
    console.print(f"Wrote {path}.")
    return figures(measured)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engines", description="Measure the engines.")
    parser.add_argument("--orders", type=int, default=5_000_000, help="orders in the table")
    parser.add_argument("--customers", type=int, default=100_000, help="customers that they are of")
    parser.add_argument("--rounds", type=int, default=5, help="how often each size is measured")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    parser.add_argument("--first-refresh", action="store_true", help="measure only the first refresh of a process")
    parser.add_argument("--cluster", action="store_true", help="measure only a cluster of one executor and of two")
    parser.add_argument("--primary", action="store_true", help="measure only what the server pays under either engine")
    parser.add_argument("--rows", type=int, default=2_000_000, help="rows of each table that these two join")
    parser.add_argument("--tpch-orders", type=int, default=1_500_000, help="TPC-H's orders for --primary")
    return parser.parse_args(arguments)


def _measure_apart(options: argparse.Namespace, path: Path, connection: psycopg.Connection, server: Server) -> None:
    """Measure with processes of their own, which no other Spark may disturb."""
    with pytrickle.connect(server.dsn, engine="postgres") as client:
        if options.first_refresh:
            put_section(path, FIRST_REFRESH, measure_first_refresh(client, connection, server.dsn, options.rounds))
        if options.cluster:
            sizes = (options.rows, options.rounds, _postmaster(server))
            put_section(path, CLUSTER, measure_cluster(client, connection, server.dsn, sizes))
    if options.primary:
        spark = build_session(pytrickle.Settings(spark_master="local[2]"))
        with pytrickle.connect(server.dsn, spark) as client:
            database = Database(connection, options.tpch_orders)
            primary = Primary(client, connection, _postmaster(server), database, options.rows)
            put_section(path, PRIMARY, primary.measure(options.rounds))
    console.print(f"Wrote {path}.")


def _postmaster(server: Server) -> int:
    return int((server.home / "data" / "postmaster.pid").read_text().split()[0])


if __name__ == "__main__":
    main()
