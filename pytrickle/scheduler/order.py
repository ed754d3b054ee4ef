"""The order in which stream tables are refreshed: sources before what reads them."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from pytrickle.catalog.refresh import StreamTable
from pytrickle.errors import CycleDetected


def topological(tables: Iterable[StreamTable]) -> tuple[StreamTable, ...]:
    """Sort stream tables so that each follows the stream tables it reads; raise CycleDetected if none can be first."""
    by_relid = {table.relid: table for table in tables}
    graph = {relid: {d.relid for d in table.dependencies if d.relid in by_relid} for relid, table in by_relid.items()}
    try:
        return tuple(by_relid[relid] for relid in TopologicalSorter(graph).static_order())
    except CycleError as error:
        names = " -> ".join(by_relid[relid].name for relid in error.args[1])
        raise CycleDetected(f"Stream tables read each other in a circle: {names}.", "Drop one of them.") from error


def with_upstream(table: StreamTable, by_relid: Mapping[int, StreamTable]) -> frozenset[int]:
    """Return the relids of a stream table and of all stream tables it reads, directly or through others."""
    found: set[int] = set()
    waiting = [table]
    while waiting:
        current = waiting.pop()
        found.add(current.relid)
        waiting += [by_relid[d.relid] for d in current.dependencies if d.relid in by_relid and d.relid not in found]
    return frozenset(found)
