"""Run the benchmark: `python -m benchmarks.sink [--rows N] [--batches N] [--repetitions N] [--output DIRECTORY]`."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import pytrickle
from benchmarks.conditions import conditions
from benchmarks.server import debian_binaries, server_settings
from benchmarks.sink.measure import Bench, measure
from benchmarks.sink.report import write_report
from pytrickle.compute.spark.session import build_session
from pytrickle.database import connect
from pytrickle.demo.server import postgres_server

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure every way of writing on a server started for the purpose, and write the report.

    Return what later runs are compared by.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sink", description="Measure the streaming sink.")
    parser.add_argument("--rows", type=int, default=250_000, help="rows in a batch")
    parser.add_argument("--batches", type=int, default=4, help="batches of a query")
    parser.add_argument("--repetitions", type=int, default=5, help="how often each way is measured")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    parser.add_argument("--binaries", type=Path, default=debian_binaries(), help="directory of postgres and initdb")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0]
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    rows = options.rows * options.batches
    with (
        tempfile.TemporaryDirectory() as directory,
        postgres_server(options.binaries, server_settings("512MB")) as server,
        connect(server.dsn, role="benchmark") as connection,
    ):
        pytrickle.install(server.dsn)
        spark = build_session(pytrickle.Settings(spark_master="local[2]"))
        bench = Bench(spark, connection, server.dsn, Path(directory))
        console.print(f"Writing files of {rows:,} rows …")
        bench.fill(options.batches, options.rows)
        console.print("Streaming …")
        measured = measure(bench, rows, options.repetitions)
        found = conditions(connection, spark, load)
    options.output.mkdir(parents=True, exist_ok=True)
    write_report(measured, rows, options.batches, found, options.output / "benchmarks-sink.md")
    console.print(f"Wrote {options.output / 'benchmarks-sink.md'}.")
    plain = next(iter(measured.values())).median
    return {f"{way}, of Spark's append": timing.median / plain for way, timing in measured.items()}


if __name__ == "__main__":
    main()
