"""AUTO after many changes: whole and differential refreshes of one table in turns, exact and as a difference."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import pytrickle.refresh.planner
import pytrickle.refresh.remembered
from pytrickle.catalog.past_refreshes import KEPT, evidence
from pytrickle.catalog.query_cost import query_cost
from pytrickle.catalog.stream_table import resolve_name, stream_table
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

ROWS = 20_000
TABLES = f"""
CREATE TABLE a (id int PRIMARY KEY, k int, v numeric);
CREATE TABLE b (k int PRIMARY KEY, name text);
INSERT INTO a SELECT i, i % 50, i % 7 FROM generate_series(1, {ROWS}) AS i;
INSERT INTO b SELECT i, 'name ' || i FROM generate_series(0, 49) AS i;
"""
QUERIES = {
    "grouped": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS mean, min(v) AS low FROM a GROUP BY k"
    " HAVING count(*) > 3",
    "scalar": "SELECT count(*) AS n, max(v) AS high FROM a",
    "joined": "SELECT a.id, a.v, b.name FROM a JOIN b USING (k)",
    "names": "SELECT DISTINCT b.name, a.v FROM a JOIN b USING (k)",
}
MANY = f"UPDATE a SET v = v + 1 WHERE id <= {ROWS}"
FEW = (
    "UPDATE a SET v = -1 WHERE id IN (7, 8)",
    "DELETE FROM a WHERE k = 3 AND id % 4 = 1",
    "INSERT INTO a VALUES (-1, 3, 9.5), (-2, 99, 1)",
)


@dataclass(frozen=True)
class World:
    """A database with the tables, and a client on the engine's double."""

    db: Database
    pt: Client
    engine: LocalEngine

    def tick(self) -> dict[str, str]:
        """Tick; return the actions by unqualified name."""
        results = self.pt.tick()
        assert not [result.error for result in results if result.error]
        return {result.stream_table.partition(".")[2]: result.action for result in results}

    def forget(self) -> None:
        """Drop the history, so that the choice does not depend on how fast this machine is."""
        self.db.execute("DELETE FROM pgtrickle.pgt_refresh_history")

    def assert_exact(self, names: tuple[str, ...] = tuple(QUERIES)) -> None:
        with self.db.connect() as connection:
            wrong = {name: differences(connection, name, QUERIES[name], True) for name in names}
        assert wrong == {name: [] for name in names}


@pytest.fixture
def world(db: Database) -> Iterator[World]:
    """The tables, analyzed; no stream table yet."""
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute("ANALYZE")
    with local_client(db.dsn, direct_delta_rows=0) as (client, engine):
        yield World(db, client, engine)


def create(world: World, names: tuple[str, ...] = tuple(QUERIES), **options: str) -> None:
    for name in names:
        world.pt.create_stream_table(name, QUERIES[name], **options)
    world.tick()


def test_contents_are_the_same_whichever_way_is_chosen(world: World) -> None:
    create(world)
    for _ in range(2):
        world.forget()
        world.db.execute(MANY)
        assert world.tick() == dict.fromkeys(QUERIES, "FULL")
        world.assert_exact()
        for statement in FEW:
            world.db.execute(statement)
            assert set(world.tick().values()) <= {"DIFFERENTIAL", "NO_DATA"}
            world.assert_exact()
        world.db.execute("DELETE FROM a WHERE id < 0")
        world.db.execute("INSERT INTO a SELECT i, 3, i FROM generate_series(2, 20000) AS i ON CONFLICT DO NOTHING")
        world.tick()
    assert all(world.pt.verify(name).matches for name in QUERIES)


def test_dependents_of_a_whole_refresh_see_only_what_changed(world: World) -> None:
    create(world, ("grouped", "joined"))
    world.pt.create_stream_table("sums", "SELECT sum(n) AS rows, sum(s) AS s FROM grouped")
    world.pt.create_stream_table("copies", "SELECT id, v, name FROM joined")
    world.tick()
    world.db.execute(f"UPDATE a SET v = v + CASE WHEN id = 1 THEN 1000 ELSE 0 END WHERE id <= {ROWS}")
    assert world.tick() == {"grouped": "FULL", "joined": "FULL", "sums": "DIFFERENTIAL", "copies": "DIFFERENTIAL"}
    history = {row.stream_table.partition(".")[2]: row for row in reversed(world.pt.history())}
    for name in ("grouped", "joined"):
        assert (history[name].rows_inserted, history[name].rows_deleted) == (1, 1)
    plans = {plan.shape.definition.name: plan for plan in world.engine.plans}
    assert {name: plans[name].delta_rows for name in ("sums", "copies")} == {"sums": 2, "copies": 2}
    world.assert_exact(("grouped", "joined"))


def test_a_chosen_whole_refresh_stops_at_the_cut(world: World) -> None:
    world.db.execute("SELECT pgtrickle.create_watermark_group('loads', ARRAY['a'])")
    create(world, ("grouped", "scalar", "joined"), watermark_gating="hold_back")
    world.db.execute("SELECT pgtrickle.advance_watermark('a', '2026-01-01')")
    world.tick()
    with world.db.connect() as loader, loader.transaction():
        loader.execute(MANY.encode())
        loader.execute("SELECT pgtrickle.advance_watermark('a', '2026-01-02')")
    names = ("grouped", "scalar", "joined")
    expected = {name: sorted(world.db.execute(QUERIES[name])) for name in names}
    world.db.execute("UPDATE a SET v = v * 2, k = k + 1")
    world.db.execute("DELETE FROM a WHERE id % 3 = 0")
    assert world.tick() == dict.fromkeys(names, "FULL")
    assert {name: sorted(world.db.execute(f"TABLE {name}")) for name in names} == expected
    assert all(world.pt.verify(name).matches for name in names)
    world.db.execute("SELECT pgtrickle.advance_watermark('a', '2026-01-03')")
    world.forget()
    assert world.tick() == dict.fromkeys(names, "FULL")
    world.assert_exact(names)


@pytest.mark.parametrize("mode", first(1, ("DIFFERENTIAL", "FULL")))
def test_other_modes_leave_nothing_to_choose(world: World, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pytrickle.refresh.planner, "query_cost", _never)
    monkeypatch.setattr(pytrickle.refresh.planner, "expected", _never)
    create(world, refresh_mode=mode)
    for statement in (MANY, FEW[0]):
        world.db.execute(statement)
        assert world.tick() == dict.fromkeys(QUERIES, mode)
        world.assert_exact()


def test_few_changes_pay_a_query_for_the_choice_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    create(world)
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 3600.0)
    world.db.execute(FEW[0])
    world.tick()
    monkeypatch.setattr(pytrickle.refresh.planner, "evidence", _never)
    for statement in FEW:
        world.db.execute(statement)
        world.tick()
    world.assert_exact()


@dataclass
class Prices:
    """What PostgreSQL's planner is made to say that a delta and a whole query cost; `asked` are the queries."""

    delta: float
    whole: float = 100_000.0
    asked: list[str] = field(default_factory=list)

    def cost(self, _: object, query: str, __: object) -> float:
        self.asked.append(query)
        return self.delta if "pgtrickle_changes" in query else self.whole


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch) -> Prices:
    """Prices that a test may change; a refresh is never slow."""
    found = Prices(1.0)
    monkeypatch.setattr(pytrickle.refresh.planner, "query_cost", found.cost)
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 3600.0)
    return found


def took(world: World, action: str, seconds: float) -> None:
    """Pretend that what was done so far took so long in PostgreSQL."""
    world.db.execute(
        f"UPDATE pgtrickle.pgt_refresh_history SET started_at = finished_at - {seconds} * interval '1 second',"
        f" engine = 'postgres' WHERE action = '{action}'"
    )


FEW_ROWS = "UPDATE a SET v = v + 1 WHERE id IN (7, 8)"


@pytest.mark.parametrize(("delta", "action"), [(10.0, "DIFFERENTIAL"), (100_000_000.0, "FULL")])
def test_the_planner_is_asked_before_a_delta_that_nobody_measured(
    world: World, prices: Prices, delta: float, action: str
) -> None:
    create(world, ("joined",))
    took(world, "FULL", 10.0)
    prices.delta = delta
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": action}
    assert len(prices.asked) == 2
    newest = world.pt.history("joined")[0]
    assert action == "DIFFERENTIAL" or (newest.reason or "").endswith("by PostgreSQL's planner")
    world.db.execute(FEW_ROWS)
    world.tick()
    assert len(prices.asked) == 2, "as many changes of as many rows are asked about once"
    world.assert_exact(("joined",))


def test_the_planner_is_asked_before_a_source_changes_that_never_did(world: World, prices: Prices) -> None:
    """What changes of `a` took says nothing of `b`, each row of which is joined with 400 of `a`."""
    create(world, ("joined",))
    took(world, "FULL", 10.0)
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    prices.asked.clear()
    prices.delta = 100_000_000.0
    world.db.execute("UPDATE b SET name = name || '!' WHERE k IN (7, 8)")
    assert world.tick() == {"joined": "FULL"}
    assert len(prices.asked) == 2
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    world.assert_exact(("joined",))


@pytest.mark.parametrize(("changes", "told"), [(999, False), (1_000, True)])
def test_many_changes_are_analyzed_before_the_planner_is_asked(
    world: World, monkeypatch: pytest.MonkeyPatch, changes: int, told: bool
) -> None:
    known = []
    statistics = "SELECT EXISTS (SELECT FROM pg_stats WHERE schemaname = 'pgtrickle_changes' AND attname = 'pgt_xid')"
    monkeypatch.setattr(
        pytrickle.refresh.planner, "query_cost", lambda *_: known.append(world.db.value(statistics)) or 10.0
    )
    create(world, ("joined",))
    took(world, "FULL", 10.0)
    for (buffer,) in world.db.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking"):
        world.db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
    world.db.execute(f"DELETE FROM a WHERE id <= {changes}")
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    assert known == [told, told]
    world.assert_exact(("joined",))


def test_the_planner_is_not_asked_where_the_whole_takes_a_few_milliseconds(world: World, prices: Prices) -> None:
    create(world, ("joined",))
    took(world, "FULL", 0.02)
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    assert prices.asked == []


def test_the_planner_is_not_asked_about_small_tables(world: World, prices: Prices) -> None:
    world.db.execute("CREATE TABLE little AS SELECT * FROM a WHERE id <= 50")
    world.db.execute("ANALYZE little")
    world.pt.create_stream_table("of_little", "SELECT id, v FROM little WHERE v >= 0")
    world.tick()
    took(world, "FULL", 10.0)
    world.db.execute("UPDATE little SET v = v + 1")
    assert world.tick() == {"of_little": "DIFFERENTIAL"}
    assert prices.asked == []


def test_what_was_measured_is_not_asked_about(world: World, prices: Prices) -> None:
    create(world, ("joined",))
    took(world, "FULL", 10.0)
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    prices.asked.clear()
    with local_client(world.db.dsn) as (client, engine):
        stranger = World(world.db, client, engine)
        world.db.execute(FEW_ROWS)
        assert stranger.tick() == {"joined": "DIFFERENTIAL"}
    assert prices.asked == []


def test_the_planner_answers_for_the_delta_and_for_the_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real planner, which is asked within the snapshot and leaves it as it was."""
    found = []

    def noted(*arguments: Any) -> float | None:
        found.append(query_cost(*arguments))
        return found[-1]

    monkeypatch.setattr(pytrickle.refresh.planner, "query_cost", noted)
    create(world, ("grouped", "joined"))
    took(world, "FULL", 10.0)
    world.db.execute(FEW_ROWS)
    assert world.tick() == dict.fromkeys(("grouped", "joined"), "DIFFERENTIAL")
    assert len(found) >= 4 and all(cost and cost > 0 for cost in found)
    world.assert_exact(("grouped", "joined"))


def _never(*_: object) -> None:
    raise AssertionError("asked for evidence")


def test_explain_and_the_history_say_why(world: World) -> None:
    create(world, ("scalar",))
    explained = world.pt.explain("scalar")
    assert f"whole refresh expected to pay from: {explained.data['whole_from_rows']:,} changed rows" in explained.text
    world.db.execute(MANY)
    explained = world.pt.explain("scalar")
    assert (explained.data["action"], explained.data["terms"]) == ("FULL", [])
    assert "40000 changed rows: a whole refresh is expected to take" in explained.text
    world.tick()
    ((newest, *_),) = [world.pt.history("scalar")]
    assert (newest.action, newest.reason) == ("FULL", explained.data["reason"])
    assert newest.finished_at is not None and newest.finished_at > newest.started_at


def test_the_past_decides(world: World) -> None:
    """Whole refreshes that took long are in the history: the same changes are then taken in differentially."""
    create(world, ("scalar",))
    world.db.execute(MANY)
    assert world.tick() == {"scalar": "FULL"}
    world.db.execute("UPDATE pgtrickle.pgt_refresh_history SET started_at = finished_at - interval '1 hour'")
    world.db.execute(MANY)
    assert world.tick() == {"scalar": "DIFFERENTIAL"}
    newest = world.pt.history("scalar")[0]
    assert "a whole one 3600.0 s" in (newest.reason or "")
    world.assert_exact(("scalar",))


def test_a_bad_guess_is_corrected_at_the_next_refresh(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every refresh is remembered as slow, whatever this machine takes.
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 0.0)
    create(world, ("joined",))
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    took(world, "DIFFERENTIAL", 3600.0)
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "FULL"}
    assert "changed rows: a whole refresh is expected to take" in (world.pt.history("joined")[0].reason or "")
    world.assert_exact(("joined",))


@pytest.mark.parametrize("mode", ["AUTO", "DIFFERENTIAL"])
def test_the_engine_that_was_faster_is_kept_to(world: World, mode: str) -> None:
    create(world, ("joined",))
    world.pt.alter_stream_table("joined", refresh_mode=mode)
    for seconds, engine in ((60.0, "spark"), (60.0, "spark"), (0.5, "postgres")):
        world.db.execute(
            "INSERT INTO pgtrickle.pgt_refresh_history"
            " (pgt_id, action, status, initiated_by, delta_rows, started_at, finished_at, engine)"
            " SELECT pgt_id, 'DIFFERENTIAL', 'COMPLETED', 'MANUAL', 40000,"
            f" now() - {seconds} * interval '1 second', now(), '{engine}' FROM pgtrickle.pgt_stream_tables"
        )
    took(world, "FULL", 3600.0)
    world.db.execute(MANY)
    explained = world.pt.explain("joined").text
    assert "engine: postgres (for about as many changes PostgreSQL took 0.5 s, Spark 60.0 s" in explained
    (result,) = world.pt.tick()
    assert (result.action, result.engine) == ("DIFFERENTIAL", "postgres")
    world.assert_exact(("joined",))


def test_a_table_that_was_never_analyzed_is_not_taken_for_an_empty_one(world: World) -> None:
    world.db.execute("CREATE TABLE c (id int, v numeric) WITH (autovacuum_enabled = off)")
    world.pt.create_stream_table("of_c", "SELECT id, v FROM c WHERE v >= 0")
    world.db.execute("INSERT INTO c SELECT i, i FROM generate_series(1, 150000) AS i")
    world.tick()
    world.db.execute("UPDATE c SET v = v + 1 WHERE id <= 6000")
    assert world.tick() == {"of_c": "DIFFERENTIAL"}


def test_the_state_is_right_after_a_time_in_mode_full(world: World) -> None:
    create(world, ("grouped", "scalar"))
    for name in ("grouped", "scalar"):
        world.pt.alter_stream_table(name, refresh_mode="FULL")
    world.db.execute("UPDATE a SET v = v + 1, k = k + 25 WHERE id <= 500")
    world.tick()
    for name in ("grouped", "scalar"):
        world.pt.alter_stream_table(name, refresh_mode="AUTO")
    for statement in FEW:
        world.db.execute(statement)
        world.tick()
        world.assert_exact(("grouped", "scalar"))


def test_a_chosen_whole_refresh_of_few_rows_starts_no_job(world: World) -> None:
    create(world)
    with local_client(world.db.dsn) as (client, engine):
        few = World(world.db, client, engine)
        for _ in range(2):
            few.forget()
            few.db.execute(MANY)
            assert few.tick() == dict.fromkeys(QUERIES, "FULL")
            few.assert_exact()
        assert engine.plans == []
    known = world.db.execute("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE action = 'FULL'")
    assert known == [(len(QUERIES),)]


def test_the_first_load_is_evidence(world: World) -> None:
    create(world, ("grouped",))
    world.db.execute(
        "UPDATE pgtrickle.pgt_refresh_history SET started_at = '2026-01-01', finished_at = '2026-01-01 00:00:01.5'"
    )
    with world.db.connect() as connection:
        pgt_id = resolve_name(connection, "grouped")
        assert evidence(connection, stream_table(connection, pgt_id)).first_load == 1.5
        world.db.execute("UPDATE a SET v = 3 WHERE id = 3")
        world.tick()
        found = evidence(connection, stream_table(connection, pgt_id))
    assert (found.first_load, len(found.refreshes)) == (1.5, 1)


def test_a_way_that_was_not_gone_for_long_is_forgotten(world: World) -> None:
    """Of about as many changes only: what few took since does not outweigh the few refreshes of many."""
    create(world, ("grouped",))
    with world.db.connect() as connection:
        table = stream_table(connection, resolve_name(connection, "grouped"))
        past = (("DIFFERENTIAL", 5_000), *[("FULL", 5_000)] * (KEPT - 1), *[("DIFFERENTIAL", 3)] * 2 * KEPT)
        for action, rows in past:
            connection.execute(
                "INSERT INTO pgtrickle.pgt_refresh_history"
                " (pgt_id, action, status, initiated_by, delta_rows, started_at, finished_at)"
                " VALUES (%s, %s, 'COMPLETED', 'MANUAL', %s, now(), now())",
                (table.pgt_id, action, rows),
            )
        large = [one for one in evidence(connection, table).refreshes if one.delta_rows == 5_000]
        assert [one.whole for one in large] == [True] * (KEPT - 1) + [False]
        connection.execute("UPDATE pgtrickle.pgt_refresh_history SET delta_rows = 5000 WHERE delta_rows = 3")
        assert [one.whole for one in evidence(connection, table).refreshes] == [False] * KEPT
