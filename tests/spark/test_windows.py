"""Windows and first rows of keys that Spark computes: over ties, NULL, edge values, copies of rows, and two tables."""

from typing import TYPE_CHECKING

import pytest

import pytrickle
from tests.conftest import Database
from tests.equivalence.operations import CHANGES, TABLES, VALUES
from tests.equivalence.runs import ask_for_joined_rows_only
from tests.repeats import first
from tests.spark.test_joins import compare, tick
from tests.spark.test_operations import in_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

OVER = "PARTITION BY i ORDER BY"
LATERAL = "SELECT c.x, f.n, f.m FROM c CROSS JOIN LATERAL (SELECT a.n, a.m FROM a WHERE a.i = c.i ORDER BY {by}) AS f"
# Each query with the operation that Spark computes of it.
QUERIES = {
    "ranks": (
        f"SELECT i, x, rank() OVER ({OVER} x) AS r, dense_rank() OVER ({OVER} d DESC, b) AS s,"
        f" count(*) OVER (PARTITION BY i) AS k, count(n) OVER ({OVER} m NULLS FIRST) AS kn FROM a",
        "window",
    ),
    "numbers": (
        f"SELECT i, t, n, row_number() OVER ({OVER} n) AS r, row_number() OVER ({OVER} u DESC NULLS LAST) AS s FROM a",
        "window",
    ),
    "kept": ("SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY t ORDER BY x) AS r FROM a) AS w WHERE r <= 2",
        "window"),
    "joined": (
        "SELECT w.*, c.x AS cx FROM (SELECT i, n, rank() OVER (PARTITION BY t ORDER BY n DESC) AS r FROM a) AS w"
        " JOIN c ON c.i = w.r WHERE w.i > 0",
        "window",
    ),
    "totals": (
        f"SELECT i, x, n, sum(i) OVER ({OVER} x) AS si, sum(n) OVER ({OVER} x) AS sn, avg(u) OVER ({OVER} d) AS mu,"
        f" sum(x) OVER (PARTITION BY i) AS sx, min(x) OVER ({OVER} n) AS l, avg(i) OVER ({OVER} b) AS mi FROM a",
        "window",
    ),
    "frames": (
        f"SELECT i, u, sum(n) OVER ({OVER} x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s,"
        f" count(*) OVER ({OVER} m ROWS 2 PRECEDING) AS k, max(x) OVER ({OVER} d ROWS BETWEEN 1 FOLLOWING AND"
        f" UNBOUNDED FOLLOWING) AS h, sum(u) OVER ({OVER} x RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS f"
        " FROM a",
        "window",
    ),
    "shifted": (
        f"SELECT i, t, lag(t) OVER ({OVER} x) AS a, lead(n, 2) OVER ({OVER} x DESC) AS b, lag(m) OVER ({OVER} x) AS c,"
        f" first_value(y) OVER ({OVER} d) AS f FROM a",
        "window",
    ),
    "by_moments": ("SELECT x, row_number() OVER (PARTITION BY m, d ORDER BY b DESC, y, m) AS r FROM a", "window"),
    "over_two_tables": (
        "SELECT a.t, c.x, row_number() OVER (PARTITION BY a.t ORDER BY c.x) AS r FROM a JOIN c ON a.i = c.i",
        "window",
    ),
    "over_partners": (
        "SELECT a.i, c.n, row_number() OVER (PARTITION BY a.i ORDER BY c.d) AS r FROM a LEFT JOIN c ON a.x = c.x",
        "window",
    ),
    "grouped": (
        "SELECT t, r, count(*) AS k FROM (SELECT t, rank() OVER (PARTITION BY t ORDER BY x) AS r FROM a) AS w"
        " GROUP BY t, r",
        "window",
    ),
    "first": ("SELECT DISTINCT ON (i) i, t, n, u FROM a ORDER BY i, x DESC", "distinct on"),
    "first_kept": (
        "SELECT c.x, f.* FROM (SELECT DISTINCT ON (t) t, i, n FROM a ORDER BY t, n) AS f JOIN c ON c.t = f.t"
        " WHERE f.i > 1",
        "distinct on",
    ),
    "limited": (LATERAL.format(by="a.x LIMIT 2"), "limit"),
    "skipped": (LATERAL.format(by="a.n DESC NULLS LAST OFFSET 1"), "limit"),
    "with_ties": (LATERAL.format(by="a.b FETCH FIRST ROW WITH TIES"), "limit"),
}  # fmt: skip
# No order that the query leaves open shows in these.
SETTLED = ("ranks", "totals", "joined", "grouped", "with_ties")
LEFT_TO_POSTGRES = {
    "alone": "SELECT i, rank() OVER (ORDER BY x) AS r FROM a",
    "by_text": "SELECT i, rank() OVER (PARTITION BY i ORDER BY t) AS r FROM a",
    "partitions": "SELECT i, rank() OVER (PARTITION BY i ORDER BY x) AS r, count(*) OVER (PARTITION BY t, i) AS k"
    " FROM a",
    "fractions": "SELECT i, percent_rank() OVER (PARTITION BY i ORDER BY x) AS r FROM a",
    "kept_by_both": "SELECT * FROM (SELECT *, rank() OVER (PARTITION BY i ORDER BY n) AS r FROM a) AS w WHERE r < x",
    "excluded": "SELECT i, sum(x) OVER (PARTITION BY i ORDER BY n RANGE UNBOUNDED PRECEDING EXCLUDE TIES) AS s FROM a",
}


@pytest.fixture
def tables(db: Database) -> Database:
    with db.connect() as connection:
        connection.execute(TABLES)
        for table in "ac":
            connection.execute(f"INSERT INTO {table} VALUES {', '.join(VALUES)}".encode())
    return db


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("asked", first(1, (False, True), then=0))
def test_windows_in_spark_equal_those_of_postgresql_after_every_change(
    tables: Database,
    spark: "SparkSession",
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    asked: bool,
) -> None:
    """What PostgreSQL leaves open between rows that tie is settled alike in both; `asked` reads touched rows only."""
    if asked:
        ask_for_joined_rows_only(monkeypatch)
    queries = {name: query for name, (query, _) in QUERIES.items()}
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query, refresh_mode="DIFFERENTIAL")
            client.create_stream_table(f"pg_{name}", query, refresh_mode="DIFFERENTIAL", engine="postgres")
        for change in ("", *CHANGES):
            with tables.connect() as connection:
                connection.execute(change.encode())
            found = [name for name, (_, operation) in QUERIES.items() if operation in in_spark(client, f"st_{name}")]
            assert found if asked else found == list(QUERIES)
            done = {
                (result.error, result.stream_table.partition(".")[2][:2], result.engine) for result in client.tick()
            }
            assert done == {(None, "st", "spark"), (None, "pg", "postgres")}
            compare(tables, {f"st_{name}": f"TABLE pg_{name}" for name in queries})
            compare(tables, {f"st_{name}": queries[name] for name in SETTLED})
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
