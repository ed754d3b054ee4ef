"""diamond_groups() finds the stream tables that the refresher commits together, in graphs of many shapes."""

from __future__ import annotations

from random import Random

import psycopg
import pytest

from pytrickle.catalog import stream_table as catalog
from pytrickle.schedule.dag import topological
from pytrickle.schedule.units import units
from tests.mirror.conftest import Mirror
from tests.repeats import first


def build(mirror: Mirror, seed: int) -> None:
    """Create stream tables that read one to three of those before them and of three tables."""
    chance = Random(seed)
    names = ["a", "b", "c"]
    mirror.run(*(f"CREATE TABLE {name} (id integer)" for name in names))
    for number in range(9):
        sources = chance.sample(names, chance.choice([1, 1, 2, 2, 3]))
        query = f"SELECT id FROM {sources[0]} " + " ".join(f"JOIN {name} USING (id)" for name in sources[1:])
        consistency, policy = chance.choice(["atomic", "atomic", "none"]), chance.choice(["fastest", "slowest"])
        mirror.db.execute(
            "SELECT pgtrickle.create_stream_table(%s, %s, diamond_consistency => %s, diamond_schedule_policy => %s)",
            *(f"s{number}", query, consistency, policy),
        )
        names.append(f"s{number}")


def assert_same(mirror: Mirror) -> int:
    """Compare the groups with the units that a diamond ties together; return how many those are."""
    with psycopg.connect(mirror.db.dsn) as connection:
        found = units(topological(catalog.stream_tables(connection)), ())
    together = {
        (frozenset(table.name.removeprefix("public.") for table in unit.tables), unit.slowest)
        for unit in found
        if any(cause.startswith("diamond") for cause in unit.causes)
    }
    groups: dict[int, tuple[set[str], bool]] = {}
    columns = "group_id, member_name, schedule_policy"
    for number, name, policy in mirror.rows(f"SELECT {columns} FROM pgtrickle.diamond_groups()"):
        groups.setdefault(number, (set(), policy == "slowest"))[0].add(name)
    assert {(frozenset(members), slowest) for members, slowest in groups.values()} == together
    return len(together)


@pytest.mark.parametrize("seed", first(2, range(8), then=2))
def test_the_groups_are_the_units_that_the_refresher_commits_together(mirror: Mirror, seed: int) -> None:
    build(mirror, seed)
    assert_same(mirror)


def test_a_cycle_is_taken_for_a_diamond_where_the_refresher_takes_it_for_one(mirror: Mirror) -> None:
    mirror.run("CREATE TABLE edges (a integer, b integer)")
    step = "SELECT a, b FROM edges UNION SELECT e.a, {0}.b FROM edges AS e JOIN {0} ON {0}.a = e.b"
    for name, query in (("x", "SELECT a, b FROM edges"), ("y", step.format("x")), ("z", "SELECT x.a FROM x, y")):
        mirror.db.execute("SELECT pgtrickle.create_stream_table(%s, %s, allow_circular => true)", name, query)
    assert assert_same(mirror) == 1
    mirror.db.execute("SELECT pgtrickle.alter_stream_table('x', query => %s)", step.format("y"))
    assert assert_same(mirror) >= 1
