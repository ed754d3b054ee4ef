"""The report of the propagation benchmark: a table and a chart."""

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.propagation.topologies import LANES

if TYPE_CHECKING:
    from benchmarks.propagation.__main__ import Measured

CHART = "benchmarks-propagation.png"
POLL, WORKER_POLL = 1.0, 0.2


def write_report(
    measured: Sequence["Measured"], wakes: tuple[list[float], list[float]], conditions: dict[str, str], output: Path
) -> None:
    """Write the report and its chart."""
    _draw(measured, output / CHART)
    started, finished = (f"{median(times) * 1000:.0f}" for times in wakes)
    slowest = f"{max(wakes[0]) * 1000:.0f}"
    text = TEMPLATE.format(
        rows="\n".join(_row(each) for each in measured),
        chart=CHART,
        count=len(wakes[0]),
        started=started,
        slowest=slowest,
        finished=finished,
        conditions="\n".join(f"- **{name}**: {value}" for name, value in conditions.items()),
    )
    (output / "benchmarks-propagation.md").write_text(text, encoding="utf-8")


def _row(each: "Measured") -> str:
    count = len(each.topology.tables)
    rounds = sum(ceil(width / LANES) for width in each.topology.widths)
    formulas = (POLL + count * each.per_table, rounds * max(WORKER_POLL, each.per_table))
    times = (median(each.changed), median(each.parallel), *formulas, median(each.quiet))
    figures = [str(count), f"{each.per_table * 1000:.1f}", *(f"{seconds * 1000:,.0f}" for seconds in times)]
    return f"| {each.topology.name} | " + " | ".join(figures) + " |"


def _draw(measured: Sequence["Measured"], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 3.5), layout="constrained")
    names = [each.topology.name for each in measured]
    series = {
        "10 rows changed, one refresh at a time": [median(each.changed) for each in measured],
        f"10 rows changed, up to {LANES} at a time": [median(each.parallel) for each in measured],
        "nothing changed": [median(each.quiet) for each in measured],
    }
    for i, (label, seconds) in enumerate(series.items()):
        axes.barh([number + 0.27 * (i - 1) for number in range(len(names))], seconds, height=0.25, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("seconds from the commit to the last stream table")
    axes.invert_yaxis()
    axes.legend()
    axes.grid(True, axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


TEMPLATE = """# How long a change takes to the last stream table

For whoever builds stream tables upon stream tables, and wants to know how far the last one lags behind.

Ten rows are inserted into a table of 100,000 and committed; then one tick brings all stream tables up to date. Measured
is the time until the last of them shows the change, which is checked; every refresh is differential. Medians, in
milliseconds; with one refresh at a time and with up to four (`max_concurrent_refreshes`), in turns.

| graph | stream tables | per table | one at a time | up to 4 | formula, one | formula, 4 | nothing changed |
|---|---|---|---|---|---|---|---|
{rows}

![Seconds from the commit to the last stream table]({chart})

The formulas are those of pg_trickle, with the time of one refresh as measured here: a scheduler's interval of 1 s plus
the tables one after the other; and, with four workers, 200 ms or the time of a refresh, whichever is longer, for every
four tables of a level. A chain is refreshed one at a time in both columns. A tick without changes starts no Spark and
counts nothing but empty buffers.

## From an advance to the refresh

A daemon that would poll only once a minute is woken by the loader's commit: over {count} advances into an idle daemon
the refresh began {started} ms after the call of `advance_watermark` (median; at most {slowest} ms), and its result was
committed after {finished} ms.

Run it yourself: `make bench-propagation`.

## Conditions

{conditions}
"""
