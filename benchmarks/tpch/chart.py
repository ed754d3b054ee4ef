"""Draws how many times faster than REFRESH MATERIALIZED VIEW each query's differential refresh was."""

from pathlib import Path

from benchmarks.tpch.results import Results

WIDTH = 0.8


def draw_chart(results: Results, path: Path) -> None:
    """Write a PNG with a group of bars for each query, one bar for each rate of change, on a logarithmic scale."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(figsize=(10, 4.5), layout="constrained")
    places = {name: place for place, name in enumerate(results.titles)}
    width = WIDTH / len(results.changed)
    for number, percent in enumerate(results.changed):
        shift = (number - (len(results.changed) - 1) / 2) * width
        ratios = results.ratios(percent)
        # A bar begins at 1, where both take as long: what is slower hangs down.
        axes.bar(
            [places[name] + shift for name in ratios],
            [ratio - 1 for ratio in ratios.values()],
            width,
            bottom=1,
            label=f"{percent:g} % of the rows changed",
        )
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.axhline(1, color="black", linewidth=0.8)
    axes.axhline(0.5, color="tab:red", linewidth=0.8, linestyle=":")
    axes.set_xticks(list(places.values()), list(results.titles.values()))
    axes.set_ylabel("times faster than REFRESH MATERIALIZED VIEW")
    axes.set_title(f"TPC-H, {results.sizes['orders']:,} orders and {results.sizes['lineitem']:,} line items")
    axes.grid(True, which="major", axis="y", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=len(results.changed))
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
