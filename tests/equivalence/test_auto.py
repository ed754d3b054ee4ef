"""AUTO after many changes: whole and differential refreshes of one table in turns, exact and as a difference."""

from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

import pytrickle.refresh.choosing
import pytrickle.refresh.planner
import pytrickle.refresh.remembered
from pytrickle.catalog.past_refreshes import ENOUGH, KEPT, evidence
from pytrickle.catalog.stream_table import resolve_name, stream_table
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.ways import FEW_ROWS, MANY, QUERIES, ROWS, World, create, took, world_of
from tests.repeats import first

FEW = (
    "UPDATE a SET v = -1 WHERE id IN (7, 8)",
    "DELETE FROM a WHERE k = 3 AND id % 4 = 1",
    "INSERT INTO a VALUES (-1, 3, 9.5), (-2, 99, 1)",
)


@pytest.fixture
def world(db: Database) -> Iterator[World]:
    with world_of(db) as found:
        yield found


def test_contents_are_the_same_whichever_way_is_chosen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing is remembered, so that PostgreSQL's planner decides and a busy machine does not.
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 0.0)
    create(world)
    for _ in range(2):
        world.forget()
        world.db.execute(MANY)
        assert world.tick() == dict.fromkeys(QUERIES, "FULL")
        world.assert_exact()
        for statement in FEW:
            world.forget()
            world.db.execute(statement)
            actions = world.tick()
            said = [(row.stream_table, row.reason) for row in world.pt.history()[: len(QUERIES)]]
            assert set(actions.values()) <= {"DIFFERENTIAL", "NO_DATA"}, said
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
    monkeypatch.setattr(pytrickle.refresh.choosing, "query_cost", _never)
    monkeypatch.setattr(pytrickle.refresh.choosing, "expected", _never)
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
    monkeypatch.setattr(pytrickle.refresh.choosing, "evidence", _never)
    for statement in FEW:
        world.db.execute(statement)
        world.tick()
    world.assert_exact()


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
    # The history says beside it that Spark only handed the rows on, which explain has in its line about the engine.
    why, *shares = (newest.reason or "").split("; ")
    assert (newest.action, why, len(shares)) == ("FULL", explained.data["reason"], 1)
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
    assert "a whole one 3599.9 s" in (newest.reason or "")
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
        "UPDATE pgtrickle.pgt_refresh_history SET started_at = '2026-01-01', finished_at = '2026-01-01 00:00:01.5',"
        """ phases = '{"plan": 700, "compute": 250, "apply": 550}'"""
    )
    with world.db.connect() as connection:
        pgt_id = resolve_name(connection, "grouped")
        loaded = evidence(connection, stream_table(connection, pgt_id))
        assert (loaded.first_load, loaded.reading) == (1.5, 0.25)
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


PAST = """
INSERT INTO pgtrickle.pgt_refresh_history
    (pgt_id, action, status, initiated_by, delta_rows, started_at, finished_at, engine, phases)
SELECT pgt_id, 'DIFFERENTIAL', 'COMPLETED', 'MANUAL', 5, now() - %s * interval '1 s', now(), %s, %s
FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s
"""


def test_neither_waiting_nor_comparing_two_ways_is_believed_to_be_needed_again(world: World) -> None:
    create(world, ("grouped",))
    world.db.execute(PAST, 1.0, "postgres", '{"plan": 100, "choose": 300, "wait": 500, "apply": 100}', "grouped")
    with world.db.connect() as connection:
        (past,) = evidence(connection, stream_table(connection, resolve_name(connection, "grouped"))).refreshes
    assert past.seconds == pytest.approx(0.2)


def test_how_quick_a_database_is_any_of_its_stream_tables_tells(world: World) -> None:
    """The quickest tenth of what PostgreSQL did: neither a first load nor Spark's start says anything of it."""
    create(world, ("grouped", "scalar"))
    world.db.execute(PAST, 0.001, "spark", None, "scalar")
    with world.db.connect() as connection:
        table = stream_table(connection, resolve_name(connection, "grouped"))
        for number in range(1, ENOUGH):
            world.db.execute(PAST, number, "postgres", None, "scalar")
        assert evidence(connection, table).quick is None, "too little is known"
        for number in range(ENOUGH, 2 * ENOUGH + 1):
            world.db.execute(PAST, number, "postgres", None, "scalar")
        assert evidence(connection, table).quick == pytest.approx(2.0)


def test_planning_is_part_of_what_a_refresh_takes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real = pytrickle.refresh.planner.plan_refresh

    def slowly(*given: Any) -> Any:
        until = monotonic() + 0.5
        while monotonic() < until:
            pass
        return real(*given)

    create(world, ("grouped",))
    monkeypatch.setattr(pytrickle.refresh.planner, "plan_refresh", slowly)
    world.db.execute("UPDATE a SET v = v + 1 WHERE id <= 50")
    assert world.tick() == {"grouped": "DIFFERENTIAL"}
    with world.db.connect() as connection:
        (past,) = evidence(connection, stream_table(connection, resolve_name(connection, "grouped"))).refreshes
    assert past.seconds > 0.5
