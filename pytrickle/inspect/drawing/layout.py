"""Where boxes and arrows go on a plane: a column per layer, each column ordered and placed after its neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

import networkx as nx

from pytrickle.inspect.drawing.layers import layers

COLUMN_GAP = 70.0
ROW_GAP = 22.0
SWEEPS = 4

# A box, or the point at which a long arrow passes a layer: its source, its reader, the layer.
Stop = str | tuple[str, str, int]
Size = tuple[float, float]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Frame:
    """The place of a box. All boxes of a column are equally wide."""

    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Layout:
    """The frames of all boxes, the points of each arrow, all on the borders of columns, and the size of it all."""

    frames: Mapping[str, Frame]
    arrows: Mapping[tuple[str, str], tuple[Point, ...]]
    size: Size


def layout(graph: nx.DiGraph, sizes: Mapping[str, Size]) -> Layout:
    """Lay a graph out from left to right, so that no arrow runs across a box of a layer that it passes.

    Layers, stops where long arrows pass them, then sweeps that move each stop to the mean of its neighbours: Sugiyama,
    Tagawa and Toda, Methods for Visual Understanding of Hierarchical System Structures (1981), in short.
    """
    placed = layers(graph)
    routes = _routes(graph, placed)
    near = _neighbours(routes)
    columns = _ordered(_columns(placed, routes), near)
    heights = {stop: sizes[stop][1] if isinstance(stop, str) else 0.0 for column in columns for stop in column}
    middles = _middles(columns, near, heights)
    borders, width = _borders(columns, sizes)
    return Layout(
        {
            name: Frame(borders[name][0], middles[name] - heights[name] / 2, _length(borders[name]), heights[name])
            for name in graph
        },
        {edge: _points(route, borders, middles) for edge, route in routes.items()},
        (width, max((middles[stop] + height / 2 for stop, height in heights.items()), default=0.0)),
    )


def _routes(graph: nx.DiGraph, placed: tuple[tuple[str, ...], ...]) -> dict[tuple[str, str], tuple[Stop, ...]]:
    """Return the stops of each arrow, one per layer from its source to its reader."""
    depth = {name: number for number, layer in enumerate(placed) for name in layer}
    return {
        (source, reader): (
            source,
            *((source, reader, passed) for passed in range(depth[source] + 1, depth[reader])),
            reader,
        )
        for source, reader in sorted(graph.edges)
    }


def _columns(
    placed: tuple[tuple[str, ...], ...], routes: Mapping[tuple[str, str], tuple[Stop, ...]]
) -> list[list[Stop]]:
    columns: list[list[Stop]] = [list(layer) for layer in placed]
    for route in routes.values():
        for stop in route[1:-1]:
            columns[int(stop[2])].append(stop)
    return columns


def _neighbours(routes: Mapping[tuple[str, str], tuple[Stop, ...]]) -> nx.DiGraph:
    graph = nx.DiGraph()
    for route in routes.values():
        nx.add_path(graph, route)
    return graph


def _ordered(columns: list[list[Stop]], neighbours: nx.DiGraph) -> list[list[Stop]]:
    """Order each column by the mean place of its neighbours, forth and back in turns, so that few arrows cross."""
    for sweep in range(SWEEPS):
        forth = sweep % 2 == 0
        place: dict[Stop, float] = {}
        for column in columns if forth else reversed(columns):
            near = neighbours.pred if forth else neighbours.succ
            wanted = _means(column, near, place)
            column.sort(key=lambda stop: wanted[stop])
            place |= {stop: number / len(column) for number, stop in enumerate(column)}
    return columns


def _means(
    column: Iterable[Stop], near: Mapping[Stop, Iterable[Stop]], place: Mapping[Stop, float]
) -> dict[Stop, float]:
    """Return the mean place of each stop's neighbours; one without any keeps to the one before it."""
    means: dict[Stop, float] = {}
    last = 0.0
    for stop in column:
        known = [place[other] for other in near.get(stop, ()) if other in place]
        last = means[stop] = fmean(known) if known else last
    return means


def _middles(columns: list[list[Stop]], neighbours: nx.DiGraph, heights: Mapping[Stop, float]) -> dict[Stop, float]:
    """Place each stop beside the mean of what it reads, as far as those above it in its column leave room."""
    middles: dict[Stop, float] = {}
    for column in columns:
        wanted = _means(column, neighbours.pred, middles)
        free, found = 0.0, dict[Stop, float]()
        for stop in column:
            found[stop] = max(wanted[stop], free + heights[stop] / 2)
            free = found[stop] + heights[stop] / 2 + ROW_GAP
        # Pushing down alone would let every column sink below the one before it.
        excess = fmean(found[stop] - wanted[stop] for stop in column)
        room = min(found[stop] - heights[stop] / 2 for stop in column)
        middles |= {stop: middle - min(excess, room) for stop, middle in found.items()}
    return middles


def _borders(columns: list[list[Stop]], sizes: Mapping[str, Size]) -> tuple[dict[Stop, Point], float]:
    """Return the left and right border of every stop, which are those of its column, and the width of all together."""
    borders: dict[Stop, Point] = {}
    left = 0.0
    for column in columns:
        right = left + max(sizes[stop][0] for stop in column if isinstance(stop, str))
        borders |= dict.fromkeys(column, (left, right))
        left = right + COLUMN_GAP
    return borders, max(0.0, left - COLUMN_GAP)


def _points(route: tuple[Stop, ...], borders: Mapping[Stop, Point], middles: Mapping[Stop, float]) -> tuple[Point, ...]:
    both = [(border, middles[stop]) for stop in route for border in borders[stop]]
    return tuple(both[1:-1])


def _length(border: Point) -> float:
    return border[1] - border[0]
