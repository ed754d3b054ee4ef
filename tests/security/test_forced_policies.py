"""Row-level security that is forced on a stream table, or on what it reads: told of by every report, and mended."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

import pytrickle
from pytrickle.errors import InsufficientPrivilege
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

QUERY = "SELECT id, v FROM shop.items"


@pytest.fixture
def owned(empty_db: Database) -> Iterator[str]:
    """The DSN of a role that is no superuser, and owns the catalog, a source and a filled stream table."""
    role = empty_db.create_role("owner")
    empty_db.execute(
        sql.SQL("GRANT CREATE ON DATABASE {} TO {}")
        .format(sql.Identifier(empty_db.value("SELECT current_database()")), sql.Identifier(role))
        .as_string()
    )
    dsn = psycopg.conninfo.make_conninfo(empty_db.dsn, user=role)
    pytrickle.install(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.items AS SELECT id, id AS v FROM generate_series(1, 9) AS id")
        connection.execute("SELECT pgtrickle.create_stream_table('shop.st', %s)", (QUERY,))
        with local_client(dsn) as (client, _):
            client.tick()
        yield dsn


@pytest.mark.parametrize("table", ["st", "items"])
def test_forced_policies_are_told_of_and_lifted(owned: str, table: str) -> None:
    with psycopg.connect(owned, autocommit=True) as connection, local_client(owned) as (client, _):
        for statement in (
            f"ALTER TABLE shop.{table} ENABLE ROW LEVEL SECURITY",
            f"CREATE POLICY few ON shop.{table} USING (id < 3) WITH CHECK (true)",
        ):
            connection.execute(statement.encode())
        assert not client.problems(), "they hold for all but the owner"
        connection.execute(f"ALTER TABLE shop.{table} FORCE ROW LEVEL SECURITY".encode())
        (problem,) = client.problems()
        assert (problem.stream_table, problem.lasting) == ("shop.st", True)
        assert "row-level security" in problem.problem
        assert "NO FORCE ROW LEVEL SECURITY" in str(problem.remedy)
        doctor = commands(owned)("doctor")
        assert "row-level security" in doctor.stdout
        assert doctor.exit_code == 3
        (failed,) = client.tick()
        assert "row-level security" in str(failed.error)
        if table == "st":
            with pytest.raises(
                InsufficientPrivilege, match=r"is forced on shop\.st, which hides rows from its owner"
            ) as told:
                client.refresh("shop.st")
            assert told.value.hint == "ALTER TABLE shop.st NO FORCE ROW LEVEL SECURITY;"
        connection.execute(f"ALTER TABLE shop.{table} NO FORCE ROW LEVEL SECURITY".encode())
        connection.execute("UPDATE shop.items SET v = v + 1")
        assert client.refresh("shop.st").error is None
        assert client.verify("shop.st").matches
        assert not client.problems()


@pytest.mark.parametrize("right", ["SUPERUSER", "BYPASSRLS"])
def test_forced_policies_do_not_matter_to_an_owner_whom_none_apply_to(
    owned: str, empty_db: Database, right: str
) -> None:
    with psycopg.connect(owned, autocommit=True) as connection, local_client(owned) as (client, _):
        for statement in (
            "ALTER TABLE shop.st ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE shop.st FORCE ROW LEVEL SECURITY",
        ):
            connection.execute(statement)
        assert len(client.problems()) == 1
        role = sql.Identifier(connection.info.user)
        empty_db.execute(sql.SQL(f"ALTER ROLE {{}} {right}").format(role).as_string())
        assert not client.problems()
        connection.execute("UPDATE shop.items SET v = v + 1")
        assert client.refresh("shop.st").error is None
        assert client.verify("shop.st").matches


def test_policies_of_a_source_that_was_given_away_are_named_as_the_cause(owned: str, empty_db: Database) -> None:
    """Who need not own a source to refresh what is captured already is not told to own it."""
    empty_db.create_role("heir")
    empty_db.execute("GRANT USAGE ON SCHEMA shop TO heir")
    empty_db.execute("ALTER TABLE shop.items OWNER TO heir; GRANT SELECT ON shop.items TO owner")
    empty_db.execute("INSERT INTO shop.items VALUES (10, 10)")
    with local_client(owned) as (client, _):
        assert [(result.action, result.error) for result in client.tick()] == [("DIFFERENTIAL", None)]
        empty_db.execute("ALTER TABLE shop.items ENABLE ROW LEVEL SECURITY")
        (result,) = client.tick()
        assert (result.action, result.error) == ("FAILED", "row-level security filters what owner sees of shop.items")
        empty_db.execute("ALTER TABLE shop.items DISABLE ROW LEVEL SECURITY")
        assert client.refresh("shop.st").error is None
        assert client.verify("shop.st").matches
