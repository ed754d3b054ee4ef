"""Draws the time of a refresh against the number of changed rows."""

from pathlib import Path

from benchmarks.results import Results


def draw_chart(results: Results, path: Path) -> None:
    """Write a PNG with the differential refreshes as a line and both full recomputations as levels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    changed = [refresh.changed_rows for refresh in results.refreshes]
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    axes.loglog(
        changed, [refresh.differential.median for refresh in results.refreshes], "o-", label="differential refresh"
    )
    axes.loglog(
        changed,
        [refresh.materialized_view.median for refresh in results.refreshes],
        "s--",
        label="REFRESH MATERIALIZED VIEW",
    )
    axes.axhline(results.spark.median, color="tab:green", linestyle=":", label="full recompute by Spark over JDBC")
    axes.set_xlabel("changed rows")
    axes.set_ylabel("seconds")
    axes.set_title(
        f"{results.scale.orders:,} orders joined with {results.scale.customers:,} customers, grouped by region"
    )
    axes.grid(True, which="major", alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
