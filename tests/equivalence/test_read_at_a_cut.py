"""A query without delta rules, read at a cut while later changes are there, keeps its groups."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

CALLS = ("sum(v)", "bit_or(v)", "array_agg(v ORDER BY id)", "every(v > 1)")


@pytest.mark.parametrize("call", CALLS)
def test_aggregates_keep_their_groups_beyond_the_frontier(db: Database, call: str) -> None:
    db.execute("CREATE TABLE s (id int, k int, v int)")
    db.execute("INSERT INTO s VALUES (1, 1, 1), (2, 1, 2), (3, 2, 3)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", f"SELECT k, {call} AS c FROM s GROUP BY k")
        client.tick()
        db.execute("INSERT INTO s VALUES (4, 1, 4)")
        assert client.verify("st").matches
