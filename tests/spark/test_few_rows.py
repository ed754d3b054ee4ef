"""Few rows in Spark: read together, joined and grouped by one task, and nothing of them kept afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.compute.spark import held, run
from pytrickle.compute.spark.jdbc import PinnedReader
from pytrickle.compute.spark.run import SparkEngine
from pytrickle.errors import SparkOutOfMemory
from pytrickle.plan.spark import query as query_module
from tests.conftest import Database
from tests.repeats import first
from tests.spark.test_joins import compare, tick

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.long

TABLES = """
CREATE TABLE customers (id int PRIMARY KEY, nation int, name text, balance numeric);
CREATE TABLE nations (id int, name text);
CREATE TABLE orders (id int PRIMARY KEY, customer int, total numeric(12,2), placed date);
CREATE TABLE closed (customer int);
INSERT INTO nations SELECT n, 'nation ' || n FROM generate_series(1, 5) AS n;
INSERT INTO customers SELECT n, nullif(n % 6, 0), 'customer ' || n, n / 8.0 FROM generate_series(1, 60) AS n;
INSERT INTO orders
SELECT n, nullif(n % 70, 0), n * 1.25, date '2026-01-01' + n % 30 FROM generate_series(1, 600) AS n;
INSERT INTO closed VALUES (3), (3), (NULL), (64);
ANALYZE customers, nations, orders, closed
"""
QUERIES = {
    "per_nation": """
        SELECT n.name, count(*) AS orders, sum(o.total) AS total, avg(c.balance) AS balance
        FROM orders AS o JOIN customers AS c ON c.id = o.customer JOIN nations AS n ON n.id = c.nation
        GROUP BY n.name""",
    "open": """
        SELECT c.name, o.total FROM customers AS c JOIN orders AS o ON o.customer = c.id
        WHERE NOT EXISTS (SELECT FROM closed WHERE closed.customer = c.id)""",
    "largest": """
        SELECT o.id, o.total FROM orders AS o JOIN customers AS c ON c.id = o.customer
        WHERE o.total = (
            SELECT max(i.total) FROM orders AS i JOIN closed AS d USING (customer) WHERE i.customer = c.id)""",
    "everyone": "SELECT c.name, o.placed FROM customers AS c LEFT JOIN orders AS o ON o.customer = c.id",
    "pairs": "SELECT n.name, d.customer FROM nations AS n CROSS JOIN closed AS d",
    "same": "SELECT a.name, b.id FROM customers AS a JOIN customers AS b ON a.nation IS NOT DISTINCT FROM b.nation",
}
CHANGES = (
    "UPDATE orders SET total = total + 1, customer = customer + 1 WHERE id % 50 = 0",
    "INSERT INTO closed SELECT n FROM generate_series(1, 60, 9) AS n; DELETE FROM closed WHERE customer = 3",
    """UPDATE customers SET nation = NULL WHERE id % 11 = 0; UPDATE nations SET name = 'none' WHERE id > 3;
    DELETE FROM orders WHERE id % 20 = 3; INSERT INTO closed VALUES (NULL), (7);
    INSERT INTO customers VALUES (61, 2, NULL, 'NaN')""",
    "TRUNCATE closed; INSERT INTO orders VALUES (601, 61, NULL, NULL), (602, NULL, 'NaN', 'infinity')",
)


@contextmanager
def counted_reads() -> Iterator[list[str]]:
    """List the queries that Spark reads through connections while the block runs."""
    queries: list[str] = []
    read, read_ranges = PinnedReader.read, PinnedReader.read_ranges

    def counted(reader: PinnedReader, query: str, *arguments: Any) -> Any:
        queries.append(query)
        return read(reader, query, *arguments)

    def counted_ranges(reader: PinnedReader, query: str, *arguments: Any) -> Any:
        queries.append(query)
        return read_ranges(reader, query, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PinnedReader, "read", counted)
        patch.setattr(PinnedReader, "read_ranges", counted_ranges)
        yield queries


@pytest.mark.parametrize("owned", first(1, [True, False]), ids=["our session", "the user's"])
def test_few_rows_are_read_at_once_and_give_what_postgresql_gives(
    db: Database, spark: SparkSession, owned: bool
) -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, None if owned else spark, engine="spark") as client:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        for change in CHANGES:
            with db.connect() as connection:
                connection.execute(change.encode())
            for name in QUERIES:
                with counted_reads() as queries:
                    result = client.refresh(name)
                expected = ("spark", 1) if result.action == "DIFFERENTIAL" else (None, 0)
                assert (result.engine, len(queries)) == expected, (result, queries)
            compare(db, QUERIES)
    contexts: Any = spark.sparkContext._jsc
    assert contexts.getPersistentRDDs().isEmpty()


@pytest.mark.parametrize(("most", "held_as"), [(held.MOST_VALUES, "LocalRelation"), (3, "InMemoryRelation")])
def test_few_rows_that_are_computed_from_each_other_are_values_in_the_plan(
    db: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, most: int, held_as: str
) -> None:
    """The plan of a table in memory would have in it those of all tables that it was computed from."""
    result_of, plans = run.result_of, list[str]()

    @contextmanager
    def seen(*arguments: Any) -> Iterator[DataFrame]:
        with result_of(*arguments) as frame:
            plan: Any = frame._jdf
            plans.append(plan.queryExecution().optimizedPlan().toString())
            yield frame

    monkeypatch.setattr(run, "result_of", seen)
    monkeypatch.setattr(held, "MOST_VALUES", most)
    monkeypatch.setattr(query_module, "MANY_READS", 1)
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        client.create_stream_table("largest", QUERIES["largest"], refresh_mode="DIFFERENTIAL")
        client.refresh("largest")
        for change in CHANGES:
            with db.connect() as connection:
                connection.execute(change.encode())
            assert client.refresh("largest").engine == "spark"
            assert client.verify("largest").matches
    assert len(plans) == 1 + len(CHANGES)
    assert all(held_as in plan for plan in plans)
    assert held_as == "InMemoryRelation" or not any("InMemoryRelation" in plan for plan in plans)


def test_settings_for_few_rows_are_those_of_a_session_beside(db: Database, spark: SparkSession) -> None:
    """Another lane may compute many rows at the same time."""
    adaptive = "spark.sql.adaptive.enabled"
    before = spark.conf.get(adaptive)
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, engine="spark") as client:
        client.create_stream_table("open", QUERIES["open"])
        client.refresh("open")
        engine: Any = client._engine
        assert engine.session.conf.get(adaptive) == "true"
        assert engine.of_few.conf.get(adaptive) == "false"
    assert spark.conf.get(adaptive) == before


def test_what_did_not_fit_is_computed_by_several_tasks_from_then_on(
    db: Database, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statistics may be old, so that a table has more rows than expected."""
    compute, few = SparkEngine.compute, list[bool]()

    def limited(engine: SparkEngine, *arguments: Any) -> Any:
        few.append(engine.few)
        if engine.few:
            raise SparkOutOfMemory("Spark ran out of memory.")
        return compute(engine, *arguments)

    monkeypatch.setattr(SparkEngine, "compute", limited)
    with db.connect() as connection:
        connection.execute(TABLES)
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        client.create_stream_table("open", QUERIES["open"])
        with pytest.raises(SparkOutOfMemory):
            client.refresh("open")
        client.refresh("open")
        assert few == [True, False]
        assert client.verify("open").matches
