"""The order in which stream tables are refreshed: sources before what reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from pytrickle.catalog.stream_table import StreamTable

if TYPE_CHECKING:
    import networkx


def topological(tables: Iterable[StreamTable]) -> tuple[StreamTable, ...]:
    """Sort stream tables so that each follows the stream tables it reads; those of a cycle stand side by side."""
    by_relid = {table.relid: table for table in tables}
    graph = {relid: {d.relid for d in table.dependencies if d.relid in by_relid} for relid, table in by_relid.items()}
    try:
        return tuple(by_relid[relid] for relid in TopologicalSorter(graph).static_order())
    except CycleError:
        return tuple(by_relid[relid] for members in _components(tuple(by_relid.values())) for relid in members)


def cycles(tables: tuple[StreamTable, ...]) -> tuple[frozenset[int], ...]:
    """Return the relids of stream tables that read each other or themselves, given them sorted sources first."""
    rank = {table.relid: i for i, table in enumerate(tables)}
    if not any(rank.get(d.relid, -1) >= rank[table.relid] for table in tables for d in table.dependencies):
        return ()
    graph = reads_graph(tables)
    found = _components(tables)
    return tuple(frozenset(members) for members in found if len(members) > 1 or graph.has_edge(members[0], members[0]))


def reads_graph(tables: tuple[StreamTable, ...]) -> networkx.DiGraph[int]:
    """Return the graph of stream tables alone, from what is read to what reads it."""
    # Imported where it is needed: most databases have no ties, and every command would wait for it.
    import networkx

    known = {table.relid for table in tables}
    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(sorted(known))
    graph.add_edges_from((d.relid, t.relid) for t in tables for d in t.dependencies if d.relid in known)
    return graph


def _components(tables: tuple[StreamTable, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the tables that read each other, each once, in an order in which they follow what they read."""
    import networkx

    numbers = {table.relid: table.pgt_id for table in tables}
    components = networkx.condensation(reads_graph(tables))
    order = networkx.topological_sort(components)
    return tuple(tuple(sorted(components.nodes[node]["members"], key=numbers.__getitem__)) for node in order)


def with_upstream(table: StreamTable, by_relid: Mapping[int, StreamTable]) -> frozenset[int]:
    """Return the relids of a stream table and of all stream tables it reads, directly or through others."""
    found: set[int] = set()
    waiting = [table]
    while waiting:
        current = waiting.pop()
        found.add(current.relid)
        waiting += [by_relid[d.relid] for d in current.dependencies if d.relid in by_relid and d.relid not in found]
    return frozenset(found)
