"""The ways to find a watermark, each as a function that makes a generator."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks.generators.adaptive import Adaptive
from pytrickle.watermarks.generators.generator import Generator, Heeds, Terms
from pytrickle.watermarks.generators.newest import Newest
from pytrickle.watermarks.generators.quantile import Quantile
from pytrickle.watermarks.generators.wall_clock import WallClock
from pytrickle.watermarks.instant import length
from pytrickle.watermarks.percentile import exactly

LATENESS = timedelta(seconds=1)
WINDOW = 10_000


def event_time(watermark_lateness: timedelta = LATENESS, **terms: Unpack[Terms]) -> Generator:
    """Make a generator for rows that come at most `watermark_lateness` out of order: W = max(t) - lateness.

    >>> from datetime import UTC, datetime
    >>> generator = event_time(timedelta(seconds=5))
    >>> generator.observe(datetime(2024, 5, 16, 9, tzinfo=UTC))
    False
    >>> generator.emit().isoformat()
    '2024-05-16T08:59:55+00:00'
    """
    return Generator(Newest(length("watermark_lateness", watermark_lateness)), Heeds.ROWS, **terms)


def processing_time(watermark_lateness: timedelta = LATENESS, **terms: Unpack[Terms]) -> Generator:
    """Make a generator for rows without event times worth the name: W = now - lateness.

    It promises nothing about the rows. Raises InvalidArgument with an idle timeout: a clock is never idle.
    """
    if terms.get("idle_timeout") is not None:
        raise InvalidArgument(
            "A processing time watermark has no idle timeout: it advances without any rows.", "Leave idle_timeout out."
        )
    terms["idle_timeout"] = None
    return Generator(WallClock(length("watermark_lateness", watermark_lateness)), Heeds.NOTHING, **terms)


def punctuated(**terms: Unpack[Terms]) -> Generator:
    """Make a generator for a source that says itself how far it is complete, by `mark`: W = max(mark)."""
    return Generator(Newest(0), Heeds.MARKS, **terms)


def cdc(delay: timedelta = LATENESS, **terms: Unpack[Terms]) -> Generator:
    """Make a generator for a database's change log: W = time of the last transaction committed, by `mark`, - delay.

    The delay is there because commit times are not exactly in the order of the log.
    """
    return Generator(Newest(length("delay", delay)), Heeds.MARKS, **terms)


def heartbeat(watermark_lateness: timedelta = LATENESS, **terms: Unpack[Terms]) -> Generator:
    """Make a generator for a source that sends its time, by `mark`, also without rows: W = max(t, mark) - lateness."""
    lateness = length("watermark_lateness", watermark_lateness)
    return Generator(Newest(lateness), Heeds.ROWS | Heeds.MARKS, **terms)


def bounded_file(**terms: Unpack[Terms]) -> Generator:
    """Make a generator for a file in the order of event time: W = max(t) read, then INFINITY after `exhaust`.

    For a file in any other order nothing may be asserted before it is exhausted: call `emit` only then.
    """
    return Generator(Newest(0), Heeds.ROWS, **terms)


def quantile(
    share: float = 0.99, *, window: int = 1_000, watermark_lateness: timedelta = LATENESS, **terms: Unpack[Terms]
) -> Generator:
    """Make a generator that one far-future row cannot lead astray: W = quantile(t of the latest rows) - lateness.

    The newest 1 - `share` of the last `window` rows are left out, and always the newest event time: they are claimed
    when as many later ones came after them.
    """
    lateness = length("watermark_lateness", watermark_lateness)
    return Generator(Quantile(exactly("share", share), _window(window), lateness), Heeds.ROWS, **terms)


def adaptive(
    target_completeness: float = 0.99,
    *,
    window: int = WINDOW,
    initial_delay: timedelta = timedelta(seconds=30),
    **terms: Unpack[Terms],
) -> Generator:
    """Make a generator that learns its delay: W = max(t) - the delay that a share of the last `window` rows kept.

    A row's skew is its arrival minus its event time. Until 100 rows were seen the delay is `initial_delay`.
    """
    completeness = exactly("target_completeness", target_completeness)
    strategy = Adaptive(completeness, _window(window), length("initial_delay", initial_delay))
    return Generator(strategy, Heeds.ROWS, **terms)


def _window(rows: int) -> int:
    if rows < 2:
        raise InvalidArgument(f"window must be two rows or more, it is {rows}.", "Give a number such as 10000.")
    return rows
