"""The report of what many stream tables cost."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.scale.measure import Figures

WANTED_QUIET = 0.3
WHOLE = ("create", "first tick")
REPEATED = ("quiet tick", "one source", "status", "dag")


def write_report(measured: Sequence[Figures], rounds: int, found: Mapping[str, str], path: Path) -> None:
    """Write the Markdown file."""
    path.write_text(
        TEMPLATE.format(
            rounds=rounds,
            whole="\n".join(row for figures in measured for row in _whole(figures)),
            repeated="\n".join(row for figures in measured for row in _repeated(figures)),
            memory="\n".join(f"| {f.fleet.tables:,} | {f.memory / 2**20:.0f} MiB |" for f in measured),
            conditions="\n".join(f"| {name} | {value} |" for name, value in found.items()),
        ),
        encoding="utf-8",
    )


def figures_of(measured: Sequence[Figures]) -> dict[str, float]:
    """Return what a later run is compared by: seconds of both processors for each stream table."""
    return {
        f"{work}, {figures.fleet.tables:,} tables, ms for each": _processor(figures, work) / figures.fleet.tables * 1e3
        for figures in measured
        for work in (*WHOLE, *REPEATED[:2])
    }


def _whole(figures: Figures) -> Iterator[str]:
    for work in WHOLE:
        cost, tables = figures.costs[work], figures.fleet.tables
        each = " | ".join(f"{cost.median(kind) / tables * 1e3:.1f} ms" for kind in ("clock", "client", "server"))
        yield f"| {_fleet(figures)} | {work} | {cost.median('clock'):.0f} s | {each} |"


def _repeated(figures: Figures) -> Iterator[str]:
    for work in REPEATED:
        cost = figures.costs[work]
        spent = " | ".join(f"{cost.median(kind) * 1e3:,.0f} ms" for kind in ("clock", "client", "server"))
        met = "met" if cost.median("clock") <= WANTED_QUIET else "**missed**"
        wanted = f"at most {WANTED_QUIET * 1e3:.0f} ms: {met}" if work == "quiet tick" else ""
        yield f"| {_fleet(figures)} | {work} | {spent} | {wanted} |"


def _processor(figures: Figures, work: str) -> float:
    cost = figures.costs[work]
    return cost.median("client") + cost.median("server")


def _fleet(figures: Figures) -> str:
    return f"{figures.fleet.tables:,} over {figures.fleet.sources:,}"


TEMPLATE = """# Many stream tables

<!-- Written by `python -m benchmarks.scale`; do not edit. -->

For whoever plans hundreds or thousands of stream tables: what each costs a tick, though nothing changes.

Generated sources of 100 rows, and stream tables over them: of every ten, four are filters, three are groupings, two
join two sources, and one reads another stream table. So what is measured is what a stream table costs, not its rows.
What follows from it: [how much one refresher can carry](explanation/scale.md). `make bench-scale` repeats it.

## To create them

`create` is one call of `create_stream_table` after the other; the first tick loads them all.

| stream tables over sources | | in all | each | of it, the client's processor | the server's processors |
|---|---|---:|---:|---:|---:|
{whole}

## To keep them

A quiet tick finds nothing to do, though something was committed elsewhere; then one row of one source changes, and the
next tick takes it to all that reads it. `status` and `dag` are whole commands, with the start of the program. Medians
of {rounds} rounds; where a command is a process of its own, its processor time is not counted.

| stream tables over sources | | in all | the client's processor | the server's processors | wanted |
|---|---|---:|---:|---:|---|
{repeated}

## Memory of a refresher

The most that a process held that ticked three times, without Spark.

| stream tables | memory |
|---:|---:|
{memory}

## Conditions

| | |
|---|---|
{conditions}
"""
