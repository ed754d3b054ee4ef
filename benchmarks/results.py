"""The figures of one run, as the report and the chart read them."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.capture.cost import CaptureCost
from benchmarks.clock import Timing
from benchmarks.refreshes import Refresh
from benchmarks.sizes import Scale


@dataclass(frozen=True, slots=True)
class Results:
    """Everything one run measured.

    `refreshes` are on the large tables, `fewer` and `more` the same change on the small and the large ones, measured
    in turns; `initial` is the seconds of the first, full load of the large stream table.
    """

    scale: Scale
    conditions: Mapping[str, str]
    refreshes: tuple[Refresh, ...]
    spark: Timing
    fewer: Timing
    more: Timing
    initial: float
    capture: CaptureCost
    verified: bool

    @property
    def figures(self) -> dict[str, float]:
        """Return what later runs are compared by: parts of what the view takes, and what capture costs."""
        parts = {f"{refresh.changed_rows:,} changes, of the view": 1 / refresh.speedup for refresh in self.refreshes}
        return {**parts, "larger table to smaller one": self.growth, "COPY with capture": self.capture.copy_ratio}

    @property
    def growth(self) -> float:
        """Return how many times longer the same refresh takes on the large tables than on the small ones."""
        return self.more.median / self.fewer.median
