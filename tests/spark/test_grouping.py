"""Groups that Spark makes of what it joined: exact sums, groups in several parts, and what its decimals cannot hold."""

from typing import TYPE_CHECKING

import pytest

import pytrickle
from pytrickle.compute.spark import run
from pytrickle.plan.apply_plan import Stage
from tests.conftest import Database
from tests.equivalence.joined_groups import CHANGES, FROM, INSERT_WIDE, QUERIES, TABLES, TEXTS, TOO_WIDE
from tests.repeats import first
from tests.spark.test_joins import compare, tick

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.long


@pytest.mark.parametrize("engine", first(0, ("auto", "spark"), then=1))
def test_groups_made_by_spark_are_those_of_postgresql(db: Database, spark: "SparkSession", engine: str) -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine=engine, small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        for change in CHANGES:
            with db.connect() as connection:
                connection.execute(change.encode())
            explained = [client.explain(name).data for name in QUERIES]
            assert {data["stage"] for data in explained if data["spark_reads"]} == {Stage.PARTS.value}
            assert any(data["spark_reads"] for data in explained)
            tick(client, "DIFFERENTIAL", "NO_DATA")
            compare(db, QUERIES)


def test_spark_computes_whole_refreshes_where_it_is_the_engine(db: Database, spark: "SparkSession") -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute(CHANGES[0].encode())
    rows = {
        "joined": f"SELECT id, name, any_numeric {FROM}",
        "alone": "SELECT s, sum(price) AS p FROM facts GROUP BY s",
    }
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        for name, query in (QUERIES | rows).items():
            client.create_stream_table(name, query)
        stages = {name: client.explain(name).data["stage"] for name in QUERIES | rows}
        assert stages == dict.fromkeys([*QUERIES, "alone"], Stage.STATE_PARTS.value) | {"joined": Stage.CONTENT.value}
        assert all(client.explain(name).data["spark_reads"] for name in QUERIES | rows)
        assert {(result.action, result.engine) for result in client.tick()} == {("FULL", "spark")}
        compare(db, QUERIES | rows)
        db.execute("UPDATE facts SET price = 1, any_numeric = 2.50 WHERE id % 3 = 0")
        tick(client, "DIFFERENTIAL")
        compare(db, QUERIES | rows)


def test_changes_of_small_tables_are_joined_and_grouped_without_a_shuffle(
    db: Database, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    collect, plans = run._collect, []

    def told(frame: "DataFrame") -> "pa.Table":
        rows = collect(frame)
        plans.append(frame._jdf.queryExecution().executedPlan().toString())
        return rows

    monkeypatch.setattr(run, "_collect", told)
    db.execute("CREATE TABLE a AS SELECT n % 10 AS k, n AS x FROM generate_series(1, 30) AS n")
    db.execute("CREATE TABLE b AS SELECT k, k % 3 AS g FROM generate_series(0, 9) AS k")
    query = "SELECT b.g, count(*) AS n, sum(a.x) AS s FROM a JOIN b ON b.k = a.k GROUP BY b.g"
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        client.create_stream_table("sums", query, refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        db.execute("UPDATE a SET x = x + 1 WHERE k = 1")
        tick(client, "DIFFERENTIAL")
        compare(db, {"sums": query})
    _, delta = plans
    assert "BroadcastHashJoin" in delta and "HashAggregate" in delta
    assert "Exchange hashpartitioning" not in delta


def test_what_spark_cannot_group_exactly_it_only_joins(db: Database, spark: "SparkSession") -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        client.create_stream_table("texts", TEXTS, refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        db.execute("UPDATE facts SET note = 'é' WHERE id < 5")
        assert client.explain("texts").data["stage"] == Stage.INPUT.value
        tick(client, "DIFFERENTIAL")
        compare(db, {"texts": TEXTS})


@pytest.mark.parametrize("wide", TOO_WIDE)
def test_a_value_too_wide_for_spark_is_left_to_postgresql_loudly(
    db: Database, spark: "SparkSession", caplog: pytest.LogCaptureFixture, wide: str
) -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        client.create_stream_table("numerics", QUERIES["numerics"], refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        db.execute(INSERT_WIDE.format(wide))
        (result,) = client.tick()
        assert (result.action, result.error) == ("DIFFERENTIAL", None)
        assert "by PostgreSQL, since Spark's decimals are too narrow" in result.reason
        assert "public.numerics is refreshed by PostgreSQL" in caplog.text
        compare(db, {"numerics": QUERIES["numerics"]})
