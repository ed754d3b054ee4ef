"""Groups within a query that are kept: they are always those of the frontier, or not used."""

from collections.abc import Iterator
from random import Random

import psycopg
import pytest

import pytrickle
from pytrickle.apply import kept_groups
from pytrickle.client.client import Client
from pytrickle.refresh.keeping import Keeper
from tests.conftest import Database
from tests.equivalence.kept_worlds import QUERIES, change, filled
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

STAMP = """
SELECT kept_groups IS NOT NULL AND kept_groups LIKE '% ' || frontier_version FROM pgtrickle.pgt_stream_tables
WHERE pgt_name = %s
"""
TABLES_OF = "SELECT relname FROM pg_class WHERE relname ~ '^groups' AND relkind = 'r' ORDER BY relname"
STORED = "SELECT k0, pgt_rows, a0_s FROM pgtrickle_state.groups0_1 ORDER BY k0"
GROUPS = "SELECT part, count(*), coalesce(sum(price), 0) FROM lines GROUP BY part ORDER BY part"
OTHER = "SELECT part, CAST(price AS numeric) AS total, CAST(price AS numeric) AS named FROM parts"
COUNTED = (
    "SELECT p.part, n FROM parts AS p JOIN (SELECT part, count(pair) AS n FROM lines GROUP BY part) AS l USING (part)"
)
ROUNDS = 20


@pytest.fixture
def client(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    with filled(db, monkeypatch) as client:
        yield client


def create(client: Client, queries: dict[str, str], mode: str = "DIFFERENTIAL") -> None:
    for name, query in queries.items():
        client.create_stream_table(name, query, refresh_mode=mode)
    assert {result.error for result in client.tick()} == {None}


def is_kept(connection: psycopg.Connection, name: str) -> bool:
    row = connection.execute(STAMP.replace("'% '", "'%% '"), (name,)).fetchone()
    return bool(row and row[0])


def check(db: Database, queries: dict[str, str]) -> None:
    with db.connect() as connection:
        wrong = {name: differences(connection, name, query, True) for name, query in queries.items()}
    assert not any(wrong.values()), wrong


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_whatever_changes_groups_are_kept_and_the_answer_is_that_of_the_query(
    db: Database, client: Client, seed: int
) -> None:
    random = Random(seed)
    create(client, QUERIES)
    for number in range(ROUNDS):
        with db.connect() as connection:
            change(connection, random, number)
        assert {result.error for result in client.tick()} == {None}
        check(db, QUERIES)
        with db.connect() as connection:
            assert all(is_kept(connection, name) for name in QUERIES)


def test_scales_are_counted_where_they_are_not_all_the_same(db: Database, client: Client) -> None:
    create(client, {name: QUERIES[name] for name in ("earned", "best")})
    columns = """
    SELECT attrelid::regclass::text FROM pg_attribute WHERE attrelid = ANY (%s::regclass[]) AND attname = %s ORDER BY 1
    """
    tables = ["pgtrickle_state.groups0_1", "pgtrickle_state.groups0_2"]
    assert db.execute(columns, tables, "a0_s") == [(name,) for name in tables]
    assert db.execute(columns, tables, "a0_scales") == [(tables[1],)]


def test_what_is_kept_is_what_the_groups_are(db: Database, client: Client) -> None:
    create(client, {"large": QUERIES["large"]})
    with db.connect() as connection:
        for number in range(ROUNDS):
            change(connection, Random(number), number)
            client.tick()
            assert connection.execute(STORED).fetchall() == connection.execute(GROUPS).fetchall()


@pytest.mark.parametrize("name", ["best", "large", "of_groups", "shares"])
def test_a_delta_reads_nothing_of_the_table_below_the_groups(db: Database, client: Client, name: str) -> None:
    create(client, {name: QUERIES[name]})
    db.execute("UPDATE lines SET price = price + 1 WHERE id = 200")
    explained = client.explain(name)
    assert explained.data["action"] == "DIFFERENTIAL"
    assert "pgtrickle_state.groups0_1" in explained.data["sql"]
    assert '"public"."lines"' not in explained.data["sql"]
    assert "  inner groups of public.lines: kept in pgtrickle_state.groups0_1" in str(explained)
    assert explained.data["whole_aggregates"] == []


def test_groups_that_were_left_behind_are_not_used_but_filled_again(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(client, QUERIES)
    monkeypatch.setattr(kept_groups, "MOST_BYTES", -1)
    monkeypatch.setattr(Keeper, "keep", lambda *_: None)
    for number in range(3):
        with db.connect() as connection:
            change(connection, Random(number), number)
            client.tick()
            check(db, QUERIES)
            assert not any(is_kept(connection, name) for name in QUERIES if name != "above")
    monkeypatch.undo()
    with db.connect() as connection:
        change(connection, Random(4), 4)
        client.tick()
        check(db, QUERIES)
        assert all(is_kept(connection, name) for name in QUERIES if name != "above")


def test_groups_of_another_frontier_are_not_used(db: Database, client: Client) -> None:
    """So they are left by a refresher that does not know of them."""
    create(client, {"best": QUERIES["best"]})
    damage(db, "UPDATE pgtrickle_state.groups0_1 SET c0 = 0, a0_s = 0")
    db.execute("UPDATE pgtrickle.pgt_stream_tables SET frontier_version = frontier_version + 1")
    db.execute("UPDATE lines SET price = price + 100 WHERE part IN (1, 2)")
    (result,) = client.tick()
    assert (result.error, result.action) == (None, "DIFFERENTIAL")
    check(db, {"best": QUERIES["best"]})
    with db.connect() as connection:
        assert is_kept(connection, "best")
        assert connection.execute("SELECT count(*) FROM pgtrickle_state.groups0_1 WHERE a0_s = 0").fetchone() == (0,)


def test_a_table_of_groups_that_is_gone_is_made_anew(db: Database, client: Client) -> None:
    create(client, QUERIES)
    for number in range(2):
        db.execute("DROP TABLE pgtrickle_state.groups0_1, pgtrickle_state.groups0_3")
        with db.connect() as connection:
            change(connection, Random(number), number)
        assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
        check(db, QUERIES)


def test_two_clients_that_take_turns_keep_the_same_groups(db: Database, client: Client) -> None:
    create(client, QUERIES)
    with pytrickle.connect(db.dsn, engine="postgres") as other:
        for number in range(8):
            with db.connect() as connection:
                change(connection, Random(number), number)
            assert {result.error for result in (client, other)[number % 2].tick()} == {None}
            check(db, QUERIES)


def test_a_row_that_has_some_nulls_is_counted(db: Database, client: Client) -> None:
    db.execute("CREATE TYPE pair AS (a int, b int); ALTER TABLE lines ADD pair pair")
    queries = {"counted": COUNTED}
    create(client, queries)
    for pair in ("(1,)", "(,)", "(1,2)", None):
        db.execute("UPDATE lines SET pair = %s WHERE part < 3 AND id %% 2 = 0", pair)
        client.tick()
        check(db, queries)


def test_what_refreshes_by_spark_does_not_keep_groups(db: Database, client: Client) -> None:
    create(client, QUERIES)
    with local_client(db.dsn, engine="spark") as (spark, engine):
        for number in range(3):
            with db.connect() as connection:
                change(connection, Random(number), number)
            assert {result.error for result in spark.tick()} == {None}
            check(db, QUERIES)
        assert engine.plans
    with db.connect() as connection:
        assert not is_kept(connection, "best")
        change(connection, Random(9), 9)
        assert {result.error for result in client.tick()} == {None}
        check(db, QUERIES)


def test_another_query_and_a_drop_leave_no_groups_behind(db: Database, client: Client) -> None:
    create(client, {"best": QUERIES["best"], "two_ways": QUERIES["two_ways"]})
    with db.connect() as connection:
        assert tables(connection) == ["groups0_1", "groups0_2", "groups1_2"]
        client.alter_stream_table("two_ways", query=OTHER)
        client.tick()
        assert tables(connection) == ["groups0_1"]
        client.drop_stream_table("best")
        assert tables(connection) == []


def test_nobody_else_writes_the_groups(db: Database, client: Client) -> None:
    create(client, {"best": QUERIES["best"]})
    for write in ("DELETE FROM pgtrickle_state.groups0_1", "TRUNCATE pgtrickle_state.groups0_1"):
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="is kept beside a stream table"):
            db.execute(write)


def test_a_wrong_number_of_rows_in_a_group_is_noticed(db: Database, client: Client) -> None:
    create(client, {"best": QUERIES["best"]})
    damage(db, "UPDATE pgtrickle_state.groups0_1 SET pgt_rows = 0 WHERE k0 = 3")
    db.execute("DELETE FROM lines WHERE part = 3")
    (result,) = client.tick()
    assert result.error and "negative number of rows" in result.error
    (result,) = client.tick()
    assert (result.error, result.action) == (None, "REINITIALIZE")
    check(db, {"best": QUERIES["best"]})


def damage(db: Database, statement: str) -> None:
    """Write what only refreshers may: their sessions are told by their name."""
    db.connect(application_name="pytrickle/damage").execute(statement.encode())


def tables(connection: psycopg.Connection) -> list[str]:
    return [name for (name,) in connection.execute(TABLES_OF)]


def test_a_query_that_is_not_a_stream_table_yet_would_keep_its_groups(db: Database, client: Client) -> None:
    explained = client.explain(query=QUERIES["shares"])
    assert "  inner groups of public.lines: kept in a hidden table\n" in str(explained)
    assert {each["table"] for each in explained.data["kept_groups"]} == {None}
