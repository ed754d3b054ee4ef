"""Expressions that fail on rows which the query as it is written never evaluates."""

import psycopg
import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.test_scenarios import TABLES

BATCHES = {
    "SELECT l.id, 10 / (r.v - l.v) AS q FROM l JOIN r ON r.k = l.k": [
        "INSERT INTO l VALUES (1, 1, 0, 'a'); INSERT INTO r VALUES (1, 1, 1, 'a')",
        "UPDATE l SET v = 1; UPDATE r SET v = 0",
        "UPDATE l SET v = 2",
        "UPDATE l SET v = 3",
    ],
    "SELECT k, sum(x) AS s FROM (SELECT k, (SELECT r.v FROM r WHERE r.k = l.k) AS x FROM l) AS q GROUP BY k": [
        "INSERT INTO l VALUES (1, 1, 0, 'a'), (2, 2, 0, 'b'); INSERT INTO r VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')",
        "DELETE FROM l WHERE id = 1; INSERT INTO r VALUES (3, 1, 3, 'c')",
        "UPDATE r SET v = 5 WHERE id = 2",
    ],
    "SELECT id, (SELECT r.v FROM r WHERE r.k = l.k) AS v FROM l": [
        "INSERT INTO l VALUES (1, 1, 0, 'a'), (2, 2, 0, 'b'); INSERT INTO r VALUES (1, 1, 1, 'a'), (2, 2, 2, 'b')",
        "DELETE FROM l WHERE id = 1; INSERT INTO r VALUES (3, 1, 3, 'c')",
        "UPDATE r SET v = 5 WHERE id = 2",
        "UPDATE r SET v = 6 WHERE id = 2",
    ],
}


@pytest.mark.parametrize("query", BATCHES)
def test_what_fails_between_two_states_is_computed_as_it_is_written(db: Database, query: str) -> None:
    for statement in TABLES:
        db.execute(statement)
    actions = []
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", query)
        for batch in ("SELECT", *BATCHES[query]):
            db.execute(batch)
            (result,) = client.tick()
            actions.append(result.action)
            with db.connect() as connection:
                assert not differences(connection, "st", query, False), batch
    assert actions[0] == "FULL"
    assert set(actions[1:]) == {"DIFFERENTIAL"}


def test_what_fails_as_it_is_written_fails_until_it_is_mended(db: Database) -> None:
    for statement in TABLES:
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", "SELECT id, 10 / k AS q FROM l")
        db.execute("INSERT INTO l VALUES (1, 0, 1, 'a')")
        assert [result.error for result in client.tick()] == ["division by zero"]
        db.execute("UPDATE l SET k = 5")
        assert [result.error for result in client.tick()] == [None]
        assert client.verify("st").matches


EXCLUDED = (
    "SELECT id, 10 / k AS q FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k)",
    "SELECT l.id, 10 / l.k AS q FROM l LEFT JOIN r ON r.k = l.k WHERE r.id IS NULL",
    "SELECT id, CASE WHEN EXISTS (SELECT FROM r WHERE r.k = l.k) THEN 0 ELSE 10 / k END AS q FROM l",
    "SELECT 10 / k AS q, count(*) AS n FROM l WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k) GROUP BY 10 / k",
)


def test_an_antijoin_may_exclude_what_an_expression_fails_on(db: Database) -> None:
    for statement in TABLES:
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        for number, query in enumerate(EXCLUDED):
            client.create_stream_table(f"st{number}", query)
        for batch in (
            "INSERT INTO r VALUES (1, 0, 1, 'a'); INSERT INTO l VALUES (1, 0, 1, 'a'), (2, 1, 1, 'b'), (3, 2, 1, 'c')",
            "INSERT INTO r VALUES (2, 2, 1, 'a')",
            "INSERT INTO l VALUES (4, 0, 1, 'a'), (5, 5, 1, 'b')",
            "DELETE FROM r WHERE id = 2",
        ):
            db.execute(batch)
            assert not [result.error for result in client.tick() if result.error]
            with db.connect() as connection:
                for number, query in enumerate(EXCLUDED):
                    assert not differences(connection, f"st{number}", query, False), (query, batch)


TWO_ROWS = (
    "SELECT id, (SELECT r.v FROM r WHERE r.t = 'x') AS v FROM l",
    "SELECT id, (SELECT r.v FROM r WHERE r.k = l.k) AS v FROM l",
    "SELECT id FROM l WHERE v <= (SELECT r.v FROM r WHERE r.k = l.k)",
    "SELECT k, sum((SELECT r.v FROM r WHERE r.k = l.k)) AS s FROM l GROUP BY k",
)


@pytest.mark.parametrize("query", TWO_ROWS)
def test_a_scalar_subquery_of_two_rows_fails_as_in_postgres_until_one_goes(db: Database, query: str) -> None:
    """Q1, second half."""
    for statement in (*TABLES, "INSERT INTO l VALUES (1, 1, 1, 'a')", "INSERT INTO r VALUES (1, 1, 1, 'x')"):
        db.execute(statement)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("st", query)
        client.tick()
        before = db.execute("TABLE st")
        db.execute("INSERT INTO r VALUES (2, 1, 5, 'x')")
        with pytest.raises(psycopg.errors.CardinalityViolation) as refused:
            db.execute(query)
        (result,) = client.tick()
        assert result.error == refused.value.diag.message_primary
        assert db.execute("TABLE st") == before != []
        for mended in ("DELETE FROM r WHERE id = 1", "UPDATE r SET v = 7", "DELETE FROM r"):
            db.execute(mended)
            (result,) = client.tick()
            assert not result.error
            assert not differences(connection, "st", query, True), mended
        assert result.action == "DIFFERENTIAL"


def test_a_state_that_counts_fewer_rows_than_none_is_noticed_and_built_anew(db: Database) -> None:
    for statement in (*TABLES, "INSERT INTO l VALUES (1, 1, 1, 'a'), (2, 1, 1, 'b')"):
        db.execute(statement)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("st", "SELECT k, count(*) AS n FROM l GROUP BY k")
        client.tick()
        state = db.value("SELECT 'pgtrickle_state.state_' || pgt_id FROM pgtrickle.pgt_stream_tables")
        # Only sessions named like a refresher's may do that.
        db.connect(application_name="pytrickle/damage").execute(f"UPDATE {state} SET pgt_rows = 0".encode())
        db.execute("DELETE FROM l WHERE id = 1")
        assert [result.error for result in client.tick()] == [
            f"The aggregate state {state} has a negative number of rows in 1 groups."
        ]
        assert db.execute("TABLE st") == [(1, 2)]
        assert [result.action for result in client.tick()] == ["REINITIALIZE"]
        assert client.verify("st").matches


def test_a_failure_of_what_is_read_directly_leaves_the_snapshot_to_the_others(db: Database) -> None:
    db.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("poison", "SELECT a, 100 / b AS share FROM t")
        client.create_stream_table("sound", "SELECT a FROM t")
        client.tick()
        db.execute("INSERT INTO t VALUES (1, 0)")
        failed, fine = client.tick()
        assert (failed.stream_table, failed.action) == ("public.poison", "FAILED")
        assert "division by zero" in (failed.error or "")
        assert (fine.action, fine.rows_inserted) == ("DIFFERENTIAL", 1)
