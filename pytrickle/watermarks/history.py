"""What a history of watermarks tells: how long one waits for a source, and how far the sources of a group are apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from pytrickle.catalog.model import HistoryEntry
from pytrickle.errors import TooFewObservations
from pytrickle.watermarks.distribution import Distribution
from pytrickle.watermarks.instant import INFINITY, microseconds, span


def waits(source: str, entries: Iterable[HistoryEntry]) -> Distribution:
    """Return how long after an event time a source was declared complete through it, at the longest for each advance.

    That is the time of an advance minus the watermark before it: of the event times that the advance newly covers, the
    earliest waited longest. Raises TooFewObservations for fewer than two finite watermarks.
    """
    ordered = _ordered(entries)
    if len(ordered) < 2:
        raise TooFewObservations(f"The watermark of {source} was advanced less than twice.")
    return Distribution.of((span(later.advanced_at - before.watermark), 1) for before, later in pairwise(ordered))


def spreads(group: str, history: Mapping[str, Iterable[HistoryEntry]]) -> Distribution:
    """Return how far the sources of a group were apart, max(W) - min(W), weighted by how long they were so far apart.

    From the moment when all had a watermark to the last advance; a source counts until it is exhausted. Raises
    TooFewObservations where there is no such time.
    """
    if len(history) < 2 or not all(_ordered(entries) for entries in history.values()):
        raise TooFewObservations(f"Fewer than two sources of {group} have watermarks to compare, or one has none.")
    found = tuple(_weighted(history))
    if not any(weight for _, weight in found):
        raise TooFewObservations(f"The sources of {group} have no history in common yet.")
    return Distribution.of(found)


def _weighted(history: Mapping[str, Iterable[HistoryEntry]]) -> Iterator[tuple[int, int]]:
    """Replay all advances in the order of time; yield each spread with the microseconds that it lasted."""
    standing: dict[str, int] = {}
    missing = set(history)
    for (source, entry), (_, following) in pairwise(_replay(history)):
        missing.discard(source)
        standing[source] = microseconds(entry.watermark)
        finite = [one for one in standing.values() if one != microseconds(INFINITY)]
        if not missing and finite:
            yield max(finite) - min(finite), span(following.advanced_at - entry.advanced_at)


def _replay(history: Mapping[str, Iterable[HistoryEntry]]) -> list[tuple[str, HistoryEntry]]:
    every = [(source, entry) for source, entries in history.items() for entry in entries]
    return sorted(every, key=lambda one: (one[1].advanced_at, one[1].watermark))


def _ordered(entries: Iterable[HistoryEntry]) -> Sequence[HistoryEntry]:
    finite = (entry for entry in entries if entry.watermark != INFINITY)
    return sorted(finite, key=lambda entry: (entry.advanced_at, entry.watermark))
