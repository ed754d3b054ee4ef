"""Groups that Spark makes of what it joined: exact sums, groups in several parts, and what its decimals cannot hold."""

from typing import TYPE_CHECKING

import pytest

import pytrickle
from pytrickle.plan.apply_plan import Stage
from tests.conftest import Database
from tests.spark.test_joins import compare, tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

TABLES = """
    CREATE TABLE facts (id int PRIMARY KEY, d int, i int, b bigint, s smallint, price numeric(10,2),
        any_numeric numeric, note text);
    CREATE TABLE dims (d int PRIMARY KEY, name text, rate numeric);
    INSERT INTO dims VALUES (1, 'one', 1.0), (2, 'two', 1.00), (3, NULL, 'NaN');
    INSERT INTO facts SELECT n, n % 4, n - 20, n * 900000000000000, n % 5 - 2, n / 7.0, n / 8.0 - 3, nullif('', 'x')
    FROM generate_series(1, 40) AS n"""
FROM = "FROM facts JOIN dims USING (d)"
QUERIES = {
    "sums": f"SELECT name, sum(i) AS i, sum(b) AS b, avg(s) AS s, count(*) AS n {FROM} GROUP BY name",
    "numerics": f"SELECT name, sum(price) AS p, avg(any_numeric) AS a, sum(rate) AS r {FROM} GROUP BY name",
    "by_rate": f"SELECT sum(any_numeric) AS a, count(note) AS c {FROM} GROUP BY rate",
    "everything": f"SELECT sum(price) AS p, min(i) AS least, max(b) AS most, count(any_numeric) AS n {FROM}",
    "extremes": f"SELECT name, min(s) AS least, max(i) AS most, sum(any_numeric) AS a {FROM} GROUP BY name",
}
TEXTS = f"SELECT name, max(note) AS note, sum(i) AS i {FROM} GROUP BY name"
CHANGES = (
    "INSERT INTO facts VALUES (50, 1, 2147483647, 9223372036854775807, 3, 99999999.99, 1.000000000001, 'a'),"
    " (51, 1, -2147483648, 9223372036854775807, NULL, NULL, -1e15, NULL),"
    " (52, 2, NULL, NULL, 0, 'NaN', 'Infinity', 'b'), (53, 2, 1, 1, 1, 1, '-Infinity', 'c'),"
    " (54, 1, 1, 1, 1, 0.10, 5.00, 'd')",
    "UPDATE facts SET any_numeric = any_numeric + 0.000 WHERE id < 10; UPDATE dims SET rate = 1.000 WHERE d = 1",
    "DELETE FROM facts WHERE id IN (50, 52, 53); UPDATE facts SET d = 3 WHERE id = 54",
    "DELETE FROM dims WHERE d = 2; INSERT INTO dims VALUES (4, 'two', 2)",
)


def test_groups_made_by_spark_are_those_of_postgresql(db: Database, spark: "SparkSession") -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
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


@pytest.mark.parametrize("wide", ["1e16", "0.0000000000001", "-123456789012345678901234567890.5"])
def test_a_value_too_wide_for_spark_is_left_to_postgresql_loudly(
    db: Database, spark: "SparkSession", caplog: pytest.LogCaptureFixture, wide: str
) -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        client.create_stream_table("numerics", QUERIES["numerics"], refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        db.execute(f"INSERT INTO facts VALUES (60, 1, 1, 1, 1, 1, {wide})")
        (result,) = client.tick()
        assert (result.action, result.error) == ("DIFFERENTIAL", None)
        assert "by PostgreSQL, since Spark's decimals are too narrow" in result.reason
        assert "public.numerics is refreshed by PostgreSQL" in caplog.text
        compare(db, {"numerics": QUERIES["numerics"]})
