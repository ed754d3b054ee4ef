"""AUTO asks PostgreSQL's planner what a delta would cost that nobody has measured, and only then."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pytrickle.refresh.choosing
import pytrickle.refresh.remembered
from pytrickle.catalog.query_cost import query_cost
from pytrickle.catalog.server_probe import NO_ROWS, server_probe
from pytrickle.client.client import Client
from pytrickle.errors import NotDifferentiable
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.ways import FEW_ROWS, Prices, World, create, took, world_of

# Whole refreshes of as many changes that took long.
WHOLE_MEASURED = """
INSERT INTO pgtrickle.pgt_refresh_history
    (pgt_id, action, status, initiated_by, delta_rows, started_at, finished_at, engine)
SELECT pgt_id, 'FULL', 'COMPLETED', 'MANUAL', 4, now() - interval '10 s', now(), 'postgres'
FROM pgtrickle.pgt_stream_tables
"""


@pytest.fixture
def world(db: Database) -> Iterator[World]:
    with world_of(db) as found:
        yield found


@pytest.fixture
def prices(monkeypatch: pytest.MonkeyPatch) -> Prices:
    """Prices that a test may change; a refresh is never slow."""
    found = Prices(1.0)
    monkeypatch.setattr(pytrickle.refresh.choosing, "query_cost", found.cost)
    monkeypatch.setattr(pytrickle.refresh.remembered, "SLOW", 3600.0)
    return found


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
    assert action == "DIFFERENTIAL" or "by PostgreSQL's planner" in (newest.reason or "")
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
    assert len(prices.asked) == 1, "what the whole costs is known already"
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
        pytrickle.refresh.choosing, "query_cost", lambda *_: known.append(world.db.value(statistics)) or 10.0
    )
    create(world, ("joined",))
    took(world, "FULL", 10.0)
    for (buffer,) in world.db.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking"):
        world.db.execute(f"ALTER TABLE {buffer} SET (autovacuum_enabled = off)")
    world.db.execute(f"DELETE FROM a WHERE id <= {changes}")
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    # What the whole query costs is asked first, and depends on no change.
    assert known == [False, told]
    world.assert_exact(("joined",))


def test_the_planner_is_asked_about_the_whole_alone_where_that_takes_a_few_milliseconds(
    world: World, prices: Prices
) -> None:
    create(world, ("scalar",))
    took(world, "FULL", 0.02)
    prices.whole = 1_000.0
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"scalar": "DIFFERENTIAL"}
    assert len(prices.asked) == 1 and "pgtrickle_changes" not in prices.asked[0]


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
    """A process that starts learns from the history what a delta takes; only the whole was never measured."""
    create(world, ("joined",))
    took(world, "FULL", 10.0)
    world.db.execute(FEW_ROWS)
    assert world.tick() == {"joined": "DIFFERENTIAL"}
    for asked in (1, 0):
        prices.asked.clear()
        with local_client(world.db.dsn) as (client, engine):
            stranger = World(world.db, client, engine)
            world.db.execute(FEW_ROWS)
            assert stranger.tick() == {"joined": "DIFFERENTIAL"}
        assert len(prices.asked) == asked and not any("pgtrickle_changes" in query for query in prices.asked)
        for _ in range(2):
            world.db.execute(WHOLE_MEASURED)


def test_the_planner_answers_for_the_delta_and_for_the_whole(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real planner, which is asked within the snapshot and leaves it as it was."""
    found = []

    def noted(*arguments: Any) -> float | None:
        found.append(query_cost(*arguments))
        return found[-1]

    monkeypatch.setattr(pytrickle.refresh.choosing, "query_cost", noted)
    create(world, ("grouped", "joined"))
    took(world, "FULL", 10.0)
    world.db.execute(FEW_ROWS)
    assert world.tick() == dict.fromkeys(("grouped", "joined"), "DIFFERENTIAL")
    assert len(found) >= 4 and all(cost and cost > 0 for cost in found)
    world.assert_exact(("grouped", "joined"))


def test_a_delta_that_is_too_long_in_any_case_is_not_even_written(
    world: World, prices: Prices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until a whole refresh turns out to be slow: then its SQL is written, and what that says counts."""
    create(world, ("scalar",))
    took(world, "FULL", 0.02)
    prices.whole = 1_000.0
    written = []
    real = pytrickle.refresh.choosing.plan_differential
    monkeypatch.setattr(pytrickle.refresh.choosing, "least_length", lambda _: 1_000_000)
    monkeypatch.setattr(
        pytrickle.refresh.choosing, "plan_differential", lambda *given: written.append(given) or real(*given)
    )
    world.db.execute(FEW_ROWS)
    assert (world.tick(), written) == ({"scalar": "FULL"}, [])
    for _ in range(2):
        world.db.execute(WHOLE_MEASURED)
    with local_client(world.db.dsn) as (client, engine):
        stranger = World(world.db, client, engine)
        for _ in range(2):
            world.db.execute(FEW_ROWS)
            assert stranger.tick() == {"scalar": "DIFFERENTIAL"}
    assert len(written) == 1


def test_a_join_of_many_little_tables_is_computed_whole_for_its_delta_is_long(db: Database) -> None:
    """To plan the 63 parts of its delta takes a hundred times as long as all six tables to read."""
    tables = [f"little{i}" for i in range(6)]
    for table in tables:
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, k int)")
        db.execute(f"INSERT INTO {table} SELECT g, g % 5 FROM generate_series(1, 24) AS g")
    read = ", ".join(f"{table} AS t{i}" for i, table in enumerate(tables))
    equal = " AND ".join(f"t0.k = t{i}.k AND t{i}.id < 9" for i in range(1, 6))
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("wide", f"SELECT count(*) AS n, min(t0.id) AS m FROM {read} WHERE {equal}")
        client.create_stream_table("narrow", "SELECT t0.id, t1.k FROM little0 AS t0 JOIN little1 AS t1 USING (k)")
        client.tick()
    for _ in range(2):
        for table in tables:
            db.execute(f"UPDATE {table} SET k = (k + 1) % 5 WHERE id % 4 = 1")
        with _after_usual_times(db) as client:
            done = {result.stream_table.removeprefix("public."): result for result in client.tick()}
            assert done["wide"].action == "FULL" and "differential" in done["wide"].reason
            assert done["narrow"].action == "DIFFERENTIAL"
            assert all(result.matches for result in client.verify())
    db.execute("UPDATE little3 SET k = 1 WHERE id = 7")
    with _after_usual_times(db) as client:
        assert client.refresh("wide").action == "DIFFERENTIAL", "a part for the one table that changed is not long"


@contextmanager
def _after_usual_times(db: Database) -> Iterator[Client]:
    """Whatever else the machine did meanwhile, to the next process all refreshes took as long as they usually do."""
    with local_client(db.dsn) as (client, engine):
        world = World(db, client, engine)
        took(world, "FULL", 0.02)
        took(world, "DIFFERENTIAL", 0.005)
        yield client


def test_nothing_is_compiled_to_learn_what_a_query_looks_like(db: Database) -> None:
    """Some questions about a query are asked by one that reads no row, which PostgreSQL may take to be dear."""

    def compiled() -> list[tuple[str]]:
        return connection.execute("SELECT current_setting('jit')").fetchall()

    with db.connect() as connection:
        connection.execute("SET jit = on")
        with server_probe(connection) as probe:
            assert (compiled(), probe.column_types("SELECT 1 AS a")) == ([("off",)], ("integer",))
        assert compiled() == [("on",)]


def test_to_learn_types_nothing_is_made_ready_to_run_but_all_is_planned(world: World) -> None:
    """Memory for a table of as many groups as are expected would be filled with zeros before no row is read."""
    grouped = "SELECT k, v, count(*) AS n FROM public.a GROUP BY k, v"
    plan = "\n".join(line for (line,) in world.db.execute(f"EXPLAIN {NO_ROWS.format(query=grouped)}"))
    assert "One-Time Filter: false" in plan and "Aggregate" not in plan
    with world.db.connect() as connection, server_probe(connection) as probe:
        assert probe.column_types(grouped) == ("integer", "numeric", "bigint")
        with pytest.raises(NotDifferentiable, match="FULL JOIN is only supported"):
            probe.column_types("SELECT a.k FROM public.a FULL JOIN public.b ON a.k < b.k")
