"""The report of what the sink costs: a table of rates, and the ratio to plain appends."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.clock import Timing
from benchmarks.sink.measure import PARTITIONS

TARGET = 1.3


def write_report(
    measured: Mapping[str, Timing], rows: int, batches: int, conditions: Mapping[str, str], path: Path
) -> None:
    """Write the Markdown file; the first way measured is what the others are compared with."""
    plain, *_ = measured.values()
    sinks = [timing.median / plain.median for name, timing in measured.items() if "ink" in name]
    path.write_text(
        TEMPLATE.format(
            rows=rows,
            batches=batches,
            partitions=PARTITIONS,
            repetitions=len(plain.seconds),
            lines="\n".join(_line(name, timing, rows, plain) for name, timing in measured.items()),
            worst=f"{max(sinks):.2f}",
            met="met" if max(sinks) <= TARGET else "**missed**",
            conditions="\n".join(f"| {name} | {value} |" for name, value in conditions.items()),
        ),
        encoding="utf-8",
    )


def _line(name: str, timing: Timing, rows: int, plain: Timing) -> str:
    fastest, slowest = timing.span
    span = f"{timing.median:.2f} ({fastest:.2f} – {slowest:.2f})"
    return f"| {name} | {span} | {rows / timing.median:,.0f} | {timing.median / plain.median:.2f} |"


TEMPLATE = """# What the streaming sink costs

<!-- Written by `python -m benchmarks.sink`; do not edit. -->

For whoever loads by Spark streaming: what it costs that each batch arrives exactly once, with its watermark.

How long a streaming query takes that reads {rows:,} orders of five columns from Parquet files, in {batches} batches of
{partitions} tasks each, into an empty table without indexes: by [the sink](howto/load-from-spark.md), which writes each
batch exactly once and advances the watermark with it, and by Spark's own append over JDBC in `foreachBatch`, which does
neither: a batch that fails half-way leaves part of its rows, and leaves them again when it is repeated. All ways in
turns, in one run; the median of {repetitions} repetitions after one that warmed up, with the fastest and the slowest in
brackets. `make bench-sink` repeats it.

| | seconds | rows per second | ratio |
|---|---:|---:|---:|
{lines}

The sink was expected to take at most 1.3 times what the append takes: {met}, it took {worst} times as long at worst.

## Conditions

| | |
|---|---|
{conditions}
"""
