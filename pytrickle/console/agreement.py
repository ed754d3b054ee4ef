"""Where the watermarks of a group agreed at each moment of the past: what holding back could show then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from math import inf


@dataclass(frozen=True, slots=True)
class Advance:
    """One advance of a source: when it was made, and how far it came, in seconds of event time or in batches."""

    at: float
    value: float


@dataclass(frozen=True, slots=True)
class Moment:
    """From a moment on: the value at which the sources agree, None for none yet, and whether they are in step."""

    at: float
    agreed: float | None
    aligned: bool


def agreed_entries(values: Mapping[str, Sequence[float]], tolerance: float) -> dict[str, float] | None:
    """Return the newest entry of each source that lie within the tolerance of each other; None where there are none.

    `values` are the advances of each source, oldest first. It is the rule of pgtrickle_private.agreed_progress; a
    source that is exhausted agrees with all others.

    >>> agreed_entries({"orders": [1, 5, 9], "lines": [1, 4]}, 0)
    {'orders': 1, 'lines': 1}
    >>> agreed_entries({"orders": [1, 5, 9], "lines": [1, 4]}, 1)
    {'orders': 5, 'lines': 4}
    """
    loading = {source: known for source, known in values.items() if not known or known[-1] < inf} or values
    bound = inf
    while True:
        found = {}
        for source, known in loading.items():
            place = bisect_right(known, bound)
            if place == 0:
                return None
            found[source] = known[place - 1]
        low, high = min(found.values()), max(found.values())
        bound = low + tolerance
        if high <= bound or low == high:
            return found


def moments(history: Mapping[str, Sequence[Advance]], tolerance: float) -> tuple[Moment, ...]:
    """Return how the agreement of some sources went on; each advance may change it. Advances come oldest first.

    >>> history = {"orders": (Advance(0, 1), Advance(2, 5)), "lines": (Advance(1, 1), Advance(3, 5))}
    >>> [(moment.at, moment.agreed, moment.aligned) for moment in moments(history, 0)]
    [(0, None, True), (1, 1, True), (2, 1, False), (3, 5, True)]
    """
    values: dict[str, list[float]] = {source: [] for source in history}
    found: list[Moment] = []
    for source, advance in merge(*map(_named, history.items()), key=lambda pair: pair[1].at):
        values[source].append(advance.value)
        agreed = agreed_entries(values, tolerance)
        moment = Moment(advance.at, None if agreed is None else min(agreed.values()), _aligned(values, tolerance))
        if found and found[-1].at == moment.at:
            found.pop()
        found.append(moment)
    return tuple(found)


def _named(pair: tuple[str, Sequence[Advance]]) -> Iterable[tuple[str, Advance]]:
    source, advances = pair
    return ((source, advance) for advance in advances)


def _aligned(values: Mapping[str, Sequence[float]], tolerance: float) -> bool:
    """Tell whether a gate is open: the newest advances lie within the tolerance, or some source has none yet."""
    if not all(values.values()):
        return True
    newest = [known[-1] for known in values.values()]
    return max(newest) - min(newest) <= tolerance or min(newest) == inf
