"""What stream tables lost is told at once, by its name and with a remedy that works; it hides no other table."""

from __future__ import annotations

import json

import psycopg
import pytest

from pytrickle.errors import CatalogError
from tests.commands import Run, commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client


@pytest.fixture
def shop(db: Database) -> Database:
    """Two stream tables in a row, and one that has nothing to do with them."""
    db.execute("CREATE TABLE orders (id int, region text)")
    db.execute("CREATE TABLE other (id int)")
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("first", "SELECT region, count(*) AS n FROM orders GROUP BY region")
        client.create_stream_table("second", "SELECT sum(n) FROM first")
        client.create_stream_table("third", "SELECT count(*) FROM other")
        assert {result.action for result in client.tick()} == {"FULL"}
    return db


def problems(db: Database) -> list[tuple[str, str, bool]]:
    return db.execute("SELECT stream_table, problem, lasting FROM pgtrickle.problems()")  # type: ignore[return-value]


def states(run: Run) -> dict[str, str]:
    """Return the state of each stream table on the status screen."""
    lines = run("status").stdout.partition("Stream tables\n")[2].partition("\n\n")[0].splitlines()[1:]
    return {line.split()[0]: line.split()[1] for line in lines}


def test_where_all_is_well_there_is_no_problem(shop: Database) -> None:
    assert problems(shop) == []
    assert "Problems" not in commands(shop.dsn)("status").stdout


def test_a_dropped_stream_table_and_what_reads_it_are_named_before_a_tick_and_can_be_removed(shop: Database) -> None:
    run = commands(shop.dsn)
    shop.execute("DROP TABLE first CASCADE")
    assert problems(shop) == [
        ("public.first", "its table was dropped", True),
        ("public.second", "it reads public.first, which was dropped", True),
    ]
    assert states(run) == {"public.first": "broken", "public.second": "broken", "public.third": "ok"}
    assert run("status", "--fail-on", "error").exit_code == 3
    (found,) = (check for check in json.loads(run("doctor", "--json").stdout) if check["name"] == "stream tables")
    assert not found["ok"] and "public.first: its table was dropped" in found["detail"]
    with local_client(shop.dsn) as (client, _):
        for name, why in (("first", "its table was dropped"), ("second", "it reads public.first, which was dropped")):
            with pytest.raises(CatalogError, match=f"public.{name} cannot be refreshed any more: {why}."):
                client.explain(name)
    assert run("drop", "public.first", "--cascade").exit_code == 0
    assert problems(shop) == []
    assert states(run) == {"public.third": "ok"}


def left(db: Database) -> dict[str, int]:
    """Count what is there for stream tables."""
    return {
        "stream tables": int(db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables")),
        "hidden views": int(db.value("SELECT count(*) FROM pg_views WHERE schemaname = 'pgtrickle_state'")),
        "buffers": int(db.value("SELECT count(*) FROM pgtrickle.pgt_change_tracking")),
    }


@pytest.mark.parametrize(
    "command", ["DROP TABLE {}", "CREATE SCHEMA s; ALTER TABLE {} SET SCHEMA s; DROP SCHEMA s CASCADE"]
)
def test_drop_table_removes_what_was_made_for_a_stream_table(shop: Database, command: str) -> None:
    before = left(shop)
    told: list[str] = []
    with shop.connect() as connection:
        connection.add_notice_handler(lambda diagnostic: told.append(diagnostic.message_primary))
        connection.execute(command.format("third").encode())
    assert "public.third was a stream table: what kept it up to date is removed as well" in told
    assert left(shop) == {name: count - 1 for name, count in before.items()}
    shop.execute("DROP TABLE other")
    assert problems(shop) == []


def test_where_no_event_trigger_may_exist_the_next_tick_removes_it(shop: Database) -> None:
    before = left(shop)
    shop.execute("ALTER EVENT TRIGGER pgtrickle_drops DISABLE; DROP TABLE third")
    assert problems(shop) == [("public.third", "its table was dropped", True)]
    assert shop.value("SELECT remedy FROM pgtrickle.problems()") == "The next tick removes what is left of it."
    with local_client(shop.dsn) as (client, _):
        assert not [result.error for result in client.tick() if result.error]
    assert left(shop) == {name: count - 1 for name, count in before.items()}


def test_neither_drop_table_nor_a_tick_waits_for_who_uses_the_sources(shop: Database) -> None:
    with local_client(shop.dsn) as (client, _):
        client.create_stream_table("fourth", "SELECT max(id) FROM other")
        before, told = left(shop), list[str]()
        with shop.connect() as reader, reader.transaction(), shop.connect() as connection:
            reader.execute("SELECT FROM other")
            connection.execute("SET statement_timeout = '10s'")
            connection.add_notice_handler(lambda diagnostic: told.append(diagnostic.message_primary or ""))
            connection.execute("DROP TABLE third, fourth")
            later = "was a stream table: the next tick removes what kept it up to date"
            assert sorted(told) == [f"public.{name} {later}" for name in ("fourth", "third")]
            busy = [str(result.error) for result in client.tick() if result.error]
            assert busy == ["could not lock public.other within 400 ms"] * 2
            assert left(shop) == before
        assert not [result.error for result in client.tick() if result.error]
    assert left(shop) == {name: count - (1 if name == "buffers" else 2) for name, count in before.items()}


def test_ddl_that_a_query_forbids_is_refused_in_the_name_of_its_stream_table(shop: Database) -> None:
    for statement in ("ALTER TABLE orders DROP COLUMN region", "DROP TABLE orders"):
        with shop.connect() as connection, pytest.raises(psycopg.Error) as refused:
            connection.execute(statement.encode())
        assert 'view pgtrickle_state."stream table public.first" depends on' in refused.value.diag.message_detail
    views = "SELECT obj_description(view_relid) FROM pgtrickle.pgt_stream_tables ORDER BY pgt_id LIMIT 1"
    assert shop.value(views) == "Defining query of stream table public.first"
    shop.execute(
        "SELECT pgtrickle.alter_stream_table('first', 'SELECT region, count(*) + 1 AS n FROM orders GROUP BY 1')"
    )
    with local_client(shop.dsn) as (client, _):
        assert not [result.error for result in client.tick() if result.error]
        assert all(found.matches for found in client.verify())


def test_what_reads_a_table_that_lost_its_source_is_told_to_wait_for_it(shop: Database) -> None:
    shop.execute("DROP TABLE orders CASCADE")
    assert problems(shop) == [
        ("public.first", "it reads public.orders, which was dropped", True),
        ("public.second", "it waits for public.first, which cannot be refreshed", True),
    ]
    with local_client(shop.dsn) as (client, _):
        compared = {found.stream_table: found for found in client.verify()}
    assert "it reads public.orders, which was dropped" in (compared["public.first"].error or "")
    assert compared["public.second"].matches and compared["public.third"].matches


@pytest.mark.parametrize("given", ["create_or_replace_stream_table", "alter_stream_table"])
def test_a_query_that_was_dropped_with_what_it_read_can_be_given_anew(shop: Database, given: str) -> None:
    shop.execute("CREATE VIEW regions AS SELECT region FROM orders")
    query = "SELECT region, count(*) AS n FROM regions GROUP BY region"
    shop.execute("SELECT pgtrickle.alter_stream_table('first', %s)", query)
    shop.execute("INSERT INTO orders VALUES (1, 'north')")
    with local_client(shop.dsn) as (client, _):
        client.tick()
        for made_anew in (
            "ALTER VIEW regions RENAME TO old; CREATE VIEW regions AS SELECT region FROM orders; DROP VIEW old CASCADE",
            "ALTER TABLE orders RENAME TO old; CREATE TABLE orders (LIKE old); DROP TABLE old CASCADE;"
            "CREATE VIEW regions AS SELECT upper(region) AS region FROM orders",
        ):
            shop.execute(made_anew)
            shop.execute("INSERT INTO orders VALUES (2, 'south')")
            remedy = shop.value("SELECT remedy FROM pgtrickle.problems() WHERE stream_table = 'public.first'")
            assert "alter_stream_table('public.first', query =>" in remedy
            shop.execute(f"SELECT pgtrickle.{given}('first', query => %s)", query)
            assert problems(shop) == []
            actions = {result.stream_table: str(result.action) for result in client.tick()}
            assert (actions["public.first"], actions["public.second"]) == ("REINITIALIZE", "DIFFERENTIAL")
            assert all(found.matches for found in client.verify())
    assert shop.execute("TABLE first") == [("SOUTH", 1)] and left(shop)["buffers"] == 3


def test_a_lost_trigger_is_told_before_the_tick_that_computes_the_table_anew(shop: Database) -> None:
    trigger = shop.value("SELECT tgname FROM pg_trigger WHERE tgrelid = 'other'::regclass AND tgname LIKE '%%insert%%'")
    shop.execute(f"DROP TRIGGER {trigger} ON other")
    ((name, problem, lasting),) = problems(shop)
    assert (name, lasting) == ("public.third", False)
    missed = "changes of public.other may have been missed"
    assert problem == f"{missed}: capture trigger {trigger} on public.other is missing"
    with local_client(shop.dsn) as (client, _):
        assert {r.stream_table: r.action for r in client.tick()}["public.third"] == "REINITIALIZE"
    assert problems(shop) == []


def test_a_restore_into_the_same_cluster_is_told_as_one(shop: Database) -> None:
    # As a dump leaves it: sources have other numbers than those after which their buffers were named.
    number = shop.value("SELECT 'orders'::regclass::oid")
    shop.execute(f"ALTER TABLE pgtrickle_changes.changes_{number} RENAME TO changes_1")
    shop.execute("UPDATE pgtrickle.pgt_change_tracking SET buffer = replace(buffer, %s, '1')", f"{number}")
    assert {problem for _, problem, _ in problems(shop)} == {"the database was restored from a dump"}
    shop.execute("INSERT INTO other VALUES (1)")
    with local_client(shop.dsn) as (client, _):
        results = client.tick()
        assert {(r.action, r.reason) for r in results} == {("REINITIALIZE", "the database was restored from a dump")}
        assert all(found.matches for found in client.verify())
    assert problems(shop) == []


def test_a_source_is_looked_into_once_however_many_read_it(shop: Database) -> None:
    with local_client(shop.dsn) as (client, _):
        for number in range(4):
            client.create_stream_table(f"more_{number}", f"SELECT id + {number} AS id FROM orders")
    buffer = shop.value("SELECT 'pgtrickle_changes.changes_' || 'orders'::regclass::oid")
    shop.execute(f"ALTER TABLE {buffer} RENAME TO changes_0")
    with shop.connect() as connection, connection.transaction():
        connection.execute("SET LOCAL track_functions = 'all'")
        told = connection.execute("SELECT stream_table FROM pgtrickle.problems()").fetchall()
        calls = connection.execute(
            "SELECT calls FROM pg_stat_xact_user_functions WHERE funcname = 'capture_problem'"
        ).fetchone()
    assert len(told) == 5
    # Of orders, other, and the stream table that another one reads.
    assert calls == (3,)
