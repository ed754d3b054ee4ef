"""Queries that read no table: computed once, as PostgreSQL computes them."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

QUERIES = (
    "SELECT x, y, first_value(y) OVER w AS f, last_value(y) OVER w AS l FROM (SELECT x, x AS y FROM "
    "generate_series(1, 5) AS x UNION ALL SELECT NULL, 42 UNION ALL SELECT NULL, 43) AS s "
    "WINDOW w AS (ORDER BY x DESC NULLS FIRST RANGE BETWEEN 2 PRECEDING AND 2 FOLLOWING)",
    "SELECT x % 2 AS k, sum(x) AS s, min(x) AS m FROM generate_series(1, 5) AS x GROUP BY 1",
    "SELECT x FROM generate_series(1, 5) AS x ORDER BY x % 2 LIMIT 2",
    "SELECT DISTINCT x / 2 AS x FROM generate_series(1, 5) AS x",
    "SELECT 1 AS one",
)


@pytest.mark.parametrize("query", QUERIES)
def test_constants_are_read_as_they_are_written(db: Database, query: str) -> None:
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query, refresh_mode="DIFFERENTIAL")
        first, *_ = client.tick()
        assert (first.action, first.error) == ("FULL", None)
        assert not differences(db.connect(), "st", query, True)
        assert client.refresh("st").action == "NO_DATA"
        client.alter_stream_table("st", query=f"SELECT * FROM ({query}) AS q")
        (again,) = client.tick()
        assert (again.action, again.error) == ("REINITIALIZE", None)
        assert client.verify("st").matches
