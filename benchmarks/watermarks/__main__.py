"""Run the benchmark: `python -m benchmarks.watermarks [--rows N] [--repetitions N] [--output DIRECTORY]`."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.conditions import machine
from benchmarks.watermarks.measure import EMIT_EVERY, GENERATORS, emission, event_times, forms, measure
from benchmarks.watermarks.report import versions, write_report

console = Console(stderr=True)


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Measure every generator in every form, write the report, and return what later runs are compared by."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.watermarks", description="Measure the generators.")
    parser.add_argument("--rows", type=int, default=10 * EMIT_EVERY, help="how many rows each generator takes")
    parser.add_argument("--repetitions", type=int, default=7, help="how often each is measured")
    parser.add_argument("--output", type=Path, default=Path("docs"), help="where the report goes")
    options = parser.parse_args(arguments)
    found = {**machine(os.getloadavg()[0], "the benchmark uses one of them"), **versions()}
    column = event_times(options.rows)
    measured = []
    for name in GENERATORS:
        console.print(f"{name} …")
        measured += [measure(name, form, column, options.repetitions) for form in forms(options.rows)]
    emissions = {name: emission(name, column, options.repetitions) for name in GENERATORS}
    options.output.mkdir(parents=True, exist_ok=True)
    write_report(measured, emissions, found, options.output / "benchmarks-watermarks.md")
    console.print(f"Wrote {options.output / 'benchmarks-watermarks.md'}.")
    return {f"{one.generator}, {one.form.name}, ns for each row": 1e9 / one.rate for one in measured}


if __name__ == "__main__":
    main()
