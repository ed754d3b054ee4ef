"""Operations whose deltas the engine computes, by its double, after random changes of keys, duplicates and NULLs."""

from random import Random

import pytest

from pytrickle.plan.placement import Place
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.operations import QUERIES, VALUES, fill
from tests.equivalence.runs import ask_for_joined_rows_only
from tests.equivalence.window_operations import QUERIES as WINDOWS
from tests.equivalence.window_operations import SETTLED
from tests.repeats import first, in_parts
from tests.spark.test_joins import compare
from tests.spark.test_operations import in_spark, parts_in_spark

BATCHES = 4
# PostgreSQL computes the changes of what reads several tables that are asked for some rows only.
OF_SEVERAL = {"st_shared", "st_shared_copies", "st_left", "st_left_copies"}


def changes(chance: Random) -> str:
    """Insert rows of the edge values, delete some, and give some another key."""
    found = []
    for table in "ac":
        rows = chance.choices(VALUES, k=chance.randrange(4))
        found += [f"INSERT INTO {table} VALUES {', '.join(rows)}"] if rows else []
        some = f"ctid = ANY (SELECT ctid FROM {table} WHERE hashtext(ctid::text) % 5 = {chance.randrange(-2, 3)})"
        found += [
            f"DELETE FROM {table} WHERE {some} AND i = {chance.randrange(1, 4)}",
            f"UPDATE {table} SET i = {chance.choice(['NULL', '1', '2', '3'])} WHERE {some}",
            f"UPDATE {table} SET t = CASE WHEN t = 'a' THEN '' ELSE 'a' END, n = 1.5 WHERE {some}",
        ]
    return "; ".join(found)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("seed", first(1, range(12), then=0))
@in_parts(2)
def test_deltas_of_operations_equal_their_queries_after_random_changes(
    db: Database, monkeypatch: pytest.MonkeyPatch, asked: bool, seed: int, nth: int
) -> None:
    """Tables are read whole, or asked for the rows that have a key of a change; the first seed plays half of each."""
    if asked:
        ask_for_joined_rows_only(monkeypatch)
    each_way = list(QUERIES.items()) if seed else list(QUERIES.items())[asked::2]
    played = dict(each_way[nth::2])
    chance, queries = Random(seed), {f"st_{name}": query for name, (query, _) in played.items()}
    fill(db)
    with local_client(db.dsn, engine="spark") as (client, _):
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        assert [result.reason for result in client.tick() if "by PostgreSQL" in result.reason] == []
        joined = set()
        for _ in range(BATCHES):
            with db.connect() as connection:
                connection.execute(changes(chance).encode())
            # Changes that cancel each other in all that a query reads leave nothing to compute.
            told = {name: client.explain(f"st_{name}").data for name in played}
            changed = [name for name in played if told[name]["terms"]]
            if not asked:
                assert {name: parts_in_spark(told[name]) for name in changed} == {n: QUERIES[n][1] for n in changed}
            joined |= {f"st_{name}" for name in played if told[name]["place"] == Place.SPARK}
            results = client.tick()
            assert {result.action for result in results} <= {"DIFFERENTIAL", "NO_DATA"}
            assert [result.reason for result in results if "by PostgreSQL" in result.reason] == []
            compare(db, queries)
    assert joined == queries.keys() - (OF_SEVERAL if asked else set())


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("seed", first(1, range(12), then=0))
@in_parts(3)
def test_windows_of_both_engines_are_equal_after_random_changes(
    db: Database, monkeypatch: pytest.MonkeyPatch, asked: bool, seed: int, nth: int
) -> None:
    """Rows that tie, and equal rows, have one order in both."""
    if asked:
        ask_for_joined_rows_only(monkeypatch)
    chance, queries = Random(seed), {name: query for name, (query, _) in list(WINDOWS.items())[nth::3]}
    fill(db)
    with local_client(db.dsn, engine="spark") as (client, _):
        for name, query in queries.items():
            client.create_stream_table(f"st_{name}", query, refresh_mode="DIFFERENTIAL")
            client.create_stream_table(f"pg_{name}", query, refresh_mode="DIFFERENTIAL", engine="postgres")
        computed = set()
        for batch in range(BATCHES + 1):
            with db.connect() as connection:
                connection.execute(changes(chance).encode() if batch else b"")
            computed |= {name for name in queries if WINDOWS[name][1] in in_spark(client, f"st_{name}")}
            results = client.tick()
            assert [result.error for result in results if result.error] == []
            assert [result.reason for result in results if "by PostgreSQL," in result.reason] == []
            compare(db, {f"st_{name}": f"TABLE pg_{name}" for name in queries})
            compare(db, {f"st_{name}": queries[name] for name in queries if name in SETTLED})
    assert computed == queries.keys()
