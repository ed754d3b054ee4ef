"""What a stream table is refreshed together with, and what may be refreshed at the same time."""

from __future__ import annotations

from collections.abc import Sequence

from pytrickle.schedule.lanes import read_by
from pytrickle.schedule.units import Unit


def together_with(unit: Unit, relid: int) -> str | None:
    """Say which other stream tables share a unit, and what ties them together; None for a unit of one."""
    others = [table.name for table in unit.tables if table.relid != relid]
    return f"{', '.join(others)} ({', '.join(unit.causes)})" if others else None


def beside(units: Sequence[Unit], unit: Unit, limit: int) -> str:
    """Say how many units may be refreshed at the same time as this one, and why it is so many."""
    if limit == 1:
        return "none, max_concurrent_refreshes is 1"
    number = independent(units, units.index(unit))
    if not number:
        return "none, all others read it or are read by it" if len(units) > 1 else "none, there are no others"
    if number == 1:
        return "the one unit that neither reads it nor is read by it"
    return f"up to {min(number, limit - 1)} of the {number} units that neither read it nor are read by it"


def independent(units: Sequence[Unit], index: int) -> int:
    """Count the units that one neither reads nor is read by, directly or through others."""
    import networkx

    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(len(units)))
    graph.add_edges_from((upstream, i) for i, read in enumerate(read_by(units)) for upstream in read)
    return len(units) - 1 - len(networkx.ancestors(graph, index)) - len(networkx.descendants(graph, index))
