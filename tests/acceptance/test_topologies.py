"""Every shape a graph of stream tables can take: right after each tick, at one cut, and stopped by a failure only where
it must."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest

import pytrickle
from tests.acceptance.conftest import Shop
from tests.repeats import first, only

POISON = 13
SETUP = """
CREATE TABLE arrivals (id int PRIMARY KEY, n bigint NOT NULL);
CREATE TABLE departures (id int PRIMARY KEY, n bigint NOT NULL);
"""
PAIR = "WITH a AS (INSERT INTO arrivals SELECT unnest(%s::int[]), 1) INSERT INTO departures SELECT unnest(%s::int[]), 1"


@pytest.fixture
def shop(local_shop: Shop) -> Shop:
    """Where Spark takes part, it does by clients of its own."""
    return local_shop


@dataclass(frozen=True)
class Topology:
    """Which tables each stream table reads, and the one that a row of id POISON makes fail."""

    reads: Mapping[str, tuple[str, ...]]
    poisoned: str
    held: frozenset[str]

    def ways(self, table: str) -> int:
        """Return on how many ways a row of the base tables reaches a table, which is the number it shows there."""
        return sum(map(self.ways, self.reads[table])) if table in self.reads else 1

    def query(self, table: str) -> str:
        """Sum up what the sources show; the poisoned table divides by zero for one id."""
        union = " UNION ALL ".join(f"SELECT id, n FROM {source}" for source in self.reads[table])
        number = f"sum(n) * ({POISON} - id) / ({POISON} - id)" if table == self.poisoned else "sum(n)"
        return f"SELECT id, CAST({number} AS bigint) AS n FROM ({union}) AS u GROUP BY id"


def layered(width: int, depth: int) -> dict[str, tuple[str, ...]]:
    """Return a wide graph: every layer reads the one above, table by table, and the first the base tables in turn."""
    bases = ("arrivals", "departures")
    return {
        f"t{level}_{i}": (f"t{level - 1}_{i}",) if level else (bases[i % 2],)
        for level in range(depth)
        for i in range(width)
    }


CHAIN = {"c0": ("arrivals", "departures")} | {f"c{i}": (f"c{i - 1}",) for i in range(1, 6)}
TREE = {"n1": ("arrivals", "departures")} | {f"n{i}": (f"n{i // 2}",) for i in range(2, 8)}
DIAMOND = {"top": ("arrivals",), "west": ("top", "departures"), "east": ("top",), "foot": ("west", "east")}
MIXED = {**DIAMOND, "tail": ("foot",), "leaf": ("tail",), "apart": ("departures",), "below": ("apart",)}
ATOMIC = frozenset({"west", "east", "foot"})
TOPOLOGIES = {
    "chain": Topology(CHAIN, "c3", frozenset({"c3", "c4", "c5"})),
    "wide": Topology(layered(4, 3), "t1_2", frozenset({"t1_2", "t2_2"})),
    "fan-out": Topology(TREE, "n3", frozenset({"n3", "n6", "n7"})),
    "diamond": Topology(DIAMOND, "east", ATOMIC),
    "mixed": Topology(MIXED, "west", ATOMIC | {"tail", "leaf"}),
}


@pytest.fixture(params=only({"chain", "diamond", "mixed"}, TOPOLOGIES))
def topology(request: pytest.FixtureRequest) -> Topology:
    return TOPOLOGIES[request.param]


@pytest.fixture(params=first(1, (3, 1)), ids=["lanes", "one-lane"])
def pt(shop: Shop, connect: Callable[..., pytrickle.Client], request: pytest.FixtureRequest) -> pytrickle.Client:
    """A client on an empty pair of base tables."""
    with shop.db.connect() as connection:
        connection.execute(SETUP)
    return connect(max_concurrent_refreshes=request.param, direct_delta_rows=1_000)


def load(shop: Shop, *ids: int) -> None:
    shop.db.execute(PAIR, list(ids), list(ids))


def assert_shows(shop: Shop, topology: Topology, tables: frozenset[str], ids: set[int]) -> None:
    """Every id once, with the number of ways that lead to it: less, or more, would be half of a pair."""
    assert tables
    for table in sorted(tables):
        assert shop.rows(table) == {(i, topology.ways(table)) for i in ids}, table


def test_topology(shop: Shop, topology: Topology, pt: pytrickle.Client) -> None:
    tables = frozenset(topology.reads)
    load(shop, 1, 2, 3)
    for table in topology.reads:
        pt.create_stream_table(table, topology.query(table))
    assert len(pt.tick()) == len(tables)
    assert_shows(shop, topology, tables, {1, 2, 3})

    # A change goes all the way down in one tick, differentially, and what commits meanwhile is seen by none.
    load(shop, 4)
    late = iter(range(100, 200))
    seen = pt.tick(lambda result: load(shop, next(late)))
    assert {result.action for result in seen} == {"DIFFERENTIAL"} and len(seen) == len(tables)
    assert_shows(shop, topology, tables, {1, 2, 3, 4})
    arrived = {row for (row,) in shop.db.execute("SELECT id FROM arrivals")}
    assert len(arrived) == 4 + len(tables)
    pt.tick()
    assert_shows(shop, topology, tables, arrived)

    # A failure keeps back its unit and what reads it, and nothing else.
    load(shop, POISON)
    actions = {result.stream_table.partition(".")[2]: result.action for result in pt.tick()}
    assert actions.pop(topology.poisoned) == "FAILED"
    held = topology.held - {topology.poisoned}
    assert {table for table, action in actions.items() if action == "SKIP"} == held
    assert_shows(shop, topology, topology.held, arrived)
    assert_shows(shop, topology, tables - topology.held, arrived | {POISON})

    shop.db.execute("DELETE FROM arrivals WHERE id = %s OR id < 3", POISON)
    shop.db.execute("DELETE FROM departures WHERE id = %s OR id < 3", POISON)
    pt.tick()
    assert_shows(shop, topology, tables, arrived - {1, 2})
    assert {result.action for result in pt.tick()} == {"NO_DATA"}
