"""The report of the propagation benchmark: a table and a chart."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.propagation.__main__ import Measured

CHART = "benchmarks-propagation.png"
POLL = 1.0


def write_report(measured: Sequence["Measured"], conditions: dict[str, str], output: Path) -> None:
    """Write the report and its chart."""
    _draw(measured, output / CHART)
    rows = [_row(each) for each in measured]
    text = TEMPLATE.format(
        rows="\n".join(rows),
        chart=CHART,
        conditions="\n".join(f"- **{name}**: {value}" for name, value in conditions.items()),
    )
    (output / "benchmarks-propagation.md").write_text(text, encoding="utf-8")


def _row(each: "Measured") -> str:
    count = len(each.topology.tables)
    figures = [count, f"{median(each.changed) * 1000:,.0f}", f"{each.per_table * 1000:.1f}"]
    figures += [f"{(POLL + count * each.per_table) * 1000:,.0f}", f"{median(each.quiet) * 1000:.0f}"]
    return f"| {each.topology.name} | " + " | ".join(map(str, figures)) + " |"


def _draw(measured: Sequence["Measured"], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 3.5), layout="constrained")
    names = [each.topology.name for each in measured]
    axes.barh(names, [median(each.changed) for each in measured], label="10 rows changed")
    axes.barh(names, [median(each.quiet) for each in measured], label="nothing changed")
    axes.set_xlabel("seconds from the commit to the last stream table")
    axes.invert_yaxis()
    axes.legend()
    axes.grid(True, axis="x", alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


TEMPLATE = """# How long a change takes to the last stream table

Ten rows are inserted into a table of 100,000 and committed; then one tick brings all stream tables up to date. Measured
is the time until the last of them shows the change, which is checked; every refresh is differential. Medians; a daemon
that listens starts the tick at once, so nothing is to be added for waiting.

| graph | stream tables | ms to the last | ms per table | ms by the formula | ms, nothing changed |
|---|---|---|---|---|---|
{rows}

![Seconds from the commit to the last stream table]({chart})

The formula is that of sequential refreshes elsewhere: the scheduler's interval (1 s) plus the number of tables times
the time of one refresh, as measured here. A tick without changes starts no Spark and counts nothing but empty buffers.

Run it yourself: `make bench-propagation`.

## Conditions

{conditions}
"""
