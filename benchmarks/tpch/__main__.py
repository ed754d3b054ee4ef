"""Run the benchmark: `python -m benchmarks.tpch [--orders N] [--rounds N] [--queries q01] [--choices [--engines]]`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession
from rich.console import Console

import pytrickle
from benchmarks.conditions import conditions, machine
from benchmarks.server import debian_binaries, server_settings
from benchmarks.tpch.chart import draw_chart
from benchmarks.tpch.choices import ENGINES, MODES, Choices
from benchmarks.tpch.choices_report import write_choices
from benchmarks.tpch.database import Database
from benchmarks.tpch.measure import Measurement, limit_statements
from benchmarks.tpch.queries import read_queries
from benchmarks.tpch.report import write_report
from benchmarks.tpch.results import Results
from pytrickle.client.client import Client
from pytrickle.database import connect
from pytrickle.demo.server import postgres_server

DEFAULT_ORDERS = 300_000
LARGE = 100_000
PERCENTS = (0.1, 1.0)
CHOICE_PERCENTS = (0.1, 1.0, 5.0, 20.0)

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure the queries on a server started for the purpose, and write the report and the chart.

    Return what later runs are compared by.
    """
    options = _options(arguments)
    buffers = "2GB" if options.orders >= LARGE else "256MB"
    with postgres_server(options.binaries, server_settings(buffers)) as server:
        console.print(f"PostgreSQL {server.version} started.")
        pytrickle.install(server.dsn)
        with connect(server.dsn, role="benchmark") as connection, pytrickle.connect(server.dsn) as client:
            if options.choices:
                _choose(connection, client, options)
                return {}
            results = _measure(connection, client, options)
    draw_chart(results, options.output / "benchmarks-tpch.png")
    write_report(results, "benchmarks-tpch.png", options.output / "benchmarks-tpch.md")
    console.print(f"Wrote {options.output / 'benchmarks-tpch.md'} and the chart beside it.")
    return results.comparison


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description="Measure TPC-H's queries.")
    parser.add_argument("--orders", type=int, default=DEFAULT_ORDERS, help="size (1,500,000 is scale factor 1)")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions at each rate of change")
    parser.add_argument("--queries", type=_queries, default=read_queries(), help="names by comma (default: all)")
    parser.add_argument("--timeout", type=int, default=300, help="seconds that one statement may take")
    parser.add_argument("--choices", action="store_true", help="measure how well AUTO chooses instead")
    parser.add_argument("--engines", action="store_true", help="with --choices: hold stream tables to each engine, too")
    parser.add_argument("--output", type=Path, help="where the report goes (default: docs; build for few orders)")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args(arguments)
    published = options.choices or options.orders >= DEFAULT_ORDERS
    options.output = options.output or Path("docs" if published else "build")
    options.output.mkdir(parents=True, exist_ok=True)
    return options


def _queries(names: str) -> object:
    return read_queries(names.split(","))


def _measure(connection: psycopg.Connection, client: Client, options: argparse.Namespace) -> Results:
    load = os.getloadavg()[0]
    database = Database(connection, options.orders)
    console.print(f"Making {options.orders:,} orders …")
    database.create()
    sizes = database.sizes()
    measurement = Measurement(database, client, options.queries, options.timeout, console.print)
    measurement.create()
    for percent in PERCENTS:
        measurement.measure(percent, options.rounds)
    return Results(
        conditions(connection, SparkSession.builder.getOrCreate(), load),
        sizes,
        options.rounds,
        options.timeout,
        {query.name: query.title for query in options.queries},
        measurement.figures,
        measurement.changed,
        measurement.failures,
        frozenset(measurement.unequal),
    )


def _choose(connection: psycopg.Connection, client: Client, options: argparse.Namespace) -> None:
    """Measure how well AUTO chooses, and write that section of the report."""
    stands = machine(os.getloadavg()[0], "PostgreSQL and the benchmark share it")
    database = Database(connection, options.orders)
    console.print(f"Making {options.orders:,} orders …")
    database.create()
    choices = Choices(database, client, options.queries, ENGINES if options.engines else MODES, console.print)
    choices.create()
    limit_statements(connection, options.timeout)
    for percent in CHOICE_PERCENTS:
        choices.measure(percent, options.rounds)
    if choices.unequal:
        raise SystemExit(f"Not what the query gives: {', '.join(sorted(choices.unequal))}.")
    path = options.output / "benchmarks-choices.md"
    write_choices(choices.rounds, options.orders, stands, path)
    console.print(f"Wrote {path}.")


if __name__ == "__main__":
    main()
