"""The report of what capture costs: single statements, and pgbench's clients."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.capture.cost import CaptureCost
from benchmarks.capture.pgbench import CLIENTS, PLAIN, SCRIPTS, STATES, Run, cost
from benchmarks.clock import Timing

TARGET_COPY, TARGET_INSERT, TARGET_P95 = 1.6, 6e-6, 1.15

Runs = dict[tuple[str, str], list[Run]]


def write_report(
    costs: CaptureCost, runs: Runs, sizes: tuple[int, int, int], found: Mapping[str, str], path: Path
) -> None:
    """Write the Markdown file; `sizes` are pgbench's scale, the seconds of a run, and the rounds."""
    scale, seconds, rounds = sizes
    path.write_text(
        TEMPLATE.format(
            statements="\n".join(_statements(costs)),
            clients=CLIENTS,
            scale=scale,
            accounts=scale * 100_000,
            seconds=seconds,
            rounds=rounds,
            runs="\n".join(_rows(runs)),
            conditions="\n".join(f"| {name} | {value} |" for name, value in found.items()),
        ),
        encoding="utf-8",
    )


def figures(costs: CaptureCost, runs: Runs) -> dict[str, float]:
    """Return what a later run is compared by, each as a multiple of the same without capture."""
    insert = costs.captured_insert.median / costs.plain_insert.median
    p95 = {f"p95 of {script}, {state}": cost(runs, script, state)[1] for script in SCRIPTS for state in STATES[1:]}
    return {"COPY": costs.copy_ratio, "INSERT of one row": insert, **p95}


def _statements(costs: CaptureCost) -> Iterator[str]:
    copies, inserts = (costs.plain_copy, costs.captured_copy), (costs.plain_insert, costs.captured_insert)
    yield (
        f"| COPY of {costs.copied_rows:,} rows | {_spans(copies, 1, 's')} | {costs.copy_ratio:.2f} times"
        f" (at most {TARGET_COPY} wanted: {_met(costs.copy_ratio <= TARGET_COPY)}) |"
    )
    yield (
        f"| INSERT of one row | {_spans(inserts, 1e6, 'µs')} | {costs.insert_surplus * 1e6:+.1f} µs"
        f" (at most +6 wanted: {_met(costs.insert_surplus <= TARGET_INSERT)}) |"
    )


def _rows(runs: Runs) -> Iterator[str]:
    for script in SCRIPTS:
        for state in STATES:
            throughput, p95 = cost(runs, script, state)
            taken = runs[script, state]
            tps, latency = (_timing(taken, kind).median for kind in ("throughput", "p95"))
            verdict = "" if state == PLAIN else f" (at most +15 % wanted: {_met(p95 <= TARGET_P95)})"
            changes = "" if state == PLAIN else f"{(throughput - 1) * 100:+.0f} %"
            later = "" if state == PLAIN else f"{(p95 - 1) * 100:+.0f} %{verdict}"
            yield f"| {script} | {state} | {tps:,.0f} | {changes} | {latency * 1e3:.2f} ms | {later} |"


def _timing(runs: list[Run], kind: str) -> Timing:
    return Timing(tuple(getattr(run, kind) for run in runs))


def _spans(timings: tuple[Timing, Timing], factor: float, unit: str) -> str:
    return " | ".join(
        f"{t.median * factor:.2f} {unit} ({t.span[0] * factor:.2f} – {t.span[1] * factor:.2f})" for t in timings
    )


def _met(met: bool) -> str:
    return "met" if met else "**missed**"


TEMPLATE = """# What capture costs those who write

<!-- Written by `python -m benchmarks.capture`; do not edit. -->

For whoever owns tables with many writers, and wants to know what each pays once a stream table reads them.

Every table that a stream table reads is captured: what a statement changed is written once more, into a change buffer,
in the transaction that changed it. A materialized view costs its writers nothing. Where a table is written far more
often than anybody reads what is made of it, the view is the better choice.

## Statements

On a table of four columns with a primary key, two columns captured, both tables in turns. INSERT is that of one row by
a statement prepared inside the server, without network and commit, so nearly all of what is measured is capture.

| | without capture | with capture | cost |
|---|---:|---:|---:|
{statements}

## Clients

pgbench, {clients} clients, scale {scale}: {accounts:,} accounts. Two stream tables read `pgbench_accounts` and
`pgbench_history`, so every change of them is captured. The mixed script reads by key (4 of 10), changes an account (3),
adds to the history (2) and reads a range (1). Each figure is the median of {rounds} rounds of {seconds} s, all states
in turns; the percentages are medians of the ratios within a round. p95 is the latency that 95 of 100 transactions kept
to. The refresher ticks every second and shares the machine's processors with the server and the clients.

| script | state | transactions per second | | p95 | |
|---|---|---:|---:|---:|---:|
{runs}

`make bench-capture` repeats it.

## Conditions

| | |
|---|---|
{conditions}
"""
