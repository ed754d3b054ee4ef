"""Writes the results down as Markdown, with the targets beside the figures."""

from pathlib import Path

from benchmarks.clock import Timing
from benchmarks.data import QUERY
from benchmarks.refreshes import Refresh
from benchmarks.results import Results
from benchmarks.sizes import FULL, Scale

TARGET_SPEEDUPS = {100: 15.0, 5_000: 10.0, 50_000: 4.0}
TARGET_GROWTH = 1.3
TARGET_COPY = 2.5
TARGET_INSERT = 15e-6

TEMPLATE = Path(__file__).with_name("template.md")


def write_report(results: Results, chart: str, path: Path) -> None:
    """Write the Markdown file, which shows the chart of that file name."""
    scale, cost = results.scale, results.capture
    sizes = {name: getattr(scale, name) for name in ("orders", "fewer_orders", "customers", "regions", "copied_rows")}
    sizes["warm_up"] = scale.warm_up_refreshes
    path.write_text(
        TEMPLATE.read_text().format(
            **sizes,
            query=QUERY.format(schema="public"),
            chart=chart,
            conditions="\n".join(f"| {name} | {value} |" for name, value in results.conditions.items()),
            spark=_span(results.spark),
            initial=_seconds(results.initial),
            refreshes="\n".join(_row(refresh, results.spark, scale) for refresh in results.refreshes),
            slower=_slower(results),
            verified="equalled their defining queries" if results.verified else "**differed from their queries**",
            compared_changes=scale.compared_changes,
            fewer=_span(results.fewer),
            more=_span(results.more),
            growth=f"{results.growth:.2f}",
            target_growth=TARGET_GROWTH,
            growth_met=_met(results.growth <= TARGET_GROWTH),
            single_inserts=scale.single_inserts,
            plain_copy=_span(cost.plain_copy),
            captured_copy=_span(cost.captured_copy),
            copy_ratio=cost.copy_ratio,
            target_copy=TARGET_COPY,
            copy_met=_met(cost.copy_ratio <= TARGET_COPY),
            plain_insert=_span(cost.plain_insert),
            captured_insert=_span(cost.captured_insert),
            surplus=cost.insert_surplus * 1e6,
            insert_met=_met(cost.insert_surplus <= TARGET_INSERT),
        )
    )


def _row(refresh: Refresh, spark: Timing, scale: Scale) -> str:
    target = TARGET_SPEEDUPS.get(refresh.changed_rows) if scale is FULL else None
    expected = f" (at least {target:.0f} expected: {_met(refresh.speedup >= target)})" if target else ""
    return (
        f"| {refresh.changed_rows:,} | {', '.join(refresh.actions)} | {_span(refresh.differential)}"
        f" | {_span(refresh.materialized_view)} | {refresh.speedup:.1f} x{expected}"
        f" | {spark.median / refresh.differential.median:.1f} x |"
    )


def _slower(results: Results) -> str:
    """Say after how many changed rows the view was faster."""
    sizes = " and ".join(f"{each.changed_rows:,}" for each in results.refreshes if each.speedup < 1)
    return f"Here the view was faster after {sizes or 'none of these numbers of'} changed rows."


def _met(met: bool) -> str:
    return "met" if met else "**missed**"


def _span(timing: Timing) -> str:
    fastest, slowest = timing.span
    return f"{_seconds(timing.median)} ({_seconds(fastest)} – {_seconds(slowest)})"


def _seconds(value: float) -> str:
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.0f} ms" if value >= 1e-3 else f"{value * 1e6:.1f} µs"
