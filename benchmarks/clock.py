"""Time measurements: seconds of the wall clock, repeated, with the median as the figure."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import ParamSpec

Arguments = ParamSpec("Arguments")


@dataclass(frozen=True, slots=True)
class Timing:
    """The seconds that the repetitions of one action took."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return the figure that is reported."""
        return median(self.seconds)

    @property
    def span(self) -> tuple[float, float]:
        """Return the fastest and the slowest repetition."""
        return min(self.seconds), max(self.seconds)


def stopwatch(action: Callable[Arguments, object], *arguments: Arguments.args, **options: Arguments.kwargs) -> float:
    """Run `action` with its arguments and return how many seconds it took."""
    begun = time.perf_counter()
    action(*arguments, **options)
    return time.perf_counter() - begun
