"""Writes the results down as Markdown, with the expectations beside the figures."""

from collections.abc import Iterator
from pathlib import Path

from benchmarks.clock import Timing
from benchmarks.tpch.results import Results

FASTER_QUERIES = 20
ALL_QUERIES = 22
LOWEST_RATIO = 0.5

TEMPLATE = Path(__file__).with_name("template.md")


def write_report(results: Results, chart: str, path: Path) -> None:
    """Write the Markdown file, which shows the chart of that file name."""
    rates = [f"{percent:g} %" for percent in results.changed]
    path.write_text(
        TEMPLATE.read_text().format(
            conditions="\n".join(f"| {name} | {value} |" for name, value in results.conditions.items()),
            sizes=", ".join(f"{rows:,} rows in {table}" for table, rows in results.sizes.items()),
            changed=", ".join(f"{rows:,} rows at {percent:g} %" for percent, rows in results.changed.items()),
            rounds=results.rounds,
            chart=chart,
            expectations="\n".join(_expectations(results)),
            heads="".join(f" action at {rate} | stream table | view | faster |" for rate in rates),
            rules="---|---:|---:|---:|" * len(rates),
            rows="\n".join(_row(results, name) for name in results.titles),
            failures="".join(_failures(results)),
        )
    )


def _slower(results: Results, percent: float) -> str:
    """Say for which queries the view is the better choice."""
    names = ", ".join(results.titles[name] for name, ratio in results.ratios(percent).items() if ratio < 1)
    return f"- At {percent:g} % the view is the better choice for {names or 'none of them'}."


def _expectations(results: Results) -> Iterator[str]:
    """Say how many queries were faster and which was the slowest, and of the whole set whether that was expected."""
    whole = len(results.titles) == ALL_QUERIES
    for percent in results.changed:
        ratios = results.ratios(percent)
        faster = sum(ratio > 1 for ratio in ratios.values())
        expected = percent == min(results.changed) and whole
        verdict = f" (at least {FASTER_QUERIES} expected: {_met(faster >= FASTER_QUERIES)})" if expected else ""
        differential = sum("DIFFERENTIAL" in results.figures[percent, name].actions for name in ratios)
        yield (
            f"- At {percent:g} %, {faster} of {len(results.titles)} queries were faster than the view{verdict};"
            f" {differential} were refreshed by DIFFERENTIAL."
        )
        yield _slower(results, percent)
    measured = {
        (percent, name): ratio for percent in results.changed for name, ratio in results.ratios(percent).items()
    }
    if measured:
        (percent, name), lowest = min(measured.items(), key=lambda item: item[1])
        met = lowest >= LOWEST_RATIO and not results.failures
        yield (
            f"- The lowest ratio is {lowest:.2f}, of {results.titles[name]} at {percent:g} %"
            f" (none below {LOWEST_RATIO} expected: {_met(met)})."
        )


def _row(results: Results, name: str) -> str:
    cells = [results.titles[name]]
    for percent in results.changed:
        figures = results.figures.get((percent, name))
        timings = figures.timings if figures else None
        if figures and timings:
            cells += [", ".join(sorted(figures.actions)), *map(_span, timings), _times(figures.ratio or 0)]
        else:
            cells += ["failed", "–", "–", "–"]
    cells.append(_verdict(results, name))
    return f"| {' | '.join(cells)} |"


def _verdict(results: Results, name: str) -> str:
    if name in results.unequal:
        return "**no**"
    return "–" if name in results.failures else "yes"


def _failures(results: Results) -> Iterator[str]:
    if results.failures:
        yield f"\n\nNo statement was allowed more than {results.timeout} seconds. These queries failed:\n"
    for name, reason in results.failures.items():
        yield f"\n- {results.titles[name]}: {reason}"
    if results.failures:
        yield "\n"


def _met(met: bool) -> str:
    return "met" if met else "**missed**"


def _times(ratio: float) -> str:
    return f"{ratio:.0f} x" if ratio >= 10 else f"{ratio:.1f} x" if ratio >= 1 else f"{ratio:.2f} x"


def _span(timing: Timing) -> str:
    fastest, slowest = timing.span
    return f"{_seconds(timing.median)} ({_seconds(fastest)} – {_seconds(slowest)})"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.0f} ms"
