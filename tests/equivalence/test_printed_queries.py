"""Queries of which PostgreSQL prints a text that means another one: read as a whole, by their view."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

ROWS = {
    "alias of USING": "SELECT row_to_json(x.*)::text AS r FROM t JOIN s USING (a) AS x",
    "alias of a join": "SELECT to_json(x)::text AS r FROM (t JOIN t AS s ON t.a = s.a) AS x",
    "one name twice": "SELECT to_json(x)::text AS r FROM (SELECT a AS c, a + 1 AS c FROM t) AS x",
    "through a view": "SELECT r, count(*) AS n FROM w GROUP BY r",
}
SETS = {
    "rolled up": "SELECT a AS x, a AS y, count(*) AS n FROM t GROUP BY ROLLUP (1, 2)",
    "sets": "SELECT 1 AS x, 1 AS y, count(*) AS n FROM t GROUP BY GROUPING SETS ((1), (2))",
    "cube": "SELECT a + 1 AS x, a + 1 AS y, count(*) AS n FROM t GROUP BY CUBE (x, y)",
}


@pytest.mark.parametrize(
    ("query", "named"), [*((q, "whole rows") for q in ROWS.values()), *((q, "ROLLUP") for q in SETS.values())]
)
def test_a_text_that_means_another_query_is_not_used(db: Database, query: str, named: str) -> None:
    db.execute(
        "CREATE TABLE t (a int, b text); CREATE TABLE s (a int, c text); INSERT INTO s VALUES (1, 'p'), (2, 'q')"
    )
    db.execute("CREATE VIEW w AS SELECT row_to_json(x.*)::text AS r FROM t JOIN s USING (a) AS x")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query)
        for change in (
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
            "INSERT INTO t VALUES (1, 'c')",
            "DELETE FROM t WHERE b = 'a'",
        ):
            db.execute(change)
            (result,) = client.tick()
            assert (result.action, result.error) == ("FULL", None)
            assert not differences(db.connect(), "st", query, True)
        assert named in result.reason
        assert client.verify("st").matches
