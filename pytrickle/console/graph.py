"""The graph of sources and stream tables as boxes, curves and links; a template draws it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from rich.cells import cell_len

from pytrickle.catalog.reports import Dag, DagRow, StreamTableStatus
from pytrickle.catalog.table_state import state_of
from pytrickle.console.words import complete
from pytrickle.inspect.drawing.layers import reading
from pytrickle.inspect.drawing.layout import Layout, layout
from pytrickle.inspect.drawing.picture import Box, Picture, shortened
from pytrickle.inspect.drawing.svg import curve

WIDTH, HEIGHT, MARGIN = 208.0, 58.0, 8.0
# A box is as wide as its lines: of a name in letters of one width, and of a fact beside a dot.
NAME_CELLS, FACT_CELLS = 56, 62
NAME_CELL, NAME_EDGES = 7.6, 32.0
FACT_CELL, FACT_EDGES = 6.2, 46.0
SOURCE = "source"
INDENT = 4
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Node:
    """One relation: its place, its state in one word, one fact, and the page that tells more.

    `short` and `line` are the name and the fact as a box has room for them; `name` and `fact` are whole.
    """

    name: str
    short: str
    state: str
    fact: str
    line: str
    page: str
    left: float
    top: float
    width: float
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
    states = {row.relation: _state(tables.get(row.relation), broken) for row in dag.relations}
    facts = {row.relation: _fact(row, states[row.relation]) for row in dag.relations}
    boxes = tuple(Box(row.relation, reads=row.reads) for row in dag.relations)
    places = layout(reading(Picture(boxes)), {name: (_width(name, fact), HEIGHT) for name, fact in facts.items()})
    nodes = tuple(_node(row, states[row.relation], facts[row.relation], places) for row in dag.relations)
    width, height = (size + 2 * MARGIN for size in places.size)
    return Graph(nodes, tuple(map(curve, places.arrows.values())), width, height)


def shown_state(table: StreamTableStatus, broken: Collection[str]) -> str:
    """Return the state of a stream table, also where it lost what it needs."""
    return "broken" if table.stream_table in broken else state_of(table)


def _state(table: StreamTableStatus | None, broken: Collection[str]) -> str:
    return shown_state(table, broken) if table else SOURCE


def _fact(row: DagRow, state: str) -> str:
    """Return how far a relation is complete or, where nobody says so, what it is; after its state, if that is one."""
    fact = complete(row.watermark, row.batch) if row.watermark or row.batch is not None else _kind(row)
    return fact if state in (SOURCE, "ok") else f"{state}, {fact}"


def _width(name: str, fact: str) -> float:
    """Return how wide a box must be for its lines, as far as they are shown."""
    lines = (cell_len(shortened(name, NAME_CELLS)), cell_len(shortened(fact, FACT_CELLS)))
    return max(WIDTH, NAME_EDGES + NAME_CELL * lines[0], FACT_EDGES + FACT_CELL * lines[1])


def _node(row: DagRow, state: str, fact: str, places: Layout) -> Node:
    frame = places.frames[row.relation]
    depth = min((len(row.tree) - len(row.tree.lstrip())) // INDENT, DEEPEST)
    return Node(
        row.relation,
        shortened(row.relation, NAME_CELLS),
        state,
        fact,
        shortened(fact, FACT_CELLS),
        "/source" if state == SOURCE else "/table",
        frame.left,
        frame.top,
        frame.width,
        depth,
    )


def _kind(row: DagRow) -> str:
    if row.kind == "STREAM_TABLE":
        return f"last: {row.last_action}" if row.last_action else "never refreshed"
    return "not captured" if row.kind == "UNCAPTURED" else "no watermark"
