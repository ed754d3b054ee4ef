"""When the tables of the groups within a query are filled: as soon as they would be used, and not again and again."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import psycopg
import pytest

import pytrickle
import pytrickle.plan.placement
from pytrickle.catalog import definition
from pytrickle.client.client import Client
from pytrickle.database import settle
from pytrickle.plan import kept_operations
from pytrickle.plan.apply_plan import Action
from pytrickle.plan.auto import Choice
from pytrickle.refresh import keeping, remembered
from tests.conftest import Database
from tests.equivalence.kept_worlds import QUERIES, filled
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

ONE_MORE = "INSERT INTO lines SELECT max(id) + 1, 1, 1, 5, 1, 3 FROM lines"
KEPT = "SELECT kept_groups LIKE '%% ' || frontier_version FROM pgtrickle.pgt_stream_tables WHERE pgt_name = %s"
FOUND = "EXPLAIN SELECT FROM pgtrickle_state.groups0_1 WHERE {column} = {value}"
LEAVE_BEHIND = "UPDATE pgtrickle.pgt_stream_tables SET kept_groups = NULL"
# PostgreSQL computes but the one group that is asked for.
ONE_GROUP = """
SELECT p.part, l.total FROM parts AS p JOIN (SELECT part, sum(100 / pieces) AS total FROM lines GROUP BY part) AS l
ON p.part = l.part AND p.part = 1
"""
TWO_WAYS = """
SELECT p.part, (SELECT sum(price) FROM dear WHERE dear.part = p.part) AS dear,
    (SELECT sum(price) FROM light WHERE light.part = p.part) AS light
FROM parts AS p
"""


@pytest.fixture
def client(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    with filled(db, monkeypatch) as client:
        yield client


@pytest.fixture
def fillings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """List the stream tables for which it was tried."""
    tried: list[int] = []
    fill = keeping.Keeper._fill

    def counted(keeper: keeping.Keeper, pgt_id: int, *given: object) -> None:
        tried.append(pgt_id)
        fill(keeper, pgt_id, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(keeping.Keeper, "_fill", counted)
    return tried


def refresh(db: Database, client: Client, times: int) -> None:
    for _ in range(times):
        db.execute(ONE_MORE)
        assert {result.error for result in client.tick()} == {None}


@pytest.mark.parametrize(("key", "value"), [("name", "'part 1'"), ("part, name", "1"), ("name, part", "1")])
def test_groups_are_found_by_their_keys(db: Database, client: Client, key: str, value: str) -> None:
    groups = f"SELECT {key}, sum(price) AS total FROM parts GROUP BY {key}"
    joined = f"SELECT l.id, total FROM lines AS l JOIN ({groups}) AS g ON g.name = 'part ' || l.part"
    client.create_stream_table("joined", joined, refresh_mode="DIFFERENTIAL")
    client.tick()
    column = "k1" if key == "name, part" else "k0"
    with db.connect() as connection:
        connection.execute("SET enable_seqscan = off")
        plan = connection.execute(FOUND.format(column=column, value=value)).fetchall()
    assert "Index" in str(plan)


def test_groups_that_no_refresh_would_use_are_not_filled(db: Database, client: Client, fillings: list[int]) -> None:
    frozen = "SELECT q.*, '2020-01-01'::timestamptz AS at FROM (SELECT part, sum(price) FROM lines GROUP BY part) AS q"
    client.create_stream_table("frozen", frozen, frozen_after="1 day", window_end="at")
    client.create_stream_table("whole", QUERIES["best"], refresh_mode="FULL")
    refresh(db, client, 3)
    assert fillings == []


def test_explain_says_whether_groups_are_kept(db: Database, client: Client) -> None:
    for mode in ("DIFFERENTIAL", "FULL"):
        client.create_stream_table(mode.lower(), QUERIES["large"], refresh_mode=mode)
    client.tick()
    db.execute(ONE_MORE)
    assert "inner groups of public.lines: kept in pgtrickle_state.groups0_1\n" in str(client.explain("differential"))
    assert "kept in" not in str(client.explain("full"))
    told = str(client.explain(query=QUERIES["large"]))
    assert "inner groups of public.lines: kept in a hidden table\n" in told


def test_groups_that_cannot_be_filled_are_tried_ever_more_seldom(
    db: Database, client: Client, fillings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("UPDATE lines SET pieces = 1; INSERT INTO lines VALUES (1000, 77, 1, 1, 1, 0)")
    client.create_stream_table("one_group", ONE_GROUP, refresh_mode="DIFFERENTIAL")
    client.tick()
    refresh(db, client, 14)
    assert len(fillings) == 4
    monkeypatch.setattr(remembered, "MOST_LEFT", 3)
    db.execute("DELETE FROM lines WHERE id = 1000")
    refresh(db, client, 3)
    assert db.value(KEPT, "one_group")
    refresh(db, client, 1)
    db.execute(LEAVE_BEHIND)
    refresh(db, client, 1)
    assert db.value(KEPT, "one_group")


def test_groups_are_filled_where_a_delta_without_them_took_too_long(
    db: Database, client: Client, fillings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delta without them takes long, and would be given up ever after."""

    def hardly_tried(choice: Choice, delta_rows: int) -> Choice:
        assert choice.costs is not None
        given_up = choice.costs.experience.given_up(delta_rows)
        return choice if given_up else replace(choice, action=Action.DIFFERENTIAL, most_seconds=0.001)

    db.execute("INSERT INTO lines SELECT g, g % 17, 1, g % 13, 1, 5 FROM generate_series(1001, 61000) AS g; ANALYZE")
    client.create_stream_table("best", QUERIES["best"])
    client.tick()
    db.execute(LEAVE_BEHIND)
    fillings.clear()
    with monkeypatch.context() as soon:
        soon.setattr(definition, "GIVEN_UP", 1e6)
        soon.setattr(pytrickle.plan.placement, "limited", hardly_tried)
        db.execute(ONE_MORE)
        assert client.refresh("best").action == "FULL"
    assert fillings == [1] and db.value(KEPT, "best")
    assert db.value("SELECT bool_and(gave_up_ms IS NULL AND other_ms IS NULL) FROM pgtrickle.pgt_refresh_history")
    db.execute(ONE_MORE)
    result = client.refresh("best")
    assert result.action == "DIFFERENTIAL" and "more than" not in result.reason
    with db.connect() as connection:
        assert differences(connection, "best", QUERIES["best"], True) == []


def test_groups_are_filled_after_a_first_load_by_spark(db: Database, client: Client) -> None:
    """Otherwise the first delta would find none."""
    with local_client(db.dsn, direct_delta_rows=0) as (automatic, engine):
        automatic.create_stream_table("best", QUERIES["best"])
        automatic.tick()
        assert len(engine.plans) == 1 and db.value(KEPT, "best")


def test_groups_are_filled_where_a_delta_with_them_would_have_been_quicker(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_stream_table("best", QUERIES["best"])
    client.tick()
    db.execute("INSERT INTO lines SELECT g, g % 17, 1, g % 13, 1, 5 FROM generate_series(1001, 61000) AS g; ANALYZE")
    client.tick()
    db.execute(ONE_MORE)
    assert client.refresh("best").action == "DIFFERENTIAL"
    db.execute(
        "UPDATE pgtrickle.pgt_refresh_history SET started_at = started_at - interval '1 hour' WHERE delta_rows = 1"
    )
    # Any time is quicker then.
    monkeypatch.setattr("pytrickle.refresh.other_way.MARGIN", 1e-3)
    monkeypatch.setattr("pytrickle.refresh.other_way.SHORT", 0.0)
    with pytrickle.connect(db.dsn, engine="postgres") as other:
        db.execute(ONE_MORE)
        assert other.refresh("best").action == "FULL" and db.value(KEPT, "best")
        db.execute(ONE_MORE)
        assert "3600" not in other.refresh("best").reason


def test_processes_that_disagree_do_not_fill_groups_at_each_refresh(
    db: Database, client: Client, fillings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_stream_table("best", QUERIES["best"], refresh_mode="DIFFERENTIAL")
    client.tick()
    refresh(db, client, 1)
    monkeypatch.setattr(kept_operations, "WORTH_KEEPING", 1_000_000)
    with pytrickle.connect(db.dsn, engine="postgres") as other:
        for _ in range(7):
            refresh(db, other, 1)
            refresh(db, client, 1)
    assert fillings == [1] * 4


def test_groups_that_are_kept_no_more_leave_no_table(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.create_stream_table("two_ways", QUERIES["two_ways"], refresh_mode="DIFFERENTIAL")
    client.tick()
    assert db.value("SELECT to_regclass('pgtrickle_state.groups1_1') IS NOT NULL")
    monkeypatch.setattr(kept_operations, "MOST_KEPT", 1)
    with pytrickle.connect(db.dsn, engine="postgres") as other:
        refresh(db, other, 1)
    assert db.value(KEPT, "two_ways")
    assert db.value("SELECT to_regclass('pgtrickle_state.groups1_1') IS NULL")


def test_groups_of_what_is_refreshed_with_others_are_filled_again(db: Database, client: Client) -> None:
    client.create_stream_table("dear", "SELECT * FROM lines WHERE price > 3", refresh_mode="DIFFERENTIAL")
    client.create_stream_table("light", "SELECT * FROM lines WHERE weight < 3", refresh_mode="DIFFERENTIAL")
    client.create_stream_table("two_ways", TWO_WAYS, refresh_mode="DIFFERENTIAL", diamond_consistency="atomic")
    client.tick()
    refresh(db, client, 1)
    db.execute(LEAVE_BEHIND)
    refresh(db, client, 2)
    assert db.value(KEPT, "two_ways")
    with db.connect() as connection:
        assert differences(connection, "two_ways", TWO_WAYS, True) == []


def test_a_table_of_groups_that_is_gone_does_not_stop_a_strict_stream_table(db: Database, client: Client) -> None:
    client.create_stream_table("best", QUERIES["best"], refresh_mode="DIFFERENTIAL_STRICT")
    client.tick()
    db.execute("DROP TABLE pgtrickle_state.groups0_1")
    refresh(db, client, 2)
    assert db.value(KEPT, "best")


def test_groups_that_are_kept_are_not_filled_again_while_somebody_may_read_them(db: Database, client: Client) -> None:
    """A refresher that left them behind may come to fill them only when another one has."""
    db.execute("CREATE TABLE days (day int)")
    client.create_stream_table("apart", "SELECT day FROM days")
    client.create_stream_table("best", QUERIES["best"], refresh_mode="DIFFERENTIAL")
    with local_client(db.dsn, engine="postgres", max_concurrent_refreshes=1) as (other, _):
        for number in range(3):
            other.tick()
            db.execute("UPDATE lines SET price = price + 100 WHERE part = %s", number)
            db.execute("INSERT INTO days VALUES (%s)", number)
        client.tick()
        for number in range(3, 6):
            db.execute("UPDATE lines SET price = price + 100 WHERE part = %s", number)
            db.execute("INSERT INTO days VALUES (%s)", number)
            results = other.tick(lambda result: fill_again(client, result.stream_table))
            assert {result.action for result in results} == {"DIFFERENTIAL"}
            assert db.value(KEPT, "best")
            with db.connect() as connection:
                assert differences(connection, "best", QUERIES["best"], True) == []


def fill_again(client: Client, refreshed: str) -> None:
    if refreshed == "public.apart":
        refresher = client._refreshing()
        keeping.Keeper(refresher.connection, refresher.planner)._fill(2, refresher.planner.shapes[2][1], ())


def test_groups_are_filled_for_no_longer_than_a_statement_may_run(
    db: Database, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def noting(connection: psycopg.Connection, given: Iterable[str]) -> None:
        made.extend(statements := list(given))
        settle(connection, statements)

    monkeypatch.setattr(keeping, "settle", noting)
    with pytrickle.connect(db.dsn, engine="postgres", statement_timeout=90) as other:
        other.create_stream_table("best", QUERIES["best"], refresh_mode="DIFFERENTIAL")
        other.tick()
    assert "SET LOCAL statement_timeout TO '90000'" in made
    assert db.value(KEPT, "best")


def test_groups_whose_keys_are_too_long_for_an_index_are_kept_without_it(db: Database, client: Client) -> None:
    keys = [f"k{number}" for number in range(8)]
    db.execute(f"CREATE TABLE far ({', '.join(f'{key} numeric(1000)' for key in keys)}, n int)")
    db.execute("CREATE TABLE near AS SELECT 1::numeric AS k")
    groups = f"SELECT {', '.join(keys)}, sum(n) AS total FROM far GROUP BY {', '.join(keys)}"
    query = f"SELECT near.k, g.total FROM near JOIN ({groups}) AS g ON g.k0 = near.k"
    client.create_stream_table("far_ones", query, refresh_mode="DIFFERENTIAL")
    client.tick()
    digits = ", ".join(
        f"(SELECT string_agg((hashint4(n) & 7)::text, '') FROM generate_series({k}, {k + 998}) n)::numeric"
        for k in range(1, 8)
    )
    for number in range(3):
        db.execute(f"INSERT INTO far SELECT 1, {digits}, {number}")
        assert [result.error for result in client.tick()] == [None]
        assert db.execute("TABLE far_ones") == [(1, sum(range(number + 1)))]
        assert db.value(KEPT, "far_ones")
    db.execute(LEAVE_BEHIND)
    refresh_far = "INSERT INTO far SELECT * FROM far LIMIT 1"
    for _ in range(2):
        db.execute(refresh_far)
        assert [result.error for result in client.tick()] == [None]
    assert db.value(KEPT, "far_ones")
