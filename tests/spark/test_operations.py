"""Operations that Spark computes: distinct rows, semijoins, set operations and groups, over edge values and ties."""

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.plan.placement import Place
from tests.conftest import Database
from tests.equivalence.operations import CHANGES, QUERIES, fill
from tests.equivalence.quotients import expected, given, pairs, quotients
from tests.equivalence.runs import ask_for_joined_rows_only
from tests.repeats import first, in_parts
from tests.spark.test_joins import compare, tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

# Of the conditions on groups, which Spark plans for seconds each, those that differ most; the double plays all of them.
SOME = {"kept_expression", "kept_nan", "compared_mean_0", "compared_less"}
PLAYED = {name: each for name, each in QUERIES.items() if name in SOME or not name.startswith(("kept_", "compared_"))}
PARTS = 9
LEFT_TO_POSTGRES = {
    "scales": "SELECT DISTINCT CAST(n AS numeric) AS n FROM a",
    "floats": "SELECT DISTINCT CAST(x AS double precision) AS f FROM a",
    "above": "SELECT g.n, c.x FROM (SELECT i, count(*) AS n FROM a GROUP BY i) AS g JOIN c ON c.i = g.i"
    " WHERE g.n % 2 = 1",
    "means": "SELECT g.m, c.x FROM (SELECT i, avg(n / i) AS m FROM a GROUP BY i) AS g JOIN c ON c.i = g.i",
}


def parts(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield part
    for below in part["parts"]:
        yield from parts(below)


def in_spark(client: pytrickle.Client, name: str) -> set[str]:
    """Name the operations that Spark computes of the next refresh, whatever their version."""
    return parts_in_spark(client.explain(name).data)


def parts_in_spark(explained: dict[str, Any]) -> set[str]:
    """Name the operations that an explanation says Spark computes."""
    found = [part for part in parts(explained["tree"]) if part["place"] == "Spark" and part["parts"]]
    return {part["part"].removeprefix("Δ").removeprefix("old ").removeprefix("new ") for part in found[1:]}


@pytest.fixture
def tables(db: Database) -> Database:
    fill(db)
    return db


# Beside other suites each part may take more than the ten minutes of any other test.
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("asked", first(1, (False, True), then=0))
@in_parts(PARTS)
def test_operations_in_spark_equal_those_of_postgresql_after_every_change(
    tables: Database,
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asked: bool,
    nth: int,
) -> None:
    """Tables are read whole, or asked for the rows that have a key of a change; the double plays all at once."""
    if asked:
        ask_for_joined_rows_only(monkeypatch)
    played = dict(list(PLAYED.items())[nth::PARTS])
    queries = {name: query for name, (query, _) in played.items()}
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query, refresh_mode="DIFFERENTIAL")
        assert {name: in_spark(client, f"st_{name}") for name in played} == {n: ops for n, (_, ops) in played.items()}
        tick(client, "FULL")
        compare(tables, {f"st_{name}": query for name, query in queries.items()})
        for change in CHANGES:
            with tables.connect() as connection:
                connection.execute(change.encode())
            found = {name: in_spark(client, f"st_{name}") for name in played}
            if not asked:
                assert found == {name: operations for name, (_, operations) in played.items()}
            assert any(found.values())
            tick(client, "DIFFERENTIAL", "NO_DATA")
            compare(tables, {f"st_{name}": query for name, query in queries.items()})
        assert "is refreshed by PostgreSQL" not in caplog.text


def test_what_spark_cannot_compare_exactly_is_computed_by_postgresql(tables: Database, spark: "SparkSession") -> None:
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in LEFT_TO_POSTGRES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        for change in CHANGES:
            with tables.connect() as connection:
                connection.execute(change.encode())
            places = {name: client.explain(name).data["place"] for name in LEFT_TO_POSTGRES}
            nothing: dict[str, set[str]] = {name: set() for name in LEFT_TO_POSTGRES}
            assert {name: in_spark(client, name) for name in LEFT_TO_POSTGRES} == nothing
            assert (places["above"], places["means"]) == (Place.SPARK.value, Place.SPARK.value)
            tick(client, "DIFFERENTIAL")
            compare(tables, LEFT_TO_POSTGRES)


def test_a_quotient_in_spark_has_the_digits_of_postgresql(db: Database, spark: "SparkSession") -> None:
    values = pairs(Random(1), 100)
    found = sorted(tuple(row) for row in spark.sql(quotients(given(values, "bigint"))).collect())
    with db.connect() as connection:
        wanted = sorted(connection.execute(expected(values).encode()).fetchall())
    assert [(value, *both) for value, *both in zip(values, found, wanted, strict=True) if both[0] != both[1]] == []


@pytest.mark.parametrize("wide", ["1e16", "0.0000000000001"])
def test_a_value_too_wide_for_inner_groups_is_left_to_postgresql_loudly(
    tables: Database, spark: "SparkSession", caplog: pytest.LogCaptureFixture, wide: str
) -> None:
    query = {"st": QUERIES["of_any_scale"][0]}
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        client.create_stream_table("st", query["st"], refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        tables.execute(f"INSERT INTO a (t, u) VALUES ('a', {wide})")
        assert in_spark(client, "st") == {"aggregate"}
        (result,) = client.tick()
        assert (result.action, result.error, result.engine) == ("DIFFERENTIAL", None, "postgres")
        assert "by PostgreSQL, since Spark's decimals are too narrow" in result.reason
        assert "public.st is refreshed by PostgreSQL" in caplog.text
        compare(tables, query)
