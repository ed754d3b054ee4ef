"""Atomic units: stream tables that are refreshed together or not at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytrickle.catalog.refresh_groups import RefreshGroup
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.schedule.dag import cycles, reads_graph, topological

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, slots=True)
class Unit:
    """Stream tables in the order in which they read each other; most units are of one.

    `causes` say what ties them together, `cycles` which of them read each other. With `slowest` the unit is due when
    all of them are, else when one is.
    """

    tables: tuple[StreamTable, ...]
    causes: tuple[str, ...] = ()
    slowest: bool = False
    cycles: tuple[frozenset[int], ...] = ()

    def is_due(self, due: Set[int], asked: Iterable[int]) -> bool:
        """Whether the unit is refreshed now, given the numbers of those that are due and of those asked for."""
        members = {table.pgt_id for table in self.tables}
        return self.is_asked(asked) or (members <= due if self.slowest else not members.isdisjoint(due))

    def is_asked(self, asked: Iterable[int]) -> bool:
        """Whether one of the unit was asked for, so that it passes a gate."""
        return not {table.pgt_id for table in self.tables}.isdisjoint(asked)

    def renewed(self, now: Mapping[int, StreamTable]) -> Unit:
        """Return the unit with its tables as they are now, by their numbers."""
        tables = tuple(now[table.pgt_id] for table in self.tables)
        same = all(one is other for one, other in zip(tables, self.tables, strict=True))
        return self if same else replace(self, tables=tables)

    def halted(self, asked: Iterable[int]) -> StreamTable | None:
        """Return a member that ticks leave alone, which holds the whole unit unless one of them was asked for."""
        if self.is_asked(asked):
            return None
        return next((table for table in self.tables if table.halted), None)


def units(tables: tuple[StreamTable, ...], groups: Iterable[RefreshGroup]) -> tuple[Unit, ...]:
    """Group stream tables, sorted sources first, into units that can be refreshed one after the other.

    Ties are diamonds that are to be atomic, cycles and refresh groups; what lies between two members joins them.
    """
    circular = cycles(tables)
    ties = [*_diamonds(tables), *_declared(tables, groups), *((members, "cycle") for members in circular)]
    if not ties:
        return tuple(Unit((table,)) for table in tables)
    return _sorted(tables, ties, circular)


@dataclass(slots=True)
class KnownUnits:
    """Stream tables in their order, and their units, as they were worked out from the same tables the last time."""

    of: tuple[StreamTable, ...] = ()
    groups: tuple[RefreshGroup, ...] = ()
    tables: tuple[StreamTable, ...] = ()
    units: tuple[Unit, ...] = ()

    def arrange(self, found: tuple[StreamTable, ...], groups: tuple[RefreshGroup, ...]) -> None:
        """Sort the tables sources first, and group them; nothing is to be done for the tuple that was given before."""
        if found is self.of and groups == self.groups:
            return
        before, self.of = self.of, found
        if groups == self.groups and _are_tied_alike(before, found):
            self._renew(found)
            return
        self.groups = groups
        self.tables = topological(found)
        self.units = units(self.tables, groups)

    def _renew(self, found: tuple[StreamTable, ...]) -> None:
        """Put tables as they are now where they were before."""
        now = {table.pgt_id: table for table in found}
        self.tables = tuple(now[table.pgt_id] for table in self.tables)
        self.units = tuple(unit.renewed(now) for unit in self.units)


def _are_tied_alike(before: tuple[StreamTable, ...], now: tuple[StreamTable, ...]) -> bool:
    """Whether stream tables are the same ones, with the same names, sources and options about what ties them."""
    if len(before) != len(now):
        return False
    return all(one is other or _ties(one) == _ties(other) for one, other in zip(before, now, strict=True))


def _ties(table: StreamTable) -> tuple[object, ...]:
    sources = tuple(dependency.relid for dependency in table.dependencies)
    options = (table.diamond_consistency, table.diamond_schedule_policy)
    return table.pgt_id, table.relid, table.name, sources, options


Tie = tuple[frozenset[int], str]
Cycles = tuple[frozenset[int], ...]


def _declared(tables: tuple[StreamTable, ...], groups: Iterable[RefreshGroup]) -> list[Tie]:
    known = {table.relid for table in tables}
    atomic = [(group.members & known, f"refresh group {group.name}") for group in groups if group.atomic]
    return [tie for tie in atomic if len(tie[0]) > 1]


def apart(unit: Unit) -> tuple[StreamTable, str] | None:
    """Find a member of a cycle that may not read a source at the cut at which another one does, and say so."""
    for cycle in unit.cycles:
        cuts: dict[int, tuple[str, object]] = {}
        for table in (table for table in unit.tables if table.relid in cycle):
            for source in table.dependencies:
                cut = table.decision.caps.get(source.relid)
                other, agreed = cuts.setdefault(source.relid, (table.name, cut))
                if cut != agreed:
                    return table, f"{table.name} and {other} cannot read {source.name} at the same cut yet"
    return None


def due_tables(tables: tuple[StreamTable, ...], groups: Iterable[RefreshGroup]) -> set[int]:
    """Return the numbers of the stream tables that are due, by themselves or since another of their group is."""
    due = {table.relid for table in tables if table.due}
    due |= set().union(*(group.members for group in groups if not group.members.isdisjoint(due)))
    return {table.pgt_id for table in tables if table.relid in due}


def _diamonds(tables: tuple[StreamTable, ...]) -> list[Tie]:
    """Find what each stream table reads through two ways: all between it and where these ways part.

    They part at its immediate dominator, the last through which all ways from a base table to it lead.
    """
    stored = {table.relid for table in tables}
    meeting = [t for t in tables if t.diamond_consistency == "atomic" and _may_meet_itself(t, stored)]
    if not meeting:
        return []
    # Imported where it is needed: most databases have no ties, and every command would wait for it.
    import networkx

    graph = networkx.DiGraph((d.relid, table.relid) for table in tables for d in table.dependencies)
    roots = [relid for relid in graph if relid not in stored]
    parting = {root: networkx.immediate_dominators(graph, root) for root in roots}
    found = []
    for table in meeting:
        above = networkx.ancestors(graph, table.relid)
        starts = {parting[root][table.relid] for root in roots if root in above}
        between = set().union(*(networkx.descendants(graph, start) & above for start in starts)) & stored
        if between:
            found.append((frozenset(between | {table.relid}), f"diamond below {table.name}"))
    return found


def _may_meet_itself(table: StreamTable, stored: Set[int]) -> bool:
    sources = [dependency.relid for dependency in table.dependencies]
    return len(sources) > 1 and not stored.isdisjoint(sources)


def _sorted(tables: tuple[StreamTable, ...], ties: list[Tie], circular: Cycles) -> tuple[Unit, ...]:
    import networkx

    by_relid = {table.relid: table for table in tables}
    rank = {table.relid: i for i, table in enumerate(tables)}
    graph = reads_graph(tables)
    # Tied tables reach each other both ways, so that the components are the units, and what lies between joins them.
    for members, _ in ties:
        ordered = sorted(members)
        graph.add_edges_from(zip(ordered, [*ordered[1:], ordered[0]], strict=True))
    components = networkx.condensation(graph)
    order = networkx.lexicographical_topological_sort(
        components, lambda n: min(map(rank.__getitem__, _of(components, n)))
    )
    found = (tuple(by_relid[relid] for relid in sorted(_of(components, n), key=rank.__getitem__)) for n in order)
    return tuple(_unit(members, ties, circular) for members in found)


def _of(components: networkx.DiGraph[int], node: int) -> set[int]:
    members: set[int] = components.nodes[node]["members"]
    return members


def _unit(tables: tuple[StreamTable, ...], ties: list[Tie], circular: Cycles) -> Unit:
    members = {table.relid for table in tables}
    causes = tuple(cause for tied, cause in ties if not tied.isdisjoint(members))
    slowest = any(t.diamond_schedule_policy == "slowest" for t in tables if f"diamond below {t.name}" in causes)
    return Unit(tables, causes, slowest, tuple(cycle for cycle in circular if not cycle.isdisjoint(members)))
