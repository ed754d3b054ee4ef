"""An advice as a picture, by the optional package matplotlib."""

from __future__ import annotations

import warnings
from pathlib import Path

from pytrickle.durations import length
from pytrickle.errors import PackageMissing
from pytrickle.watermarks.advice.advise import Advice
from pytrickle.watermarks.advice.report import label, title


def draw_chart(advice: Advice, path: Path) -> None:
    """Write a PNG of what was measured, with the durations to choose from. Raises PackageMissing or OSError."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        hint = "Install it: pip install 'pytrickle-postgres[plot]'. Text needs nothing."
        raise PackageMissing("A PNG needs matplotlib.", hint) from None

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    names = [label(bar) for bar in advice.bars]
    axes.bar(names, [100 * bar.share for bar in advice.bars], color="tab:blue")
    for number, choice in enumerate(advice.recommendations):
        places = [at for at, bar in enumerate(advice.bars) if bar.up_to is None or choice.delay <= bar.up_to]
        written = f"{choice.name}: {length(choice.delay)}, {choice.late_share:.2%} beyond"
        axes.axvline(places[0], color=f"C{number + 1}", linestyle=("-", "--", ":")[number], label=written)
    axes.set_ylabel("%")
    axes.set_title(title(advice), fontsize="medium", parse_math=False)
    axes.tick_params(axis="x", labelrotation=60)
    figure.legend(loc="outside lower center", ncols=len(advice.recommendations), fontsize="small")
    with warnings.catch_warnings():
        # A letter that the font lacks is drawn as a frame.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure.savefig(path, format="png", dpi=120)
