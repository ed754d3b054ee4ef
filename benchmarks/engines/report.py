"""The report of what the engines take: a table of seconds for each size, and one of the server's processor seconds."""

from collections.abc import Mapping
from pathlib import Path

from benchmarks.clock import Timing
from benchmarks.engines.measure import Cost

Measured = Mapping[int, Mapping[str, Cost]]
WAYS = ("postgres", "spark", "by hand", "view", "auto")


def write_report(
    measured: Measured, first: Mapping[str, Cost], sizes: tuple[int, int, int], found: Mapping[str, str], path: Path
) -> None:
    """Write the Markdown file; `sizes` are the orders, the customers and the rounds that count."""
    orders, customers, rounds = sizes
    path.write_text(
        TEMPLATE.format(
            orders=orders,
            customers=customers,
            rounds=rounds,
            clock="\n".join(_line(rows, costs, "clock") for rows, costs in measured.items()),
            processor="\n".join(_line(rows, costs, "processor") for rows, costs in measured.items()),
            ratios="\n".join(_ratios(rows, costs) for rows, costs in measured.items()),
            loads="\n".join(_whole(name, cost, first["by hand"]) for name, cost in first.items()),
            conditions="\n".join(f"| {name} | {value} |" for name, value in found.items()),
        ),
        encoding="utf-8",
    )


def figures(measured: Measured) -> dict[str, float]:
    """Return what later runs are compared by: what each engine takes, as parts of what the view takes."""
    return {
        f"{rows:,} changes by {way}, of the view": costs[way].clock.median / costs["view"].clock.median
        for rows, costs in measured.items()
        for way in ("postgres", "spark", "auto")
    }


def _line(rows: int, costs: Mapping[str, Cost], kind: str) -> str:
    cells = [_span(getattr(costs[way], kind)) for way in WAYS]
    chosen = ", ".join(sorted(costs["auto"].done_by))
    return f"| {rows:,} | {' | '.join(cells)} ({chosen}) |"


def _whole(name: str, cost: Cost, by_hand: Cost) -> str:
    ratio = cost.clock.median / by_hand.clock.median
    return f"| {name} | {_span(cost.clock)} | {_span(cost.processor)} | {ratio:.2f} |"


def _ratios(rows: int, costs: Mapping[str, Cost]) -> str:
    spark, hand, view = (costs[way].clock.median for way in ("spark", "by hand", "view"))
    best = min(costs[way].clock.median for way in ("spark", "postgres"))
    server = costs["spark"].processor.median / max(costs["postgres"].processor.median, 0.01)
    auto = costs["auto"].clock.median
    return f"| {rows:,} | {spark / hand:.2f} | {view / best:.1f} | {auto / best:.2f} | {server:.2f} |"


def _span(timing: Timing) -> str:
    fastest, slowest = timing.span
    return f"{timing.median:.2f} ({fastest:.2f} – {slowest:.2f})"


TEMPLATE = """# What each engine takes

<!-- Written by `python -m benchmarks.engines`; do not edit. -->

For whoever has to decide between PostgreSQL and Spark as the engine, or asks whether Java is worth installing.

{orders:,} orders joined with {customers:,} customers, grouped into 250 regions. After each change, in turns and in one
run: three stream tables of the same query, one for each `engine`, the Spark job that one writes by hand
(`benchmarks/engines/hand.py`: two reads pinned to a snapshot, a broadcast join and the grouping; it applies nothing),
and `REFRESH MATERIALIZED VIEW`. The time of a stream table runs from before the snapshot until after the commit, not
through the clean-up of change buffers that follows; the median of {rounds} rounds after one that warmed up, with the
fastest and the slowest in brackets. `make bench-engines` repeats it.

## Seconds

| changed rows | `postgres` | `spark` | by hand | view | `auto` |
|---:|---:|---:|---:|---:|---:|
{clock}

## Processor seconds of PostgreSQL

All of the server's processes, so the changes' own work and autovacuum's as well where it falls into the time.

| changed rows | `postgres` | `spark` | by hand | view | `auto` |
|---:|---:|---:|---:|---:|---:|
{processor}

## Ratios

The last column compares the server's processor seconds under `spark` with those under `postgres`.

| changed rows | `spark` to by hand | view to the faster engine | `auto` to the faster engine | server |
|---:|---:|---:|---:|---:|
{ratios}

## Whole refreshes

By hand the orders are read in parallel, in ranges of pages; nothing is applied.

| engine | seconds | processor seconds of PostgreSQL | to by hand |
|---|---:|---:|---:|
{loads}

## Conditions

| | |
|---|---|
{conditions}
"""
