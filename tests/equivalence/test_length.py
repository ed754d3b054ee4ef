"""A delta whose SQL would be too long for PostgreSQL to plan: everything is computed instead, and says why."""

import pytest

from pytrickle.plan.postgres import length
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

QUERY = """SELECT a.id, b.v FROM a JOIN b ON b.id = a.id
    WHERE a.v > (SELECT avg(v) FROM b) AND NOT EXISTS (SELECT FROM c WHERE c.id = a.id)"""
# Of a change in one of the three tables the delta is written, of changes in all of them it is not.
CHARACTERS = 8_000


def test_a_delta_that_would_be_too_long_is_not_written(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for table in "abc":
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v int)")
        db.execute(f"INSERT INTO {table} SELECT n, n % 7 FROM generate_series(1, 90) AS n WHERE n % 3 <> 0")
    with local_client(db.dsn) as (client, _):
        modes = {"chosen": "AUTO", "wanted": "DIFFERENTIAL", "strict": "DIFFERENTIAL_STRICT"}
        for name, mode in modes.items():
            client.create_stream_table(name, QUERY, refresh_mode=mode)
        client.tick()
        monkeypatch.setattr(length, "MOST_CHARACTERS", CHARACTERS)
        for number in (1, 2):
            db.execute(f"UPDATE a SET v = v + {number} WHERE id % 5 = 1")
            assert {result.action for result in client.tick()} == {"DIFFERENTIAL"}
        for number in (1, 2):
            for table in "abc":
                db.execute(f"UPDATE {table} SET v = v + {number}, id = -id WHERE id % 7 = {number}")
            results = {result.stream_table: result for result in client.tick()}
            assert results["public.strict"].action == "FAILED" and length.TOO_LONG in str(
                results["public.strict"].error
            )
            for name in ("public.chosen", "public.wanted"):
                assert (results[name].action, results[name].reason) == ("FULL", f"no delta rule: {length.TOO_LONG}")
                assert client.verify(name).matches
        db.execute("INSERT INTO c VALUES (1000, 1)")
        results = {result.stream_table: result for result in client.tick()}
        assert results["public.chosen"].action == results["public.wanted"].action == "DIFFERENTIAL"
