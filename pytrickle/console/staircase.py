"""The staircase of a watermark group: how far each source was complete over time, and the cut of hold_back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pytrickle.catalog.reports import HistoryEntry
from pytrickle.console.agreement import Advance, Moment, agreed_entries, moments
from pytrickle.console.axes import Axis, Tick, spanned

LEFT, RIGHT, TOP, BOTTOM = 64.0, 14.0, 14.0, 26.0
COLOURS = 8
LABEL_WIDTH, LABEL_HEIGHT = 110.0, 44.0

Advances = tuple[Advance, ...]


@dataclass(frozen=True, slots=True)
class Stair:
    """The line of a source as an SVG path, in one of the colours, and the dot where the cut takes it."""

    source: str
    colour: int
    path: str
    dot: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Chart:
    """All that a template draws. Within `shut`, as pairs of left and width, a gate was shut."""

    width: float
    height: float
    stairs: tuple[Stair, ...]
    agreed: str
    below_agreed: str
    cut: float | None
    shut: tuple[tuple[float, float], ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


@dataclass(frozen=True, slots=True)
class Scene:
    """What there is to draw: the advances of each source, oldest first, the tolerance, and from when until when."""

    history: Mapping[str, Advances]
    tolerance: float
    since: float
    now: float
    is_time: bool = True

    def values(self) -> list[float]:
        """Return the values that are seen: those within the time shown, and the last before it of each source."""
        seen = []
        for advances in self.history.values():
            before = [each.value for each in advances if each.at < self.since][-1:]
            seen += before + [each.value for each in advances if each.at >= self.since]
        return seen


def advances(entries: Sequence[HistoryEntry]) -> Advances:
    """Return the advances of a source, oldest first, from its history, newest first."""
    found = (Advance(entry.advanced_at.timestamp(), _value(entry)) for entry in reversed(entries))
    return tuple(sorted(found, key=lambda each: each.at))


def chart(scene: Scene, width: float, height: float) -> Chart:
    """Lay a scene out on a sheet of some size."""
    x = Axis(scene.since, max(scene.now, scene.since + 1), LEFT, width - RIGHT)
    low, high = spanned(scene.values(), 60.0 if scene.is_time else 4.0)
    room = (high - low) * 0.08
    y = Axis(low - room, high + room, height - BOTTOM, TOP, scene.is_time)
    agreement = moments(scene.history, scene.tolerance)
    line = _line([(each.at, each.agreed) for each in agreement if each.agreed is not None], x, y)
    entries = _chosen(scene)
    return Chart(
        width,
        height,
        tuple(
            Stair(source, number % COLOURS, _line(_points(steps), x, y), _dot(steps, entries.get(source), x, y))
            for number, (source, steps) in enumerate(scene.history.items())
        ),
        line,
        f"{line} V {height - BOTTOM:.1f} H {_begin(agreement, x):.1f} Z" if line else "",
        y.place(min(entries.values())) if entries else None,
        _shut(agreement, x),
        x.ticks(max(2, round((width - LEFT) / LABEL_WIDTH))),
        y.ticks(max(2, round(height / LABEL_HEIGHT))),
    )


def _value(entry: HistoryEntry) -> float:
    if entry.batch is not None:
        return float(entry.batch)
    if entry.watermark is None or entry.watermark.year == 9999:
        return float("inf")
    return entry.watermark.timestamp()


def _chosen(scene: Scene) -> dict[str, float]:
    values = {source: [each.value for each in steps] for source, steps in scene.history.items()}
    return (agreed_entries(values, scene.tolerance) or {}) if values else {}


def _points(steps: Sequence[Advance]) -> list[tuple[float, float]]:
    return [(each.at, each.value) for each in steps]


def _line(points: Sequence[tuple[float, float]], x: Axis, y: Axis) -> str:
    """Draw steps: each value lasts until the next one. Of those that fall on one pixel the last is drawn."""
    places: dict[int, tuple[float, float]] = {}
    for at, value in points:
        places[round(x.place(at))] = (x.place(at), y.place(value))
    if not places:
        return ""
    (left, first), *others = places.values()
    path = f"M {left:.1f} {first:.1f}"
    return path + "".join(f" H {at:.1f} V {value:.1f}" for at, value in others) + f" H {x.end:.1f}"


def _dot(steps: Sequence[Advance], value: float | None, x: Axis, y: Axis) -> tuple[float, float] | None:
    at = next((each.at for each in steps if each.value == value), None)
    return None if at is None or value is None or at < x.low else (x.place(at), y.place(value))


def _begin(agreement: Sequence[Moment], x: Axis) -> float:
    return x.place(next((each.at for each in agreement if each.agreed is not None), x.low))


def _shut(agreement: Sequence[Moment], x: Axis) -> tuple[tuple[float, float], ...]:
    ends = [*((each.at, each.aligned) for each in agreement), (x.high, True)]
    times = [(at, until) for (at, aligned), (until, _) in pairwise(ends) if not aligned and until > x.low]
    return tuple((x.place(at), x.place(until) - x.place(at)) for at, until in _joined(times))


def _joined(times: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for at, until in times:
        if joined and joined[-1][1] == at:
            at = joined.pop()[0]
        joined.append((at, until))
    return joined
