"""The group roles of an install with roles: what their members may do, what they may not, and whose name is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql

import pytrickle
from pytrickle.catalog import install as migrate
from pytrickle.errors import InsufficientPrivilege, MigrationError
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.servers import NEWEST, OLDEST

GROUPS = ("pytrickle_reader", "pytrickle_loader", "pytrickle_operator", "pytrickle_owner")


@pytest.fixture
def shop(every_empty_db: Database) -> Iterator[Database]:
    """A catalog of the role etl with group roles that a superuser created; one stream table, made before them."""
    db = every_empty_db
    etl(db)
    db.execute("CREATE SCHEMA sales AUTHORIZATION etl")
    pytrickle.install(f"{db.dsn}?user=etl")
    own = db.connect(user="etl")
    own.execute("CREATE TABLE sales.orders (id integer, amount integer)")
    own.execute("SELECT pgtrickle.create_stream_table('sales.total', 'SELECT sum(amount) AS amount FROM sales.orders')")
    pytrickle.install(as_etl(db), roles=True)
    yield db
    drop_groups(db)


def etl(db: Database, attributes: str = "") -> None:
    db.create_role("etl")
    if attributes:
        db.execute(f"ALTER ROLE etl {attributes}")
    database = sql.Identifier(db.connect().info.dbname)
    db.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO etl").format(database).as_string())


def as_etl(db: Database) -> str:
    """A superuser who speaks for the owner of the catalog."""
    return f"{db.dsn}?options=-crole%3Detl"


def drop_groups(db: Database) -> None:
    for (name,) in db.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", list(GROUPS)):
        db.execute(f"DROP OWNED BY {name} CASCADE")
        db.execute(f"DROP ROLE {name}")


def member(db: Database, name: str, group: str) -> psycopg.Connection[Any]:
    db.create_role(name)
    db.execute(f"GRANT {group} TO {name}")
    return db.connect(user=name)


def groups(db: Database) -> set[str]:
    return {name for (name,) in db.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", list(GROUPS))}


def test_readers_read_every_stream_table_also_one_created_later_and_nothing_else(shop: Database) -> None:
    ann = member(shop, "ann", "pytrickle_reader")
    own = shop.connect(user="etl")
    own.execute("GRANT USAGE ON SCHEMA sales TO pytrickle_reader")
    own.execute("SELECT pgtrickle.create_stream_table('sales.later', 'SELECT id FROM sales.orders')")
    for name in ("total", "later"):
        assert ann.execute(f"SELECT count(*) FROM sales.{name}".encode()).fetchone() == (0,)
    for statement in (
        "SELECT * FROM sales.orders",
        "DELETE FROM sales.total",
        "TRUNCATE sales.later",
        "SELECT * FROM pgtrickle.pgt_stream_tables",
        "SELECT pgtrickle.pause_stream_table('sales.total')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ann.execute(statement.encode())


def test_operators_pause_resume_refresh_and_reset_fuses_but_neither_read_nor_redefine(shop: Database) -> None:
    ben = member(shop, "ben", "pytrickle_operator")
    shop.execute("GRANT USAGE ON SCHEMA sales TO pytrickle_operator")
    for call, answer in (
        ("pause_stream_table('sales.total')", 1),
        ("resume_stream_table('sales.total')", 1),
        ("pause_stream_table()", 1),
        ("resume_stream_table()", 1),
    ):
        assert ben.execute(f"SELECT pgtrickle.{call}".encode()).fetchone() == (answer,), call
    ben.execute("SELECT pgtrickle.refresh_stream_table('sales.total')")
    shop.execute("UPDATE pgtrickle.pgt_stream_tables SET fuse_blown_at = now()")
    ben.execute("SELECT pgtrickle.reset_fuse('sales.total')")
    with local_client(f"{shop.dsn}?user=etl") as (client, _):
        assert [str(result.action) for result in client.tick()] == ["FULL"]
    with pytrickle.connect(f"{shop.dsn}?user=ben") as client:
        assert client.pause("sales.total") == 1
    for statement in (
        "SELECT * FROM sales.total",
        "SELECT defining_query FROM pgtrickle.pgt_stream_tables",
        "SELECT last_error FROM pgtrickle.pgt_stream_tables",
        "UPDATE pgtrickle.pgt_stream_tables SET view_relid = 0",
        "UPDATE pgtrickle.pgt_stream_tables SET session_settings = '{}'",
        "DELETE FROM pgtrickle.pgt_stream_tables",
        "SELECT pgtrickle.alter_stream_table('sales.total', tier => 'cold')",
        "SELECT pgtrickle.drop_stream_table('sales.total')",
        "SELECT pgtrickle.create_stream_table('sales.mine', 'SELECT 1 AS a')",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ben.execute(statement.encode())


def test_loaders_load_what_was_granted_to_their_group_where_strangers_are_shut_out(shop: Database) -> None:
    cy, stranger = member(shop, "cy", "pytrickle_loader"), shop.create_role("stranger")
    own = shop.connect(user="etl")
    own.execute("GRANT USAGE ON SCHEMA sales TO pytrickle_loader; GRANT INSERT ON sales.orders TO pytrickle_loader")
    own.execute("REVOKE USAGE ON SCHEMA pgtrickle, pgtrickle_sinks FROM PUBLIC")
    cy.execute("INSERT INTO sales.orders VALUES (1, 10)")
    cy.execute("SELECT pgtrickle.advance_watermark('sales.orders', '2026-03-02 12:00Z'::timestamptz)")
    for statement in ("SELECT * FROM sales.orders", "SELECT pgtrickle.pause_stream_table()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            cy.execute(statement.encode())
    shop.execute("GRANT USAGE ON SCHEMA sales TO stranger; GRANT INSERT ON sales.orders TO stranger")
    shop.connect(user=stranger).execute("INSERT INTO sales.orders VALUES (2, 20)")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        shop.connect(user=stranger).execute("SELECT * FROM pgtrickle.watermarks()")
    with local_client(f"{shop.dsn}?user=etl") as (client, _):
        client.tick()
    assert shop.value("SELECT amount FROM sales.total") == 30


def test_owners_create_alter_and_refresh_as_the_owner_of_the_catalog(shop: Database) -> None:
    member(shop, "dee", "pytrickle_owner").close()
    with local_client(f"{shop.dsn}?user=dee&options=-crole%3Detl") as (client, _):
        client.create_stream_table("sales.copied", "SELECT id FROM sales.orders")
        client.alter_stream_table("sales.copied", tier="warm")
        assert {str(result.action) for result in client.tick()} == {"FULL"}
        client.drop_stream_table("sales.copied")


def test_later_installs_keep_the_rights_of_the_groups_and_need_no_right_to_create_roles(
    shop: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.execute("REVOKE ALL ON SCHEMA pgtrickle FROM pytrickle_operator")
    shop.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'earlier' WHERE version = 0")
    assert pytrickle.install(f"{shop.dsn}?user=etl") == ("functions",)
    shop.execute("REVOKE USAGE ON SCHEMA pgtrickle FROM PUBLIC")
    assert member(shop, "eve", "pytrickle_operator").execute("SELECT pgtrickle.pause_stream_table()").fetchone() == (1,)
    assert pytrickle.install(as_etl(shop), roles=True) == ()
    assert groups(shop) == set(GROUPS)


def test_what_the_groups_may_do_is_no_problem_and_is_left_to_them_when_grants_are_settled(shop: Database) -> None:
    own = shop.connect(user="etl")
    assert own.execute("SELECT pgtrickle_private.foreign_grants()").fetchall() == []
    shop.execute("GRANT SELECT ON pgtrickle.pgt_late_rows TO pytrickle_reader")
    shop.execute("GRANT UPDATE (schedule) ON pgtrickle.pgt_stream_tables TO pytrickle_operator")
    assert [grant for (grant,) in own.execute("SELECT pgtrickle_private.foreign_grants()")] == [
        "SELECT on pgt_late_rows to pytrickle_reader",
        "UPDATE on pgt_stream_tables (schedule) to pytrickle_operator",
    ]
    own.execute("SELECT pgtrickle.settle_grants()")
    assert own.execute("SELECT pgtrickle_private.foreign_grants()").fetchall() == []
    assert member(shop, "eve", "pytrickle_operator").execute("SELECT pgtrickle.pause_stream_table()").fetchone() == (1,)


def test_who_may_not_create_roles_is_told_so_and_installs_without_them(empty_db: Database) -> None:
    etl(empty_db)
    with pytest.raises(InsufficientPrivilege, match="etl may not create roles") as error:
        pytrickle.install(f"{empty_db.dsn}?user=etl", roles=True)
    assert "Leave the roles out" in str(error.value.hint)
    assert empty_db.value("SELECT to_regnamespace('pgtrickle')") is None
    assert pytrickle.install(f"{empty_db.dsn}?user=etl")[-1] == "functions"
    assert groups(empty_db) == set()


TAKEN = {
    "has a member": ("CREATE ROLE pytrickle_operator; GRANT pytrickle_operator TO mallory", "the member mallory"),
    "may log in": ("CREATE ROLE pytrickle_reader LOGIN", "rights of its own"),
    "bypasses policies": ("CREATE ROLE pytrickle_loader BYPASSRLS", "rights of its own"),
    "is a member itself": (
        "CREATE ROLE pytrickle_owner; GRANT mallory TO pytrickle_owner",
        "the rights of other roles",
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_a_role_that_somebody_made_before_is_not_given_rights_if_it(empty_db: Database, case: str) -> None:
    empty_db.create_role("mallory")
    statements, words = TAKEN[case]
    empty_db.execute(statements)
    try:
        with pytest.raises(MigrationError, match=f"already, with {words}"):
            pytrickle.install(empty_db.dsn, roles=True)
        assert empty_db.value("SELECT to_regnamespace('pgtrickle')") is None
        assert len(groups(empty_db)) == 1
    finally:
        drop_groups(empty_db)


def test_a_role_of_the_same_name_that_came_later_gets_nothing(shop: Database) -> None:
    shop.execute("DROP OWNED BY pytrickle_reader; DROP ROLE pytrickle_reader; CREATE ROLE pytrickle_reader")
    own = shop.connect(user="etl")
    own.execute("SELECT pgtrickle.create_stream_table('sales.later', 'SELECT id FROM sales.orders')")
    shop.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'earlier' WHERE version = 0")
    pytrickle.install(f"{shop.dsn}?user=etl")
    for name in ("total", "later"):
        assert not shop.value("SELECT has_table_privilege('pytrickle_reader', %s, 'SELECT')", f"sales.{name}")


def test_there_is_no_group_of_owners_where_its_members_could_become_superusers(
    empty_db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    pytrickle.install(empty_db.dsn, roles=True)
    try:
        assert groups(empty_db) == set(GROUPS) - {"pytrickle_owner"}
        assert "pytrickle_owner was left out" in caplog.text and "a superuser" in caplog.text
    finally:
        drop_groups(empty_db)


@pytest.mark.parametrize("every_empty_db", (OLDEST, NEWEST), indirect=True, ids="pg{}".format)
def test_an_owner_who_may_create_roles_installs_them_himself(every_empty_db: Database) -> None:
    db = every_empty_db
    etl(db, "CREATEROLE")
    pytrickle.install(f"{db.dsn}?user=etl", roles=True)
    try:
        # Since PostgreSQL 16 nobody may grant himself to others.
        assert groups(db) == set(GROUPS) - ({"pytrickle_owner"} if db.version >= 16 else set())
        assert pytrickle.install(f"{db.dsn}?user=etl", roles=True) == ()
    finally:
        drop_groups(db)


def test_what_install_prints_creates_the_groups_too(empty_db: Database) -> None:
    with empty_db.connect(autocommit=False) as connection:
        connection.execute(migrate.render(roles=True).encode(), prepare=False)
    try:
        assert len(groups(empty_db)) == 3
    finally:
        drop_groups(empty_db)


def test_uninstall_drops_the_groups_and_leaves_one_that_something_else_needs(shop: Database) -> None:
    shop.execute("CREATE TABLE other (id integer); GRANT SELECT ON other TO pytrickle_reader")
    with shop.connect() as connection:
        migrate.uninstall(connection)
    assert groups(shop) == {"pytrickle_reader"}
    assert not shop.value("SELECT has_table_privilege('pytrickle_reader', 'sales.total', 'SELECT')")
    assert not shop.value("SELECT pg_has_role('pytrickle_reader', 'etl', 'MEMBER')")


def test_uninstalling_a_copy_of_the_database_leaves_the_groups_to_the_original(shop: Database) -> None:
    """What the copy has is gone then; it is another database of the cluster that keeps its roles."""
    with shop.connect(dbname="postgres") as beside:
        for group in GROUPS:
            with pytest.raises(psycopg.errors.DependentObjectsStillExist):
                beside.execute(f"DROP ROLE {group}".encode())
