"""Which stream tables are refreshed together, and in which order: diamonds, groups, and what lies between."""

from __future__ import annotations

from typing import Any

import networkx
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.catalog.gating import Decision
from pytrickle.catalog.refresh_groups import RefreshGroup
from pytrickle.catalog.stream_table import Dependency, StreamTable
from pytrickle.cut import Cut
from pytrickle.refresh.atomic import in_blocks
from pytrickle.schedule.dag import topological
from pytrickle.schedule.units import Unit, apart, due_tables, units

BASE = 1_000
RUN = Decision("none", "run", "", None, None, {})


def table(number: int, *sources: int, **changes: Any) -> StreamTable:
    """A stream table whose number is its relid too; sources from 1000 on are base tables."""
    kinds = [(relid, "TABLE" if relid >= BASE else "STREAM_TABLE") for relid in sources]
    fields = dict.fromkeys(StreamTable.__slots__)
    fields |= {"pgt_id": number, "relid": number, "name": f"t{number}", "due": True, "decision": RUN}
    fields |= {"diamond_consistency": "atomic", "diamond_schedule_policy": "fastest"}
    fields["dependencies"] = tuple(Dependency(relid, str(relid), kind, None, "b") for relid, kind in kinds)
    return StreamTable(**(fields | changes))  # type: ignore[arg-type]


def members(found: tuple[Unit, ...]) -> list[tuple[int, ...]]:
    return [tuple(table.relid for table in unit.tables) for unit in found]


def test_a_chain_and_a_tree_are_no_diamonds() -> None:
    tables = (table(1, BASE), table(2, 1), table(3, 1), table(4, 3, BASE + 1))
    assert members(units(tables, ())) == [(1,), (2,), (3,), (4,)]


def test_a_diamond_is_one_unit_without_what_its_ways_have_in_common() -> None:
    tables = (table(1, BASE), table(2, 1), table(3, 1), table(4, 2, 3), table(5, 4))
    assert members(units(tables, ())) == [(1,), (2, 3, 4), (5,)]
    found = units(tables, ())[1]
    assert found.causes == ("diamond below t4",)


def test_a_stream_table_joined_with_its_own_base_is_a_diamond() -> None:
    assert members(units((table(1, BASE), table(2, 1, BASE)), ())) == [(1, 2)]


def test_ways_of_different_lengths_are_taken_whole() -> None:
    tables = (table(1, BASE), table(2, 1), table(3, 2), table(4, BASE), table(5, 3, 4))
    assert members(units(tables, ())) == [(1, 2, 3, 4, 5)]


def test_diamonds_that_share_a_member_are_one_unit() -> None:
    tables = (table(1, BASE), table(2, BASE), table(3, 1, 2), table(4, BASE), table(5, 2, 4))
    assert members(units(tables, ())) == [(1, 2, 3, 4, 5)]


def test_consistency_none_ties_nothing() -> None:
    tables = (table(1, BASE), table(2, BASE), table(3, 1, 2, diamond_consistency="none"))
    assert members(units(tables, ())) == [(1,), (2,), (3,)]


def test_what_lies_between_members_of_a_group_joins_them() -> None:
    tables = (table(1, BASE), table(2, 1), table(3, 2), table(4, BASE + 1))
    group = RefreshGroup("g", frozenset({1, 3, 99}), True)
    assert members(units(tables, (group,))) == [(1, 2, 3), (4,)]
    assert members(units(tables, (RefreshGroup("g", frozenset({1, 3}), False),))) == [(1,), (2,), (3,), (4,)]


def test_a_group_that_is_not_atomic_makes_all_members_due() -> None:
    tables = (table(1, BASE, due=False), table(2, BASE), table(3, BASE, due=False))
    assert due_tables(tables, (RefreshGroup("g", frozenset({1, 2}), False),)) == {1, 2}


def test_the_policy_decides_when_a_diamond_is_due() -> None:
    def found(policy: str) -> Unit:
        slow = table(2, BASE, due=False)
        return units((table(1, BASE), slow, table(3, 1, 2, diamond_schedule_policy=policy)), ())[0]

    assert found("fastest").is_due({1, 3}, ())
    assert not found("slowest").is_due({1, 3}, ())
    assert found("slowest").is_due({1, 3}, (2,)) and found("slowest").is_due({1, 2, 3}, ())


def test_tables_that_read_each_other_are_one_unit_among_those_they_read_and_that_read_them() -> None:
    tables = topological((table(5, 3), table(2, 1, 4), table(3, 2), table(4, 3), table(1, BASE)))
    assert [t.relid for t in tables] == [1, 2, 3, 4, 5]
    found = units(tables, ())
    assert members(found) == [(1,), (2, 3, 4), (5,)]
    assert found[1].cycles == (frozenset({2, 3, 4}),) and not found[0].cycles + found[2].cycles
    assert found[1].is_due({3}, ()) and not found[1].is_due({1, 5}, ())


def test_a_table_that_reads_itself_is_a_cycle_of_one() -> None:
    tables = topological((table(1, BASE), table(2, 1, 2), table(3, 2)))
    assert members(units(tables, ())) == [(1,), (2,), (3,)]
    assert [unit.cycles for unit in units(tables, ())] == [(), (frozenset({2}),), ()]


def test_what_reads_two_members_of_a_cycle_is_in_their_unit_but_not_in_the_cycle() -> None:
    (found,) = units(topological((table(1, BASE, 2), table(2, 1), table(3, 1, 2))), ())
    assert found.cycles == (frozenset({1, 2}),)
    assert [[t.relid for t in block] for block in in_blocks(found.tables, found.cycles)] == [[1, 2], [3]]


def test_members_of_a_cycle_that_are_held_back_at_different_cuts_are_told_apart() -> None:
    def capped(number: int, pos: int, *sources: int) -> StreamTable:
        cut = Cut("1:1:", "1", pos, None)
        return table(number, *sources, decision=Decision("hold_back", "run", "", None, None, {BASE: cut}))

    (same,) = units((capped(1, 7, BASE, 2), capped(2, 7, BASE, 1)), ())
    assert apart(same) is None
    (other,) = units((capped(1, 7, BASE, 2), capped(2, 8, BASE, 1)), ())
    found = apart(other)
    assert found and found[0].relid == 2
    assert found[1] == "t2 and t1 cannot read 1000 at the same cut yet"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[StreamTable, ...], tuple[RefreshGroup, ...]]:
    count = draw(st.integers(1, 9))
    tables = []
    for number in range(1, count + 1):
        above = [*range(1, number), BASE, BASE + 1]
        sources = draw(st.lists(st.sampled_from(above), min_size=1, max_size=3, unique=True))
        tables.append(table(number, *sources, diamond_consistency=draw(st.sampled_from(["atomic", "none"]))))
    groups = draw(st.lists(st.frozensets(st.integers(1, count), min_size=2), max_size=2)) if count > 1 else []
    return tuple(tables), tuple(RefreshGroup(f"g{i}", found, True) for i, found in enumerate(groups))


@given(graphs())
def test_units_hold_every_table_once_in_an_order_in_which_they_can_be_refreshed(
    drawn: tuple[tuple[StreamTable, ...], tuple[RefreshGroup, ...]],
) -> None:
    tables, groups = drawn
    found = units(tables, groups)
    assert sorted(relid for unit in members(found) for relid in unit) == [t.relid for t in tables]
    home = {relid: i for i, unit in enumerate(members(found)) for relid in unit}
    place = {relid: i for i, relid in enumerate(relid for unit in members(found) for relid in unit)}
    for each in tables:
        for dependency in (d for d in each.dependencies if d.relid < BASE):
            assert home[dependency.relid] <= home[each.relid] and place[dependency.relid] < place[each.relid]
    for group in groups:
        assert len({home[relid] for relid in group.members}) == 1


@given(graphs())
def test_what_two_ways_lead_through_is_in_the_unit_of_the_table_where_they_meet(
    drawn: tuple[tuple[StreamTable, ...], tuple[RefreshGroup, ...]],
) -> None:
    tables, _ = drawn
    graph = networkx.DiGraph([(d.relid, t.relid) for t in tables for d in t.dependencies])
    home = {t.relid: unit for unit in units(tables, ()) for t in unit.tables}
    for each in (t for t in tables if t.diamond_consistency == "atomic"):
        for start in graph.nodes:
            ways = list(networkx.all_simple_paths(graph, start, each.relid))
            inner = [set(way[1:-1]) for way in ways]
            for i, one in enumerate(inner):
                for other in inner[i + 1 :]:
                    # Ways that meet earlier may be a diamond of the table where they do.
                    if one.isdisjoint(other):
                        assert all(home[relid] is home[each.relid] for relid in one | other)
