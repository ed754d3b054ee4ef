"""The figures of one run, as the report and the chart read them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks.clock import Timing


@dataclass(slots=True)
class Figures:
    """What one query took at one rate, in seconds, each repetition on the same data both ways."""

    actions: set[str] = field(default_factory=set)
    differential: list[float] = field(default_factory=list)
    materialized_view: list[float] = field(default_factory=list)

    @property
    def timings(self) -> tuple[Timing, Timing] | None:
        """Return the refreshes of the stream table and of the materialized view, where there are any."""
        if not self.differential or not self.materialized_view:
            return None
        return Timing(tuple(self.differential)), Timing(tuple(self.materialized_view))

    @property
    def ratio(self) -> float | None:
        """Return how many times faster the stream table was."""
        return self.timings[1].median / self.timings[0].median if self.timings else None


@dataclass(frozen=True, slots=True)
class Results:
    """Everything one run measured.

    `sizes` are the rows of the tables that are changed, `changed` how many rows a change of so many percent took;
    `titles` are the queries by name, `figures` those of a rate and a query; `failures` says why a query has none.
    """

    conditions: Mapping[str, str]
    sizes: Mapping[str, int]
    rounds: int
    timeout: int
    titles: Mapping[str, str]
    figures: Mapping[tuple[float, str], Figures]
    changed: Mapping[float, int]
    failures: Mapping[str, str]
    unequal: frozenset[str]

    def ratios(self, percent: float) -> dict[str, float]:
        """Return how many times faster the differential refresh of each query was, where both were measured."""
        found = {name: self.figures[percent, name].ratio for name in self.titles if (percent, name) in self.figures}
        return {name: ratio for name, ratio in found.items() if ratio is not None}

    @property
    def comparison(self) -> dict[str, float]:
        """Return what later runs are compared by: what each query takes, as a part of what the view takes."""
        return {
            f"{self.titles[name]} at {percent:g} %, of the view": 1 / ratio
            for percent in self.changed
            for name, ratio in self.ratios(percent).items()
        }
