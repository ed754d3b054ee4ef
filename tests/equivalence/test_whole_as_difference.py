"""Whole refreshes of little data are read as what differs from the stored rows: exact, few statements, no leftovers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import pytrickle.plan.cost
import pytrickle.plan.placement
import pytrickle.refresh.foresight
import pytrickle.refresh.planner
import pytrickle.refresh.remembered
from pytrickle.plan.apply_plan import Action, Stage
from pytrickle.plan.auto import Choice
from pytrickle.plan.cost import MOST_ROWS_READ
from pytrickle.plan.difference import plan_difference
from pytrickle.plan.refresh_plan import RefreshPlan
from pytrickle.refresh.at_once import AtOnce, Seen
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.ways import World
from tests.repeats import first

TABLES = """
CREATE TABLE a (id int PRIMARY KEY, k numeric, v numeric, w numeric(10,2), t char(3));
CREATE TABLE b (k numeric, name text);
INSERT INTO a SELECT i, i % 7, i % 5, i % 11, 'x' || i % 3 FROM generate_series(1, 80) AS i;
INSERT INTO b SELECT i % 6, 'name ' || i FROM generate_series(0, 9) AS i;
"""
QUERIES = {
    "grouped": "SELECT k, count(*) AS n, sum(v) AS s, avg(w) AS mean FROM a GROUP BY k HAVING count(*) > 2",
    "extremes": "SELECT k, t, min(w) AS low, max(w) AS high, max(t) AS last FROM a GROUP BY k, t",
    "scalar": "SELECT count(*) AS n, sum(v) AS s, max(w) AS high FROM a",
    "joined": "SELECT a.v, b.name FROM a JOIN b USING (k) WHERE a.w > 3",
    "outer_joined": "SELECT b.name, count(a.id) AS n FROM b LEFT JOIN a ON a.k = b.k AND a.v > 1 GROUP BY b.name",
    "kinds": "SELECT DISTINCT w, t FROM a",
    "without_key": "SELECT t, v FROM a WHERE v < 3",
    "ranked": "SELECT id, k, rank() OVER (PARTITION BY k ORDER BY v DESC) AS place FROM a",
    "not_differential": "SELECT k, percentile_disc(0.5) WITHIN GROUP (ORDER BY w) AS middle FROM a GROUP BY k",
    "listed": "SELECT t, string_agg(id::text, ',' ORDER BY id) AS ids FROM a GROUP BY t",
    "first_rows": "SELECT id, v FROM a ORDER BY v DESC, id LIMIT 5",
    "first_tied": "SELECT id, w FROM a ORDER BY w DESC FETCH FIRST 3 ROWS WITH TIES",
    "first_groups": "SELECT k, count(*) AS n, max(w) AS high FROM a GROUP BY k ORDER BY n DESC, k OFFSET 1 LIMIT 3",
}
STATE = ("grouped", "extremes", "scalar", "outer_joined", "kinds", "first_groups")
# Values that are equal and look different, groups that come and go, NULLs, NaN, and no rows at all.
CHANGES = (
    "UPDATE a SET v = v + 1 WHERE id % {n} = 0",
    "DELETE FROM a WHERE k = {n}",
    "INSERT INTO a SELECT 1000 + i + 100 * {n}, nullif({n}, 3), 1.50, {n}.5, NULL FROM generate_series(1, 3) AS i",
    "UPDATE a SET v = v * 1.00 WHERE id % {n} = 1",
    "UPDATE a SET v = 'NaN' WHERE id % 17 = {n}",
    "UPDATE b SET name = name || '!' WHERE k = {n}",
    "INSERT INTO b VALUES ({n}.0, 'again'), (NULL, NULL)",
    "DELETE FROM b WHERE k >= {n}",
    "DELETE FROM a",
    "INSERT INTO a SELECT i, i % 3, i, i, 'y' FROM generate_series(1, 20) AS i ON CONFLICT DO NOTHING",
)


@pytest.fixture
def world(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The tables; AUTO never finds that taking in changes pays."""
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute("ANALYZE")
    monkeypatch.setattr(pytrickle.plan.placement, "least_worth_asking", lambda *_: 0)
    monkeypatch.setattr(pytrickle.plan.placement, "choose_action", lambda *_: Choice(Action.FULL, "told to", 10))
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 3600.0)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, engine):
        yield World(db, client, engine)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> dict[str, Stage]:
    """What was staged by the differences that were planned, by stream table."""
    found: dict[str, Stage] = {}

    def noted(*arguments: object) -> RefreshPlan | None:
        plan = plan_difference(*arguments)  # type: ignore[arg-type]
        if plan:
            found[plan.shape.definition.name] = plan.placement.stage
        return plan

    monkeypatch.setattr(pytrickle.refresh.planner, "plan_difference", noted)
    return found


def assert_exact(world: World) -> None:
    with world.db.connect() as connection:
        wrong = {name: differences(connection, name, query, True) for name, query in QUERIES.items()}
    assert wrong == {name: [] for name in QUERIES}


@pytest.mark.parametrize("most_read", [MOST_ROWS_READ, 0], ids=["little_read", "little_kept"])
@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
@pytest.mark.parametrize("seed", first(1, range(6), then=2))
def test_they_equal_the_query_and_leave_a_state_that_increments_can_be_added_to(
    world: World, planned: dict[str, Stage], monkeypatch: pytest.MonkeyPatch, mode: str, seed: int, most_read: int
) -> None:
    monkeypatch.setattr(pytrickle.plan.cost, "MOST_ROWS_READ", most_read)
    chance = random.Random(seed)
    for name, query in QUERIES.items():
        world.pt.create_stream_table(name, query, refresh_mode=mode)
    world.tick()
    taken: set[str] = set()
    for _ in range(12):
        world.db.execute(chance.choice(CHANGES).format(n=chance.randint(2, 6)))
        taken |= set(world.tick().values())
        assert_exact(world)
    assert taken <= {"FULL", "NO_DATA", "DIFFERENTIAL"} and "FULL" in taken
    assert set(planned) == set(QUERIES)
    grouped = {name for name, stage in planned.items() if stage is Stage.GROUPS}
    assert grouped == (set(STATE) if mode == "AUTO" else set())
    for name in QUERIES:
        if name != "not_differential":
            world.pt.alter_stream_table(name, refresh_mode="DIFFERENTIAL")
    world.db.execute("INSERT INTO a SELECT 5000 + i, i % 3, i, i, 'z' FROM generate_series(1, 9) AS i")
    world.tick()
    for statement in CHANGES[:4]:
        world.db.execute(statement.format(n=2))
        assert world.tick()["grouped"] == "DIFFERENTIAL"
        assert_exact(world)


def test_they_are_read_together_with_the_questions_about_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a short one the next is expected to be computed anew, too, whatever changed."""
    monkeypatch.setattr(pytrickle.refresh.foresight, "MOST_SECONDS_GUESSED", 3600.0)
    read, found = AtOnce._read, list[bool]()

    def noted(self: AtOnce, seen: Seen, *given: Any) -> Any:
        found.append(seen.was_read)
        return read(self, seen, *given)

    monkeypatch.setattr(AtOnce, "_read", noted)
    world.pt.create_stream_table("grouped", QUERIES["grouped"])
    world.tick()
    for change in (*CHANGES[:3], CHANGES[0]):
        world.db.execute(change.format(n=2))
        assert world.tick() == {"grouped": "FULL"}
    assert found[-1], found
    with world.db.connect() as connection:
        assert differences(connection, "grouped", QUERIES["grouped"], True) == []


def test_what_keeps_values_in_the_order_of_stored_rows_is_computed_as_before(
    world: World, planned: dict[str, Stage]
) -> None:
    world.pt.create_stream_table("as_stored", "SELECT t, count(*) AS n, array_agg(id) AS ids FROM a GROUP BY t")
    world.tick()
    world.db.execute("DELETE FROM a WHERE id < 5")
    assert world.tick() == {"as_stored": "FULL"}
    assert planned == {}
    assert world.pt.verify("as_stored").matches


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_what_compares_many_rows_is_computed_as_before(
    world: World, planned: dict[str, Stage], monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(pytrickle.plan.cost, "MOST_ROWS_READ", 0)
    monkeypatch.setattr(pytrickle.plan.cost, "MOST_ROWS_KEPT", 400)
    world.db.execute("INSERT INTO a SELECT n, n % 500, n, 0, 'x' FROM generate_series(1000, 3000) AS n")
    shown = "SELECT v FROM a WHERE k < 0"
    kept = {"many": "SELECT v FROM a", "groups": "SELECT k, sum(v) AS s FROM a GROUP BY k HAVING sum(v) < 0"}
    kept["body"] = "SELECT v FROM a ORDER BY v LIMIT 3"
    for name, query in {**kept, "few": shown}.items():
        world.pt.create_stream_table(name, query, refresh_mode=mode)
    world.tick()
    world.db.execute("UPDATE a SET v = v + 1")
    assert set(world.tick().values()) == {"FULL"}
    # Without a hidden table there is nothing but what is shown.
    assert set(planned) == ({"few"} if mode == "AUTO" else {"few", "groups", "body"})
    assert all(world.pt.verify(name).matches for name in (*kept, "few"))


@pytest.mark.parametrize("mode", ["AUTO", "FULL"])
def test_what_lies_beyond_a_cut_is_not_shown(world: World, planned: dict[str, Stage], mode: str) -> None:
    world.db.execute("SELECT pgtrickle.create_watermark_group('loads', ARRAY['a'])")
    names = ("grouped", "without_key")
    for name in names:
        world.pt.create_stream_table(name, QUERIES[name], watermark_gating="hold_back", refresh_mode=mode)
    world.db.execute("SELECT pgtrickle.advance_watermark('a', '2026-01-01Z')")
    world.tick()
    world.db.execute("UPDATE a SET v = v + 1, t = 'z' WHERE id < 9")
    world.db.execute("SELECT pgtrickle.advance_watermark('a', '2026-01-02Z')")
    expected = {name: sorted(map(str, world.db.execute(QUERIES[name]))) for name in names}
    world.db.execute("UPDATE a SET v = v + 1, w = 99 WHERE id < 40")
    assert set(world.tick().values()) == {"FULL"}
    assert {name: sorted(map(str, world.db.execute(f"TABLE {name}"))) for name in names} == expected
    assert planned == {}
    world.db.execute("SELECT pgtrickle.advance_watermark('a', '2026-01-03Z')")
    assert set(world.tick().values()) == {"FULL"}
    assert set(planned) == set(names)
