"""Graphs of stream tables over one table of events: chains, layers, a tree, diamonds, tables apart."""

from collections.abc import Iterator
from dataclasses import dataclass

Tables = list[tuple[str, str]]
BASE = "events"
LANES = 4


@dataclass(frozen=True, slots=True)
class Topology:
    """Stream tables in the order of their creation; `last` are those that no other reads.

    `widths` says how many units of each level can be refreshed at the same time.
    """

    name: str
    tables: tuple[tuple[str, str], ...]
    last: tuple[str, ...]
    widths: tuple[int, ...]


def chain(length: int) -> Topology:
    """Each stream table reads the one before it."""
    tables = [(f"c{i}", _copy(f"c{i - 1}" if i else BASE)) for i in range(length)]
    return Topology(f"chain of {length}", tuple(tables), (f"c{length - 1}",), (1,) * length)


def wide(depth: int, width: int) -> Topology:
    """Layers, each of whose tables reads one of the layer above."""
    tables = [(f"w{d}_{i}", _copy(f"w{d - 1}_{i}" if d else BASE)) for d in range(depth) for i in range(width)]
    last = tuple(f"w{depth - 1}_{i}" for i in range(width))
    return Topology(f"wide, {depth} x {width}", tuple(tables), last, (width,) * depth)


def apart(count: int) -> Topology:
    """Stream tables that do not read each other."""
    tables = tuple((f"a{i}", f"SELECT id, amount + {i} AS amount FROM {BASE}") for i in range(count))
    return Topology(f"{count} apart", tables, tuple(name for name, _ in tables), (count,))


def fan_out(depth: int) -> Topology:
    """A binary tree: each stream table is read by two."""
    levels = range(depth)
    tables = [(f"f{d}_{i}", _copy(f"f{d - 1}_{i // 2}" if d else BASE)) for d in levels for i in range(2**d)]
    last = tuple(f"f{depth - 1}_{i}" for i in range(2 ** (depth - 1)))
    return Topology(f"fan-out of depth {depth}", tuple(tables), last, tuple(2**d for d in levels))


def diamond(width: int) -> Topology:
    """One stream table joins several that read the same source; all are committed in one transaction."""
    tables = [(f"d{i}", f"SELECT id, amount + {i} AS amount FROM {BASE}") for i in range(width)]
    joined = " ".join(f"JOIN d{i} USING (id)" for i in range(1, width))
    amounts = " + ".join(f"d{i}.amount" for i in range(width))
    tables.append(("joined", f"SELECT id, {amounts} AS amount FROM d0 {joined}"))
    return Topology(f"diamond of {width}", tuple(tables), ("joined",), (1,))


def topologies() -> Iterator[Topology]:
    """Yield what is measured."""
    yield from (chain(length) for length in (10, 50, 200))
    yield wide(5, 20)
    yield fan_out(7)
    yield diamond(4)
    yield apart(500)


def _copy(source: str) -> str:
    return f"SELECT id, amount FROM {source}"
