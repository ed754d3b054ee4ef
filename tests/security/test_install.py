"""An install trusts no schema, and nothing in one, that another role made."""

import subprocess
import threading
from pathlib import Path

import pytest

from pytrickle.catalog import install as migrate
from pytrickle.errors import InsufficientPrivilege, MigrationError
from tests.conftest import Database
from tests.security.roles import House, ask
from tests.servers import OLDEST, binaries
from tests.waiting import wait_until_blocked


@pytest.mark.parametrize(
    "schema", ["pgtrickle", "pgtrickle_changes", "pgtrickle_private", "pgtrickle_sinks", "pgtrickle_state"]
)
def test_a_schema_of_another_role_is_refused_and_named(empty_db: Database, schema: str) -> None:
    empty_db.create_role("mallory")
    empty_db.execute(f"CREATE SCHEMA {schema} AUTHORIZATION mallory")
    with pytest.raises(InsufficientPrivilege, match=f"the schema {schema} belongs to mallory, not to postgres"):
        migrate.install(empty_db.connect())


def test_a_forged_catalog_runs_nothing_as_whoever_installs(empty_db: Database) -> None:
    empty_db.create_role("mallory")
    empty_db.execute("CREATE SCHEMA pgtrickle AUTHORIZATION mallory")
    mallory = empty_db.connect(user="mallory")
    mallory.execute("CREATE TABLE pgtrickle.ran (as_role text)")
    mallory.execute(
        "CREATE FUNCTION pgtrickle.bite() RETURNS text LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO pgtrickle.ran VALUES (current_user); RETURN ''; END $$"
    )
    mallory.execute(
        "CREATE VIEW pgtrickle.pgt_schema_version AS SELECT 1 AS version, pgtrickle.bite() AS checksum, '' AS name"
    )
    with pytest.raises(InsufficientPrivilege):
        migrate.install(empty_db.connect())
    assert empty_db.execute("SELECT * FROM pgtrickle.ran") == []


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("CREATE FUNCTION pgtrickle.covers(text) RETURNS text RETURN 'x'", r"the function pgtrickle.covers\(text\)"),
        ("CREATE TABLE pgtrickle.pgt_more (a integer)", "the relation pgtrickle.pgt_more"),
        ("CREATE TYPE pgtrickle.mood AS ENUM ()", "the type pgtrickle.mood"),
    ],
)
def test_what_a_stranger_has_in_a_schema_of_the_catalog_is_refused_and_named(
    house: House, statement: str, named: str
) -> None:
    mallory = house.session("mallory", "CREATE ON SCHEMA pgtrickle")
    mallory.execute(statement.encode())
    with pytest.raises(InsufficientPrivilege, match=f"{named} belongs to mallory, not to etl"):
        migrate.install(house.etl)
    with pytest.raises(InsufficientPrivilege, match="belongs to mallory"):
        migrate.trust(house.db.connect())


def test_a_strangers_trigger_on_the_catalog_is_refused_and_named(house: House) -> None:
    mallory = house.session("mallory", "TRIGGER ON pgtrickle.pgt_watermarks")
    mallory.execute("CREATE FUNCTION mallory.bite() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
    mallory.execute("CREATE TRIGGER bite AFTER INSERT ON pgtrickle.pgt_watermarks EXECUTE FUNCTION mallory.bite()")
    with pytest.raises(InsufficientPrivilege, match=r"the trigger bite on pgtrickle\.pgt_watermarks"):
        migrate.install(house.etl)


def test_the_catalog_that_it_made_is_installed_over_and_trusted(house: House) -> None:
    assert migrate.install(house.etl) == ()
    assert migrate.trust(house.db.connect()) == "etl"
    assert migrate.grants(house.db.connect()) == ()


def test_names_are_resolved_in_pg_catalog_whatever_the_path_of_whoever_installs(empty_db: Database) -> None:
    empty_db.execute("CREATE SCHEMA evil")
    empty_db.execute("CREATE FUNCTION evil.format(text, VARIADIC text[]) RETURNS text RETURN 'forged'")
    empty_db.execute("CREATE FUNCTION evil.pg_has_role(name, name, text) RETURNS boolean RETURN true")
    session = empty_db.connect(options="-c search_path=evil,pg_catalog")
    migrate.install(session)
    empty_db.execute("CREATE TABLE orders (id integer)")
    view = empty_db.value("SELECT pg_get_viewdef('pgtrickle.pgt_readable_tables'::regclass)")
    assert "evil" not in view
    assert session.execute("SHOW search_path").fetchone() == ("evil,pg_catalog",)


def test_an_install_waits_only_so_long_for_a_stranger_and_names_it(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "_PATIENCE", "SET LOCAL lock_timeout = '200ms'")
    house.etl.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'x' WHERE version = 0")
    mallory = house.session("mallory", autocommit=False)
    ask(mallory, "SELECT * FROM pgtrickle.pgt_status()")
    ask(mallory, "SELECT pg_advisory_lock(hashtextextended('pgtrickle.pgt_schema_version', 0))")
    house.db.execute("GRANT INSERT ON orders TO mallory")
    mallory.execute("SELECT pgtrickle.gate_source('public.orders')")
    with pytest.raises(MigrationError, match=f"process {mallory.info.backend_pid} of mallory") as locked:
        migrate.install(house.etl)
    assert "pg_terminate_backend" in (locked.value.hint or "")
    mallory.rollback()
    assert migrate.install(house.etl) == ("functions",)


def test_an_install_that_a_refresher_of_before_keeps_waiting_says_so(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its leader held a lock on a table of the name that a view has now."""
    monkeypatch.setattr(migrate, "_PATIENCE", "SET LOCAL lock_timeout = '200ms'")
    house.etl.execute("DROP VIEW pgtrickle.pgt_leader; CREATE TABLE pgtrickle.pgt_leader ()")
    house.etl.execute("DELETE FROM pgtrickle.pgt_schema_version WHERE name = '0049_leader'")
    leader = house.session("etl", autocommit=False)
    leader.execute("LOCK TABLE pgtrickle.pgt_leader IN EXCLUSIVE MODE")
    with pytest.raises(MigrationError, match=f"process {leader.info.backend_pid} of etl") as locked:
        migrate.install(house.etl)
    assert "stop all refreshers" in (locked.value.hint or "")
    leader.rollback()
    assert migrate.install(house.etl) == ("0049_leader",)


def test_a_stranger_cannot_hold_an_install_by_a_key_that_it_can_guess(empty_db: Database) -> None:
    empty_db.create_role("mallory")
    mallory = empty_db.connect(user="mallory")
    mallory.execute("SELECT pg_advisory_lock(hashtextextended('pgtrickle.pgt_schema_version', 0))")
    assert migrate.install(empty_db.connect())


def test_two_first_installs_meet_and_one_of_them_does_it(empty_db: Database) -> None:
    first, second = empty_db.connect(autocommit=False), empty_db.connect()
    first.execute("CREATE SCHEMA pgtrickle")
    applied: list[tuple[str, ...]] = []
    waiting = threading.Thread(target=lambda: applied.append(migrate.install(second)))
    waiting.start()
    wait_until_blocked(empty_db, "CREATE SCHEMA pgtrickle;")
    first.execute("DROP SCHEMA pgtrickle")
    migrate.install(first)
    first.commit()
    waiting.join(timeout=60)
    assert applied == [()]


def test_the_printed_sql_refuses_what_the_install_refuses(empty_db: Database) -> None:
    empty_db.create_role("mallory")
    empty_db.execute("CREATE SCHEMA pgtrickle AUTHORIZATION mallory")
    finished = subprocess.run(
        [Path(binaries(OLDEST)) / "psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-", empty_db.dsn],
        input=migrate.render(),
        text=True,
        capture_output=True,
        check=False,
    )
    assert finished.returncode != 0
    assert "the schema pgtrickle belongs to mallory" in finished.stderr
