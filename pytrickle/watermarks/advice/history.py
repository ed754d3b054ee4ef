"""What a history of watermarks tells: how long one waits for a source, and how far the sources of a group are apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from pytrickle.catalog.reports import HistoryEntry
from pytrickle.errors import InvalidArgument, TooFewObservations
from pytrickle.watermarks.advice.distribution import Distribution
from pytrickle.watermarks.instant import INFINITY, microseconds, span, utc


class _Advance(NamedTuple):
    advanced_at: datetime
    watermark: datetime


def waits(source: str, entries: Sequence[HistoryEntry]) -> Distribution:
    """Return how long after an event time a source was declared complete through it, at the longest for each advance.

    That is the time of an advance minus the watermark before it: of the event times that the advance newly covers, the
    earliest waited longest. Raises TooFewObservations for fewer than two finite watermarks, and InvalidArgument where
    they are numbers of batches.
    """
    ordered = _finite(_advances(source, entries))
    if len(ordered) < 2:
        raise TooFewObservations(f"The watermark of {source} was advanced less than twice.")
    return Distribution.of((span(later.advanced_at - before.watermark), 1) for before, later in pairwise(ordered))


def spreads(group: str, history: Mapping[str, Sequence[HistoryEntry]]) -> Distribution:
    """Return how far the sources of a group were apart, max(W) - min(W), weighted by how long they were so far apart.

    From the moment when all had a watermark to the last advance; a source counts until it is exhausted. Raises
    TooFewObservations where there is no such time, and InvalidArgument where the watermarks are numbers of batches.
    """
    advances = {source: _advances(source, entries) for source, entries in history.items()}
    if len(history) < 2 or not all(map(_finite, advances.values())):
        raise TooFewObservations(f"Fewer than two sources of {group} have watermarks to compare, or one has none.")
    found = tuple(_weighted(advances))
    if not any(weight for _, weight in found):
        raise TooFewObservations(f"The sources of {group} have no history in common yet.")
    return Distribution.of(found)


def _advances(source: str, entries: Sequence[HistoryEntry]) -> tuple[_Advance, ...]:
    known = [(entry.advanced_at, entry.watermark) for entry in entries if entry.watermark is not None]
    found = tuple(_Advance(utc(advanced_at), utc(watermark)) for advanced_at, watermark in known)
    if len(found) < len(entries):
        raise InvalidArgument(
            f"{source} goes by batch numbers, which say nothing about times.",
            "Name a source or a watermark group that goes by event time.",
        )
    return found


def _weighted(history: Mapping[str, Sequence[_Advance]]) -> Iterator[tuple[int, int]]:
    """Replay all advances in the order of time; yield each spread with the microseconds that it lasted."""
    standing: dict[str, int] = {}
    missing = set(history)
    for (source, entry), (_, following) in pairwise(_replay(history)):
        missing.discard(source)
        standing[source] = microseconds(entry.watermark)
        finite = [one for one in standing.values() if one != microseconds(INFINITY)]
        if not missing and finite:
            yield max(finite) - min(finite), span(following.advanced_at - entry.advanced_at)


def _replay(history: Mapping[str, Sequence[_Advance]]) -> list[tuple[str, _Advance]]:
    return sorted(((source, entry) for source, entries in history.items() for entry in entries), key=lambda one: one[1])


def _finite(advances: Sequence[_Advance]) -> list[_Advance]:
    return sorted(advance for advance in advances if advance.watermark != INFINITY)
