"""The report of what watermark generators cost: a table of rates, and one of emissions."""

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.clock import Timing
from benchmarks.watermarks.measure import EMIT_EVERY, SINGLE_SHARE, Measured

TARGET = 1e6


def versions() -> dict[str, str]:
    """Return the versions of what did the work."""
    return {"Python": f"{platform.python_version()}, NumPy {np.__version__}, Arrow {pa.__version__}"}


def write_report(
    measured: Sequence[Measured], emissions: Mapping[str, Timing], conditions: Mapping[str, str], path: Path
) -> None:
    """Write the Markdown file."""
    names = list(dict.fromkeys(one.form.name for one in measured))
    rows = [_row(generator, [one for one in measured if one.generator == generator]) for generator in emissions]
    slowest = min((one for one in measured if one.form.name != names[0]), key=lambda one: one.rate)
    path.write_text(
        TEMPLATE.format(
            count=measured[-1].form.rows,
            singles=measured[-1].form.rows // SINGLE_SHARE,
            repetitions=len(measured[0].timing.seconds),
            emit_every=EMIT_EVERY,
            header=" | ".join(names),
            rule="---:|" * len(names),
            rows="\n".join(rows),
            slowest=f"{slowest.rate / 1e6:,.1f}",
            slowest_case=f"{slowest.generator}, {slowest.form.name} rows at a time",
            met="met" if slowest.rate >= TARGET else "**missed**",
            emissions="\n".join(f"| {name} | {_span(timing)} |" for name, timing in emissions.items()),
            conditions="\n".join(f"| {name} | {value} |" for name, value in conditions.items()),
        ),
        encoding="utf-8",
    )


def _row(generator: str, measured: Sequence[Measured]) -> str:
    return f"| {generator} | " + " | ".join(_rate(one) for one in measured) + " |"


def _rate(measured: Measured) -> str:
    fastest, slowest = measured.timing.span
    low, high = (measured.form.rows / seconds / 1e6 for seconds in (slowest, fastest))
    return f"{measured.rate / 1e6:,.2f} ({low:,.2f} – {high:,.2f})"


def _span(timing: Timing) -> str:
    fastest, slowest = timing.span
    return f"{timing.median * 1e6:,.0f} µs ({fastest * 1e6:,.0f} – {slowest * 1e6:,.0f})"


TEMPLATE = """# What a watermark generator costs

<!-- Written by `python -m benchmarks.watermarks`; do not edit. -->

For whoever finds watermarks in a loader of many rows: how many a second each way takes.

How many rows per second the [generators](howto/find-the-watermark.md) take: they judge whether each is late, and find
the next watermark from them. {count:,} rows, out of order by a second as a rule and by minutes at worst, come singly
({singles:,} of them) or as columns of several sizes; the watermark is emitted once in {emit_every:,} rows. All figures
are from one run; each is the median of {repetitions} repetitions after one that warmed up, with the slowest and the
fastest in brackets. `make bench-watermarks` repeats it.

Millions of rows per second, by the form of the rows and how many come at a time:

| generator | {header} |
|---|{rule}
{rows}

At least a million rows per second were expected of columns of any size: {met}. The slowest took {slowest} million:
{slowest_case}.

## Emission

One emission after all {count:,} rows, with full windows. `quantile` sorts 1,000 event times for it, `adaptive` 10,000
skews; that is why watermarks are emitted at intervals and not for each row.

| generator | time |
|---|---:|
{emissions}

## Conditions

| | |
|---|---|
{conditions}
"""
