"""Groups that the engine makes of what it joined: few parts of groups travel, not the rows that they are made of."""

import pytest

import pytrickle
from pytrickle.plan.apply_plan import Stage
from tests.conftest import Database
from tests.equivalence.joined_groups import CHANGES, FROM, INSERT_WIDE, QUERIES, TABLES, TEXTS, TOO_WIDE
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import in_parts


def check(db: Database, queries: dict[str, str]) -> None:
    with db.connect() as connection:
        wrong = {name: differences(connection, name, query, True) for name, query in queries.items()}
    assert not any(wrong.values()), wrong


def test_auto_has_groups_made_where_rows_are_joined(db: Database) -> None:
    db.execute(TABLES)
    queries = QUERIES | {"texts": TEXTS}
    with local_client(db.dsn, small_delta_rows=0) as (client, engine):
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        engine.plans.clear()
        for change in CHANGES:
            db.execute(change)
            assert {(result.error, result.reason.count("by PostgreSQL")) for result in client.tick()} == {(None, 0)}
            check(db, queries)
    stages = {(plan.shape.definition.name, plan.placement.stage) for plan in engine.plans}
    # The maximum of a text depends on its collation, which the engine does not know.
    assert stages == {(name, Stage.PARTS) for name in QUERIES} | {("texts", Stage.INPUT)}


def test_whole_tables_are_grouped_at_the_edges_of_their_types(db: Database) -> None:
    db.execute(TABLES)
    for change in CHANGES[:3]:
        db.execute(change)
    with local_client(db.dsn, engine="spark") as (client, engine):
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        assert {plan.placement.stage for plan in engine.plans} == {Stage.STATE_PARTS}
        check(db, QUERIES)
        for change in CHANGES[3:]:
            db.execute(change)
            assert {(result.error, result.reason.count("by PostgreSQL")) for result in client.tick()} == {(None, 0)}
            check(db, QUERIES)


@in_parts(3)
def test_postgresql_groups_at_the_edges_of_what_can_be_summed(db: Database, nth: int) -> None:
    """Stream tables are loaded before each third change, and take in all that come after."""
    db.execute(TABLES)
    loaded: dict[str, str] = {}
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        for number, change in enumerate(CHANGES):
            if number % 3 == nth:
                for name, query in QUERIES.items():
                    client.create_stream_table(f"{name}_{number}", query, refresh_mode="DIFFERENTIAL")
                    loaded[f"{name}_{number}"] = query
                assert {result.error for result in client.tick()} == {None}
            db.execute(change)
            if loaded:
                assert {(result.error, result.action) for result in client.tick()} == {(None, "DIFFERENTIAL")}
            check(db, loaded)


@pytest.mark.parametrize("wide", TOO_WIDE)
def test_auto_leaves_values_that_are_too_wide_for_the_engine_to_postgresql(db: Database, wide: str) -> None:
    db.execute(TABLES)
    with local_client(db.dsn, small_delta_rows=0) as (client, engine):
        client.create_stream_table("numerics", QUERIES["numerics"], refresh_mode="DIFFERENTIAL")
        client.tick()
        db.execute(INSERT_WIDE.format(wide))
        (result,) = client.tick()
        assert [plan.placement.stage for plan in engine.plans] == [Stage.PARTS]
        assert (result.action, result.engine, result.error) == ("DIFFERENTIAL", "postgres", None)
        assert "Spark's decimals are too narrow" in result.reason
        check(db, {"numerics": QUERIES["numerics"]})


def test_sums_of_what_was_too_wide_once_are_postgresql_s_from_then_on(db: Database) -> None:
    """The engine is not asked in vain again; it still joins, and computes what is no numeric."""
    db.execute(TABLES)
    inner = "SELECT d, sum(any_numeric) AS a FROM facts GROUP BY d"
    queries = {name: QUERIES[name] for name in ("numerics", "sums", "by_numbers")}
    queries["inner_sums"] = f"SELECT dims.name, g.a FROM ({inner}) AS g JOIN dims USING (d)"
    queries["running"] = "SELECT id, sum(any_numeric) OVER (PARTITION BY d ORDER BY id) AS a FROM facts"
    queries["lowest"] = f"SELECT DISTINCT ON (name) name, id {FROM} ORDER BY name, any_numeric, id"
    with local_client(db.dsn, engine="spark") as (client, engine):
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        wide = {"numerics", "inner_sums", "running", "lowest"}
        for number in range(3):
            db.execute(f"INSERT INTO facts VALUES ({60 + number}, 1, 1, 1, 1, 1, 1e30)")
            told = {name for name in queries if "too narrow in a refresh before" in client.explain(name).text}
            assert told == (wide if number else set())
            engine.plans.clear()
            results = {result.stream_table: result for result in client.tick()}
            left = {name for name in queries if "by PostgreSQL" in results[f"public.{name}"].reason}
            assert left == (set() if number else wide)
            assert {results[f"public.{name}"].engine for name in queries.keys() - left} == {"spark"}
            assert len(engine.plans) == len(queries)
            check(db, queries)
        stages = {plan.shape.definition.name: plan.placement.stage for plan in engine.plans}
    assert stages == {
        "numerics": Stage.INPUT, "sums": Stage.PARTS, "by_numbers": Stage.PARTS, "inner_sums": Stage.CHANGES,
        "running": Stage.CHANGES, "lowest": Stage.CHANGES,
    }  # fmt: skip
