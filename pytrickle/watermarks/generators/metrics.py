"""What is to be known about a watermark, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

from pytrickle.watermarks.instant import microseconds


@dataclass(frozen=True, slots=True)
class Metrics:
    """One watermark at one moment.

    `lag` is the clock minus the watermark, None where there is no finite one. `advancement_rate` is that of the
    function of the same name. `rows` were judged: `late` ones lay below the watermark in force when they came,
    `late_ratio` is their share, `unplaced` had no usable event time, `ahead` were too far in the future to be believed.
    `idle_share` is the share of the inputs that are idle, `regressions` how often the watermark would have moved back.
    """

    watermark: datetime | None
    lag: timedelta | None
    advancement_rate: float | None
    rows: int
    late: int
    late_ratio: float
    unplaced: int
    ahead: int
    idle_share: float
    regressions: int


def advancement_rate(advances: Sequence[tuple[datetime, datetime]], at: datetime) -> float | None:
    """Return how fast a watermark advances: event time per time, silence of no more than its usual length left out.

    `advances` are pairs (watermark, when it was advanced), oldest first; the answer is None for fewer than two, and if
    all were made at once. It is the median step divided by the median gap between two advances or, if that is longer,
    by the time since the last one. So a source that is loaded once an hour has the rate 1 all through the hour, and
    0.5 when it is silent for two.

    >>> from datetime import UTC
    >>> hours = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(12)]
    >>> loads = [(hour, hour) for hour in hours[:4]]
    >>> [advancement_rate(loads, at) for at in hours[3:6]]
    [1.0, 1.0, 0.5]
    """
    if len(advances) < 2:
        return None
    placed = [(microseconds(watermark), microseconds(made_at)) for watermark, made_at in advances]
    step = median(later[0] - earlier[0] for earlier, later in pairwise(placed))
    gap = median(later[1] - earlier[1] for earlier, later in pairwise(placed))
    elapsed = max(gap, microseconds(at) - placed[-1][1])
    return step / elapsed if elapsed > 0 else None
