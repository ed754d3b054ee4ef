"""What Spark writes to a staging table: every part of it counts once, and its texts are read as they were written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.compute.spark.run import SparkEngine
from pytrickle.plan import placement
from tests.conftest import Database
from tests.spark.test_joins import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

TABLES = """
CREATE TABLE t (id int PRIMARY KEY, k int, length interval, lengths interval[]);
CREATE TABLE u (k int PRIMARY KEY, name text);
INSERT INTO u VALUES (1, 'one'), (2, NULL);
INSERT INTO t SELECT i, i % 3, i * interval '-1 day -2:03', ARRAY[i * interval '-1 day -1:00', NULL]
FROM generate_series(1, 40) AS i;
ANALYZE t, u
"""
QUERIES = {
    "copied": "SELECT k, length, lengths FROM t",
    "joined": "SELECT u.name, t.length, t.lengths FROM t JOIN u USING (k)",
    "grouped": "SELECT name, length, count(*) AS n, sum(id) AS s FROM t JOIN u USING (k) GROUP BY name, length",
}
CHANGE = "UPDATE t SET length = -length WHERE id % 2 = 0; UPDATE u SET name = name || '!'; DELETE FROM t WHERE id < 9"
STYLE = "-c IntervalStyle=sql_standard"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The staging tables that Spark writes all rows to, however few."""
    tables: list[str] = []
    deliver = SparkEngine._deliver

    def noted(engine: SparkEngine, *given: Any) -> Any:
        tables.append(str(given[-1]))
        return deliver(engine, *given)

    monkeypatch.setattr(placement, "BULK_ROWS", 0)
    monkeypatch.setattr(SparkEngine, "_deliver", noted)
    yield tables
    assert tables and "None" not in tables


def play(db: Database, spark: SparkSession, options: str = "") -> None:
    with db.connect() as connection:
        connection.execute(TABLES)
    with db.connect(options=options) as connection:
        for name, query in QUERIES.items():
            connection.execute("SELECT pgtrickle.create_stream_table(%s, %s)", (name, query))
    with pytrickle.connect(db.dsn, spark, engine="spark") as client:
        for action in ("FULL", "DIFFERENTIAL"):
            done = {(result.action, result.engine, result.error) for result in client.tick()}
            assert done == {(action, "spark", None)}
            compare(db, QUERIES)
            with db.connect() as connection:
                connection.execute(CHANGE)


def test_what_a_task_wrote_twice_counts_once(
    db: Database, spark: SparkSession, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Spark repeats a task whose executor was lost after it had committed, or runs a second one for speed."""
    deliver = SparkEngine._deliver

    def repeated(engine: SparkEngine, *given: Any) -> Any:
        deliver(engine, *given)
        return deliver(engine, *given)

    monkeypatch.setattr(SparkEngine, "_deliver", repeated)
    play(db, spark)
    assert len(written) == 4 * len(QUERIES)


def test_a_task_that_still_writes_does_not_keep_the_rows_from_being_applied(
    db: Database, spark: SparkSession, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the slower one of two that Spark runs for speed, or one on a machine that hangs."""
    deliver = SparkEngine._deliver

    def still_writing(engine: SparkEngine, *given: Any) -> Any:
        staging = deliver(engine, *given)
        writer = db.connect(autocommit=False)
        writer.execute(f"INSERT INTO {staging} SELECT * FROM {staging}".encode())
        return staging

    monkeypatch.setattr(SparkEngine, "_deliver", still_writing)
    play(db, spark)
    assert db.value("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'staging%'") == 2 * len(QUERIES)


def test_intervals_are_read_in_the_style_that_they_were_written_in(
    db: Database, spark: SparkSession, written: list[str]
) -> None:
    play(db, spark, STYLE)
