"""Run the benchmark: `python -m benchmarks [--scale small] [--output DIRECTORY] [--binaries DIRECTORY]`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession
from rich.console import Console

import pytrickle
from benchmarks.baselines import create_baselines, recompute_with_spark
from benchmarks.capture.cost import Sizes, measure_capture
from benchmarks.chart import draw_chart
from benchmarks.clock import Timing, stopwatch
from benchmarks.conditions import conditions
from benchmarks.data import Orders
from benchmarks.refreshes import measure_refresh, stream_table
from benchmarks.report import write_report
from benchmarks.results import Results
from benchmarks.server import debian_binaries, server_settings
from benchmarks.sizes import SCALES, Scale
from pytrickle.client.client import Client
from pytrickle.compute.spark.session import build_session
from pytrickle.database import connect
from pytrickle.demo.server import postgres_server

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure everything on a server started for the purpose, and write the report and the chart.

    Return what later runs are compared by.
    """
    options = _options(arguments)
    with postgres_server(options.binaries, server_settings(options.scale.shared_buffers)) as server:
        console.print(f"PostgreSQL {server.version} started.")
        pytrickle.install(server.dsn)
        with connect(server.dsn, role="benchmark") as connection, pytrickle.connect(server.dsn) as client:
            results = _measure(connection, client, options.scale)
    options.output.mkdir(parents=True, exist_ok=True)
    draw_chart(results, options.output / "benchmarks.png")
    write_report(results, "benchmarks.png", options.output / "benchmarks.md")
    console.print(f"Wrote {options.output / 'benchmarks.md'} and the chart beside it.")
    return results.figures


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure pytrickle.")
    parser.add_argument("--scale", type=SCALES.__getitem__, default="full", help=" or ".join(SCALES))
    parser.add_argument("--output", type=Path, help="where the report goes (default: docs; build for other scales)")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args(arguments)
    options.output = options.output or Path("docs" if options.scale.name == "full" else "build")
    return options


def _measure(connection: psycopg.Connection, client: Client, scale: Scale) -> Results:
    load = os.getloadavg()[0]
    # Capture first: as long as Spark has not started, nothing else uses the machine.
    console.print("Measuring the cost of capture …")
    capture = measure_capture(connection, Sizes(scale.copied_rows, scale.single_inserts, scale.copy_rounds))
    more, fewer = _tables(connection, client, scale)
    console.print("Loading both stream tables …")
    initial = stopwatch(client.refresh, stream_table(more))
    client.refresh(stream_table(fewer))
    _warm_up(connection, client, fewer, scale)
    refreshes = []
    for rows, rounds in scale.rounds.items():
        console.print(f"Refreshing after {rows:,} changes …")
        refreshes.append(measure_refresh(client, connection, more, rows, rounds))
    pair = _compare(connection, client, fewer, more, scale)
    spark = _recompute(connection, more, scale)
    verified = all(client.verify(stream_table(orders)).matches for orders in (more, fewer))
    stated = conditions(connection, SparkSession.builder.getOrCreate(), load)
    return Results(scale, stated, tuple(refreshes), spark, *pair, initial, capture, verified)


def _tables(connection: psycopg.Connection, client: Client, scale: Scale) -> tuple[Orders, Orders]:
    sizes = {"more": scale.orders, "fewer": scale.fewer_orders}
    tables = {schema: Orders(schema, count, scale.customers, scale.regions) for schema, count in sizes.items()}
    for orders in tables.values():
        console.print(f"Making {orders.orders:,} orders …")
        orders.create(connection)
        create_baselines(connection, orders)
        client.create_stream_table(stream_table(orders), orders.query, refresh_mode="DIFFERENTIAL")
    return tables["more"], tables["fewer"]


def _warm_up(connection: psycopg.Connection, client: Client, orders: Orders, scale: Scale) -> None:
    """Bring the process to where one that has run for some minutes is: the JVM has compiled what it uses."""
    console.print(f"Warming up with {scale.warm_up_refreshes} refreshes …")
    for _ in range(scale.warm_up_refreshes):
        orders.change(connection, 100)
        client.refresh(stream_table(orders))


def _compare(
    connection: psycopg.Connection, client: Client, fewer: Orders, more: Orders, scale: Scale
) -> tuple[Timing, Timing]:
    """Refresh both sizes in turns after the same number of changes."""
    console.print(f"Refreshing after {scale.compared_changes:,} changes on both sizes …")
    seconds: dict[Orders, list[float]] = {fewer: [], more: []}
    for _ in range(scale.compared_rounds + 1):
        for orders, taken in seconds.items():
            orders.change(connection, scale.compared_changes)
            orders.tidy(connection)
            taken.append(client.refresh(stream_table(orders)).duration.total_seconds())
    return Timing(tuple(seconds[fewer][1:])), Timing(tuple(seconds[more][1:]))


def _recompute(connection: psycopg.Connection, orders: Orders, scale: Scale) -> Timing:
    console.print("Recomputing everything with Spark …")
    # With the driver, which no refresh may have needed before: few rows are read without Spark.
    spark = build_session(pytrickle.Settings())
    runs = [stopwatch(recompute_with_spark, spark, connection, orders) for _ in range(scale.full_rounds + 1)]
    return Timing(tuple(runs[1:]))


if __name__ == "__main__":
    main()
