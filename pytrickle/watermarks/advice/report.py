"""An advice in plain words: the shape of what was measured, its percentiles, and the durations to choose from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from itertools import groupby

from pytrickle.durations import length
from pytrickle.watermarks.advice.advise import Advice, Recommendation, Subject
from pytrickle.watermarks.advice.distribution import Bar

_WIDTH = 40
_TITLES = {
    Subject.LATENESS: "Rows of {name} arrive this long after their event time",
    Subject.WAIT: "One waits this long after an event time until {name} is complete through it",
    Subject.TOLERANCE: "The watermarks of {name} are this far apart, by the time it lasts",
}
_COLUMNS = {
    Subject.LATENESS: ("watermark_lateness", "rows expected late"),
    Subject.WAIT: ("wait", "advances that take longer"),
    Subject.TOLERANCE: ("tolerance", "of the time further apart"),
}
_MEASURED = {Subject.LATENESS: "rows", Subject.WAIT: "waits", Subject.TOLERANCE: "spreads"}


def describe(advice: Advice) -> str:
    """Return an advice as lines of text, for a terminal 80 columns wide."""
    few = advice.observations < 1_000
    return "\n".join(
        (
            f"{title(advice)}:",
            "",
            *_bars(advice.bars),
            "",
            "  ".join(f"p{percent} {length(value)}" for percent, value in advice.percentiles),
            "",
            *_table(advice),
            "",
            "With 95 % confidence the share is at most that of the last column, if what comes",
            "is like what was measured.",
            *(("Of fewer than 1,000 measurements p99.9 is the greatest, or nearly.",) if few else ()),
        )
    )


def title(advice: Advice) -> str:
    """Return what was measured, and how often."""
    measured = f"{advice.observations:,} {_MEASURED[advice.subject]}"
    return f"{_TITLES[advice.subject].format(name=advice.name)} ({measured})"


def _bars(bars: Sequence[Bar]) -> Iterator[str]:
    labels = [label(bar) for bar in bars]
    width, greatest = max(map(len, labels)), max(bar.share for bar in bars)
    for empty, run in groupby(zip(labels, bars, strict=True), key=lambda one: one[1].share == 0):
        rows = list(run)
        if empty and len(rows) > 2:
            yield f"{'...':>{width}}"
            continue
        for written, bar in rows:
            drawn = "█" * round(_WIDTH * bar.share / greatest) or ("▏" if bar.share else "")
            yield f"{written:>{width}}  {drawn:<{_WIDTH}} {bar.share:6.1%}"


def label(bar: Bar) -> str:
    """Return the durations that a bar stands for."""
    if bar.up_to is None:
        return f"> {length(bar.above or timedelta(0))}"
    return f"<= {length(bar.up_to)}"


def _table(advice: Advice) -> Iterator[str]:
    delay, share = _COLUMNS[advice.subject]
    weighed = advice.cheapest is not None
    rows = [*advice.recommendations, *((advice.cheapest,) if advice.cheapest else ())]
    yield f"{'choice':<14}{delay:<20}{share:<28}{'loss   ' if weighed else ''}at most"
    for row in rows:
        loss = f"{_loss(row):<7}" if weighed else ""
        yield f"{row.name:<14}{length(row.delay):<20}{row.late_share:<28.2%}{loss}{row.late_at_most:.2%}"


def _loss(row: Recommendation) -> str:
    return "" if row.loss is None else f"{row.loss:.3g}"
