"""Operations that Spark computes: distinct rows, semijoins, set operations and groups, over edge values and ties."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.plan.placement import Place
from tests.conftest import Database
from tests.equivalence.runs import ask_for_joined_rows_only
from tests.spark.test_joins import compare, tick

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

TABLES = """
CREATE TABLE a (i int, t text, d date, m timestamptz, n numeric(8,2), b boolean, y bytea, x bigint);
CREATE TABLE c (i int, t text, d date, m timestamptz, n numeric(8,2), b boolean, y bytea, x bigint);
"""
VALUES = (
    "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    "(1, '', 'infinity', 'infinity', 'NaN', true, '\\x', 1)",
    "(1, '', 'infinity', 'infinity', 'NaN', true, '\\x', 1)",
    "(2, 'a', '-infinity', '-infinity', 1.5, false, '\\x00', NULL)",
    "(3, 'A', '0044-03-15 BC', '0044-03-15 BC', -0.01, false, '\\xff', -7)",
    "(2, 'é', '2024-02-29', '2024-03-31 1:30Z', 0, true, '\\x0000', 9)",
)
COLUMNS = "itdmnby"
EVERY = ", ".join(COLUMNS)
# Each query with the operations that Spark computes of it.
QUERIES = {
    "rows": (f"SELECT d.*, c.x FROM (SELECT DISTINCT {EVERY} FROM a) AS d JOIN c ON c.i = d.i", {"distinct"}),
    **{
        f"distinct_{name}": (
            f"SELECT d.{name}, c.x FROM (SELECT DISTINCT {name} FROM a) AS d JOIN c ON c.{name} = d.{name}",
            {"distinct"},
        )
        for name in COLUMNS
    },
    "joined": (
        "SELECT c.x, d.* FROM (SELECT DISTINCT a.t, c.d FROM a JOIN c ON a.i = c.i) AS d JOIN c ON c.t = d.t",
        {"distinct"},
    ),
    "summed": (
        "SELECT c.x, d.i FROM (SELECT DISTINCT i FROM (SELECT i FROM a UNION ALL SELECT i FROM c) AS u) AS d"
        " JOIN c ON c.i = d.i",
        {"distinct"},
    ),
    "united": (
        f"SELECT u.*, c.x FROM (SELECT {EVERY} FROM a UNION SELECT {EVERY} FROM c) AS u JOIN c ON c.i = u.i",
        {"union"},
    ),
    "shared": (f"SELECT {EVERY} FROM a INTERSECT SELECT {EVERY} FROM c", {"intersect"}),
    "left": (f"SELECT {EVERY} FROM a EXCEPT SELECT {EVERY} FROM c", {"except"}),
    "shared_copies": (f"SELECT {EVERY} FROM a INTERSECT ALL SELECT {EVERY} FROM c", {"intersect all"}),
    "left_copies": (f"SELECT {EVERY} FROM a EXCEPT ALL SELECT {EVERY} FROM c", {"except all"}),
    "present": ("SELECT i, x FROM a WHERE EXISTS (SELECT FROM c WHERE c.t = a.t AND c.x > 0)", {"exists"}),
    "absent": ("SELECT i, x FROM a WHERE NOT EXISTS (SELECT FROM c WHERE c.d = a.d)", {"exists"}),
    "outer": ("SELECT a.i, c.x FROM a LEFT JOIN c ON a.n = c.n", {"exists"}),
    "full": ("SELECT a.i, c.x FROM a FULL JOIN c ON a.m = c.m", {"exists"}),
    "grouped": (
        "SELECT c.x, g.* FROM (SELECT i, count(*) AS n, count(x) AS nx, sum(i) AS s, min(x) AS l, max(x) AS h FROM a"
        " GROUP BY i) AS g JOIN c ON c.i = g.i",
        {"aggregate"},
    ),
    "by_date": ("SELECT count(*) AS k FROM (SELECT d, count(*) AS n FROM a GROUP BY d) AS g JOIN c ON g.n = c.x",
        {"aggregate"}),
    "nested": (
        "SELECT c.x, g.n FROM (SELECT i, count(*) AS n FROM (SELECT DISTINCT i, t FROM a) AS d GROUP BY i) AS g"
        " JOIN c ON c.i = g.i",
        {"aggregate", "distinct"},
    ),
}  # fmt: skip
LEFT_TO_POSTGRES = {
    "scales": "SELECT DISTINCT CAST(n AS numeric) AS n FROM a",
    "floats": "SELECT DISTINCT CAST(x AS double precision) AS f FROM a",
    "above": "SELECT g.n, c.x FROM (SELECT i, count(*) AS n FROM a GROUP BY i) AS g JOIN c ON c.i = g.i WHERE g.n > 1",
    "means": "SELECT g.m, c.x FROM (SELECT i, avg(x) AS m FROM a GROUP BY i) AS g JOIN c ON c.i = g.i",
}
CHANGES = (
    f"INSERT INTO a VALUES {', '.join(VALUES[:4])}; INSERT INTO c VALUES {', '.join(VALUES[2:])}",
    "DELETE FROM a WHERE ctid = (SELECT min(ctid) FROM a WHERE t = ''); DELETE FROM a WHERE i IS NULL;"
    " UPDATE c SET t = 'a', d = 'infinity', n = 'NaN', m = NULL WHERE i = 2",
    "DELETE FROM a WHERE t = ''; UPDATE a SET i = NULL WHERE i = 2;"
    " INSERT INTO c SELECT * FROM a; INSERT INTO a SELECT * FROM c",
)


def parts(part: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield part
    for below in part["parts"]:
        yield from parts(below)


def in_spark(client: pytrickle.Client, name: str) -> set[str]:
    """Name the operations that Spark computes, whatever their version."""
    found = [part for part in parts(client.explain(name).data["tree"]) if part["place"] == "Spark" and part["parts"]]
    return {part["part"].removeprefix("Δ").removeprefix("old ").removeprefix("new ") for part in found[1:]}


@pytest.fixture
def tables(db: Database) -> Database:
    with db.connect() as connection:
        connection.execute(TABLES)
        for table in "ac":
            connection.execute(f"INSERT INTO {table} VALUES {', '.join(VALUES)}".encode())
    return db


@pytest.mark.parametrize("asked", [False, True])
def test_operations_in_spark_equal_those_of_postgresql_after_every_change(
    tables: Database, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    """Tables are read whole, or asked for the rows that have a key of a change."""
    if asked:
        ask_for_joined_rows_only(monkeypatch)
    queries = {name: query for name, (query, _) in QUERIES.items()}
    with pytrickle.connect(tables.dsn, spark, engine="spark", small_delta_rows=0, direct_delta_rows=0) as client:
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query, refresh_mode="DIFFERENTIAL")
        assert {name: in_spark(client, f"st_{name}") for name in QUERIES} == {n: ops for n, (_, ops) in QUERIES.items()}
        tick(client, "FULL")
        compare(tables, {f"st_{name}": query for name, query in queries.items()})
        for change in CHANGES:
            with tables.connect() as connection:
                connection.execute(change.encode())
            found = {name: in_spark(client, f"st_{name}") for name in QUERIES}
            if not asked:
                assert found == {name: operations for name, (_, operations) in QUERIES.items()}
            assert any(found.values())
            tick(client, "DIFFERENTIAL", "NO_DATA")
            compare(tables, {f"st_{name}": query for name, query in queries.items()})


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
