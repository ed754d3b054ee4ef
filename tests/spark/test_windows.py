"""Windows and first rows of keys that Spark computes: over ties, NULL, edge values, copies of rows, and two tables."""

from typing import TYPE_CHECKING

import pytest

import pytrickle
from tests.conftest import Database
from tests.equivalence.operations import CHANGES, fill
from tests.equivalence.window_operations import LEFT_TO_POSTGRES, QUERIES, SETTLED
from tests.repeats import in_parts
from tests.spark.test_joins import compare, tick
from tests.spark.test_operations import in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


@pytest.fixture
def tables(db: Database) -> Database:
    fill(db)
    return db


@pytest.mark.timeout(1800)
@in_parts(6)
def test_windows_in_spark_equal_those_of_postgresql_after_every_change(
    tables: Database, spark: "SparkSession", caplog: pytest.LogCaptureFixture, nth: int
) -> None:
    """What PostgreSQL leaves open between rows that tie is settled alike in both."""
    queries = {name: query for name, (query, _) in list(QUERIES.items())[nth::6]}
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query, refresh_mode="DIFFERENTIAL")
            client.create_stream_table(f"pg_{name}", query, refresh_mode="DIFFERENTIAL", engine="postgres")
        for change in ("", *CHANGES):
            with tables.connect() as connection:
                connection.execute(change.encode())
            assert [name for name in queries if QUERIES[name][1] not in in_spark(client, f"st_{name}")] == []
            results = client.tick()
            done = {(each.error, each.stream_table.partition(".")[2][:2], each.engine) for each in results}
            assert done == {(None, "st", "spark"), (None, "pg", "postgres")}
            compare(tables, {f"st_{name}": f"TABLE pg_{name}" for name in queries})
            compare(tables, {f"st_{name}": queries[name] for name in queries if name in SETTLED})
        assert "is refreshed by PostgreSQL" not in caplog.text


def test_a_window_that_spark_cannot_compute_exactly_is_computed_by_postgresql(
    tables: Database, spark: "SparkSession"
) -> None:
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in LEFT_TO_POSTGRES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        tick(client, "FULL")
        for change in CHANGES:
            with tables.connect() as connection:
                connection.execute(change.encode())
            nothing: dict[str, set[str]] = {name: set() for name in LEFT_TO_POSTGRES}
            assert {name: in_spark(client, name) for name in LEFT_TO_POSTGRES} == nothing
            tick(client, "DIFFERENTIAL")
            compare(tables, LEFT_TO_POSTGRES)
