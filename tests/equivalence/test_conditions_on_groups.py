"""Random conditions on inner groups, after random changes: Spark and its double keep what PostgreSQL keeps."""

from random import Random
from typing import TYPE_CHECKING

import pytest

import pytrickle
from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.conditions import query
from tests.equivalence.local_engine import local_client
from tests.equivalence.operations import TABLES, VALUES
from tests.equivalence.test_operations import changes
from tests.repeats import first
from tests.spark.test_joins import compare
from tests.spark.test_operations import in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def check(db: Database, client: Client, seed: int, number: int, batches: int) -> None:
    """Compare random queries after random changes; of every delta and of every whole the engine computes the groups."""
    chance = Random(seed)
    queries = {f"st{i}": query(chance) for i in range(number)}
    with db.connect() as connection:
        connection.execute(TABLES)
        for table in "ac":
            connection.execute(f"INSERT INTO {table} VALUES {', '.join(VALUES)}".encode())
    for name, text in queries.items():
        client.create_stream_table(name, text, refresh_mode="DIFFERENTIAL")
    for batch in range(batches + 1):
        # Changes that cancel each other in all that a query reads leave nothing to compute.
        changed = [name for name in queries if batch == 0 or client.explain(name).data["terms"]]
        assert [queries[name] for name in changed if "aggregate" not in in_spark(client, name)] == []
        results = client.tick()
        assert {(result.engine, result.error) for result in results} <= {("spark", None), (None, None)}
        told = [result.reason for result in results if result.stream_table.removeprefix("public.") in changed]
        assert [reason for reason in told if "PostgreSQL" in reason] == []
        compare(db, queries)
        with db.connect() as connection:
            connection.execute(changes(chance).encode())


@pytest.mark.parametrize("seed", first(1, range(40), then=3))
def test_the_double_keeps_the_groups_that_postgresql_keeps(db: Database, seed: int) -> None:
    with local_client(db.dsn, engine="spark") as (client, _):
        check(db, client, seed, 8, 3)


def test_a_result_too_wide_for_a_condition_is_left_to_postgresql_loudly(db: Database) -> None:
    """Spark computes such an average, but compares no more than 13 digits before its point."""
    grouped = "(SELECT t, sum(u) AS s, avg(u) AS m FROM a GROUP BY t) AS g"
    query = {"st": f"SELECT c.x, g.s, g.m FROM {grouped} JOIN c ON c.t = g.t WHERE g.m > 1 AND g.s > 1"}
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute("INSERT INTO a (t, u) VALUES ('a', 2), ('b', 3)")
        connection.execute("INSERT INTO c (t, x) VALUES ('a', 1), ('b', 2)")
    with local_client(db.dsn, engine="spark") as (client, _):
        client.create_stream_table("st", query["st"], refresh_mode="DIFFERENTIAL")
        client.tick()
        for value, engine in (("4", "spark"), ("5e13", "postgres")):
            db.execute(f"INSERT INTO a (t, u) VALUES ('b', {value})")
            (result,) = client.tick()
            assert (result.action, result.error, result.engine) == ("DIFFERENTIAL", None, engine), result.reason
            assert ("by PostgreSQL, since Spark's decimals are too narrow" in result.reason) is (engine == "postgres")
            compare(db, query)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_sum_that_is_only_compared_is_left_to_postgresql_where_it_is_too_wide(db: Database, sign: int) -> None:
    """Each number fits, and so does the sum of 100 of them; no more than 18 digits before its point are compared."""
    grouped = "(SELECT t, sum(u) AS s FROM a GROUP BY t) AS g"
    query = {"st": f"SELECT c.x, g.t FROM {grouped} JOIN c ON c.t = g.t WHERE g.s > 1"}
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute("INSERT INTO a (t, u) VALUES ('a', 2), ('b', 3)")
        connection.execute("INSERT INTO c (t, x) VALUES ('a', 1), ('b', 2)")
    with local_client(db.dsn, engine="spark") as (client, _):
        client.create_stream_table("st", query["st"], refresh_mode="DIFFERENTIAL")
        client.tick()
        for engine in ("spark", "postgres"):
            db.execute(f"INSERT INTO a (t, u) SELECT 'b', {sign} * 9e15 FROM generate_series(1, 100)")
            (result,) = client.tick()
            assert (result.action, result.error, result.engine) == ("DIFFERENTIAL", None, engine), result.reason
            compare(db, query)


@pytest.mark.long
@pytest.mark.parametrize("seed", first(0, range(1000, 1006), then=1))
def test_spark_keeps_the_groups_that_postgresql_keeps(db: Database, spark: "SparkSession", seed: int) -> None:
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        check(db, client, seed, 3, 2)
