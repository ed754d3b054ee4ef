"""The graph of sources and stream tables as boxes, curves and links; a template draws it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pytrickle.catalog.reports import Dag, DagRow, StreamTableStatus
from pytrickle.catalog.table_state import state_of
from pytrickle.console.words import complete
from pytrickle.inspect.drawing.layers import reading
from pytrickle.inspect.drawing.layout import Layout, layout
from pytrickle.inspect.drawing.picture import Box, Picture, shortened
from pytrickle.inspect.drawing.svg import curve

WIDTH, HEIGHT, MARGIN = 208.0, 58.0, 8.0
NAME_CELLS, FACT_CELLS = 26, 30
SOURCE = "source"
INDENT = 4
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Node:
    """One relation: its place, its state in one word, one short fact, and the page that tells more."""

    name: str
    short: str
    state: str
    fact: str
    page: str
    left: float
    top: float
    depth: int


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes in the order of a tree, curves as SVG paths, and the size of it all."""

    nodes: tuple[Node, ...]
    curves: tuple[str, ...]
    width: float
    height: float


def graph(dag: Dag, broken: Collection[str]) -> Graph:
    """Lay the graph out, from the sources at the left to the stream tables that read them."""
    tables = {table.stream_table: table for table in dag.stream_tables}
    boxes = tuple(Box(row.relation, reads=row.reads) for row in dag.relations)
    places = layout(reading(Picture(boxes)), {box.name: (WIDTH, HEIGHT) for box in boxes})
    nodes = tuple(_node(row, tables, broken, places) for row in dag.relations)
    width, height = (size + 2 * MARGIN for size in places.size)
    return Graph(nodes, tuple(map(curve, places.arrows.values())), width, height)


def shown_state(table: StreamTableStatus, broken: Collection[str]) -> str:
    """Return the state of a stream table, also where it lost what it needs."""
    return "broken" if table.stream_table in broken else state_of(table)


def _node(row: DagRow, tables: Mapping[str, StreamTableStatus], broken: Collection[str], places: Layout) -> Node:
    frame, table = places.frames[row.relation], tables.get(row.relation)
    depth = min((len(row.tree) - len(row.tree.lstrip())) // INDENT, DEEPEST)
    state = shown_state(table, broken) if table else SOURCE
    fact = complete(row.watermark, row.batch)
    return Node(
        row.relation,
        shortened(row.relation, NAME_CELLS),
        state,
        shortened(fact if row.watermark or row.batch is not None else _kind(row), FACT_CELLS),
        "/table" if table else "/source",
        frame.left,
        frame.top,
        depth,
    )


def _kind(row: DagRow) -> str:
    if row.kind == "STREAM_TABLE":
        return f"last: {row.last_action}" if row.last_action else "never refreshed"
    return "not captured" if row.kind == "UNCAPTURED" else "no watermark"
