"""Which of several watermarks lie far from the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Name = TypeVar("Name")

FEWEST = 5
"""Sources below which none can be an outlier: of n values none is more than sqrt(n) deviations from the median."""


def outliers(watermarks: Mapping[Name, int]) -> frozenset[Name]:
    """Return what is more than two standard deviations from the median: ``|W - median| > 2 s``.

    s is the *sample* standard deviation, with n - 1, about the mean. In whole numbers, as
    ``(W - median)² · n(n-1) > 4 (n·ΣW² - (ΣW)²)``, so that nothing depends on rounding.

    >>> sorted(outliers({"a": 0, "b": 0, "c": 0, "d": 100})), sorted(outliers({"a": 0, "b": 0, "c": 0, "d": 0, "e": 9}))
    ([], ['e'])
    """
    count = len(watermarks)
    if count < FEWEST:
        return frozenset()
    ordered = sorted(watermarks.values())
    # Twice the values, since the median of an even number of them may lie between two.
    median = ordered[(count - 1) // 2] + ordered[count // 2]
    total, squares = 2 * sum(ordered), 4 * sum(value * value for value in ordered)
    limit = 4 * (count * squares - total * total)
    return frozenset(
        name for name, value in watermarks.items() if (2 * value - median) ** 2 * count * (count - 1) > limit
    )
