"""Leaves that PostgreSQL joins for Spark, because what is between them only PostgreSQL can say."""

import pytest

from pytrickle.config import EngineName
from pytrickle.plan.placement import Place
from pytrickle.plan.tree import SUB_JOIN
from tests.conftest import Database
from tests.engines import ClientUnder, client_under
from tests.repeats import in_parts
from tests.spark.test_edge_values import compare

pytestmark = pytest.mark.long

TOGETHER = {
    "by_order_of_texts": "SELECT a.x, b.t, c.x AS z FROM a JOIN b ON a.t < b.t AND a.k = b.j JOIN c ON b.k = c.k",
    "by_doubles": "SELECT a.x, b.x AS y, c.t FROM a JOIN b ON a.d = b.d JOIN c ON c.k = b.k",
    "by_function": "SELECT a.x, n, c.t FROM a CROSS JOIN LATERAL generate_series(1, a.x) AS n JOIN c ON c.k = a.k",
    "shown_together": "SELECT a.t || b.t AS ab, c.x FROM a JOIN b USING (k) JOIN c ON c.k = b.j",
    "in_groups": "SELECT c.x, sum(a.x * length(a.t || b.t)) AS s, count(*) AS n FROM a JOIN b USING (k)"
    " JOIN c ON c.k = b.j GROUP BY c.x",
    "with_outer_rows": "SELECT a.x, b.t, c.t AS u FROM a LEFT JOIN b ON a.k = b.k AND a.t > b.t JOIN c ON c.k = a.j",
    "with_least_texts": "SELECT a.x, c.t FROM a JOIN c ON a.j = c.k"
    " WHERE a.t > (SELECT min(b.t) FROM b WHERE b.k = a.k) AND EXISTS (SELECT FROM b WHERE b.k = c.k)",
    "with_itself": "SELECT p.x, q.x AS y, c.t FROM a p JOIN a q ON p.t > q.t AND p.k = q.k JOIN c ON c.k = p.j",
    "scalar": "SELECT a.x, (SELECT b.t FROM b WHERE b.id = a.id) AS t FROM a JOIN c USING (k)",
    "beside_values": "SELECT a.x, n, c.t FROM a JOIN c USING (k) JOIN (VALUES (1, 'a'), (2, 'b')) AS v (n, t)"
    " ON a.t > v.t",
    "of_values_and_outer_rows": "SELECT v.n, g, count(c.x) AS x FROM (VALUES (1), (2)) AS v (n)"
    " CROSS JOIN generate_series(1, 3) AS g LEFT JOIN a ON a.k = v.n LEFT JOIN c ON c.k = a.j AND c.x % 3 = g"
    " GROUP BY 1, 2",
}
# A scalar subquery may have several rows for a row that another table excludes: a delta leaves nothing to Spark.
DECIDED_BY_ALL = {"scalar"}
ALONE = {
    "ordered": "SELECT a.x, b.x AS y FROM a JOIN b ON a.t < b.t AND a.k = b.k",
}
CHANGES = (
    "INSERT INTO a SELECT n, n % 4, n % 3, n, 'new' || n, n / 4.0 FROM generate_series(31, 40) AS n",
    "UPDATE b SET t = t || 'x', k = NULLIF(k + 1, 3) WHERE x % 3 = 0",
    "WITH gone AS (DELETE FROM a WHERE x % 4 = 1 RETURNING *),"
    " moved AS (UPDATE c SET k = k + 1 WHERE x < 5 RETURNING *) UPDATE b SET j = j + 1 WHERE x > 20",
)


def create(db: Database) -> None:
    """Create three tables with NULLs and twins."""
    for number, table in enumerate("abc"):
        db.execute(f"CREATE TABLE {table} (id int, k int, j int, x int, t text, d double precision)")
        db.execute(
            f"INSERT INTO {table} SELECT n, NULLIF(n % 5, {number}), n % 4, n % 11, chr(97 + n % 7), n % 6"
            " FROM generate_series(1, 30) AS n"
        )
        db.execute(f"ANALYZE {table}")


def create_all(client: ClientUnder, queries: dict[str, str]) -> None:
    for name, query in queries.items():
        client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")


def joined_before(client: ClientUnder, queries: dict[str, str]) -> set[str]:
    """Name those of which Spark joins something that PostgreSQL has joined for it."""
    told = {name: client.explain(name) for name in queries}
    return {name for name, facts in told.items() if facts.data["place"] == Place.SPARK and SUB_JOIN in str(facts)}


@in_parts(3)
def test_spark_joins_what_postgresql_has_joined_for_it(db: Database, request: pytest.FixtureRequest, nth: int) -> None:
    queries = dict(list(TOGETHER.items())[nth::3])
    create(db)
    with client_under(EngineName.SPARK, db.dsn, request) as client:
        create_all(client, queries)
        assert joined_before(client, queries) == queries.keys()
        client.tick()
        compare(db, "", queries)
        for change in CHANGES:
            db.execute(change)
            changed = {name for name in queries if client.explain(name).data["terms"]}
            assert joined_before(client, queries) >= changed - DECIDED_BY_ALL
            client.tick()
            compare(db, "", queries)
        assert {engine for (action, engine) in client.done_by if action != "NO_DATA"} == {"spark"}
        assert client.done_by["DIFFERENTIAL", "spark"] >= 2 * len(queries)
        for name in queries:
            assert db.value(f"SELECT count(*) FROM {name}"), name


def test_explain_says_that_spark_only_hands_on_what_postgresql_computes(
    db: Database, request: pytest.FixtureRequest
) -> None:
    create(db)
    with client_under(EngineName.SPARK, db.dsn, request) as client:
        create_all(client, ALONE)
        for name in ALONE:
            facts = client.explain(name)
            assert facts.data["engine"] == "spark"
            assert "PostgreSQL computes every part of it, Spark hands on the rows" in str(facts)
            assert not facts.data["spark_reads"]
