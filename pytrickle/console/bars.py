"""Past refreshes as bars: one for each, as high as it took, oldest at the left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from pytrickle.catalog.history_pages import Attempt
from pytrickle.console.axes import Tick
from pytrickle.console.words import moment, span_of

LEFT, TOP, BOTTOM = 64.0, 10.0, 8.0
LEAST = 2.0
WIDEST = 18.0
LINES = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """One refresh: its place, what it did as a word, and what is said of it."""

    left: float
    top: float
    width: float
    height: float
    kind: str
    said: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars on a sheet, and lines at round durations."""

    width: float
    height: float
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]


def bars(attempts: Sequence[Attempt], width: float, height: float) -> Bars:
    """Draw refreshes that come newest first; the longest reaches the top."""
    longest = max((each.duration for each in attempts), default=timedelta(0)) or timedelta(milliseconds=1)
    room = height - TOP - BOTTOM
    step = min((width - LEFT) / max(1, len(attempts)), WIDEST)
    drawn = []
    for number, each in enumerate(reversed(attempts)):
        high = max(LEAST, each.duration / longest * room)
        left = LEFT + number * step
        drawn.append(Bar(left, height - BOTTOM - high, max(1.0, step - 1.5), high, kind_of(each), _said(each)))
    parts = [part / (LINES - 1) for part in range(LINES)]
    ticks = tuple(Tick(height - BOTTOM - part * room, span_of(part * longest)) for part in parts)
    return Bars(width, height, tuple(drawn), ticks)


def kind_of(attempt: Attempt) -> str:
    """Name a refresh by what came of it: failed, skip, no_data, differential, full or reinitialize.

    The page has a colour for each.
    """
    return "failed" if attempt.status == "FAILED" else attempt.action.lower()


def _said(attempt: Attempt) -> str:
    return f"{moment(attempt.started_at)}: {attempt.action} {attempt.status.lower()}, {span_of(attempt.duration)}"
