"""Installing, upgrading, verifying and removing the catalog."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytrickle import errors
from pytrickle.catalog import install as migrate
from pytrickle.catalog.install import Script
from tests.conftest import Database
from tests.documents import ROOT
from tests.servers import OLDEST, binaries

# From this migration on none is edited.
FIRST_KEPT = 45
_SCHEMAS = "SELECT count(*)::int FROM pg_namespace WHERE nspname LIKE 'pgtrickle%%'"


def _with(monkeypatch: pytest.MonkeyPatch, *changed: Script) -> None:
    """Let the package have ``changed`` in place of, or in addition to, its scripts of the same version."""
    *migrations, functions = migrate.scripts()
    scripts = {script.version: script for script in (*migrations, functions, *changed)}
    ordered = tuple(scripts[version] for version in sorted(scripts, key=lambda version: version or 10**6))
    monkeypatch.setattr(migrate, "scripts", lambda: ordered)


def _functions() -> Script:
    return migrate.scripts()[-1]


def test_install_applies_everything_once(every_empty_db: Database) -> None:
    connection = every_empty_db.connect()
    applied = migrate.install(connection)
    assert applied[0].startswith("0001_")
    assert applied[-1] == "functions"
    migrate.verify(connection)
    assert migrate.install(connection) == ()


def test_concurrent_installs_apply_it_once(empty_db: Database) -> None:
    connections = [empty_db.connect() for _ in range(4)]
    with ThreadPoolExecutor() as pool:
        applied = list(pool.map(migrate.install, connections))
    assert sorted(map(bool, applied)) == [False, False, False, True]


def test_changed_functions_are_applied_alone(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, replace(_functions(), text=_functions().text + "\n-- changed\n"))
    connection = db.connect()
    with pytest.raises(errors.CatalogVersionMismatch):
        migrate.verify(connection)
    assert migrate.install(connection) == ("functions",)
    migrate.verify(connection)


def test_older_catalog_is_upgraded_by_what_it_lacks(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, Script(9000, "9000_more", "CREATE TABLE pgtrickle.more ()"))
    connection = db.connect()
    with pytest.raises(errors.CatalogVersionMismatch) as mismatch:
        migrate.verify(connection)
    assert "pytrickle install" in (mismatch.value.hint or "")
    assert migrate.install(connection) == ("9000_more",)
    assert db.value("SELECT to_regclass('pgtrickle.more') IS NOT NULL")


def test_newer_catalog_asks_for_a_newer_package(db: Database) -> None:
    db.execute("INSERT INTO pgtrickle.pgt_schema_version VALUES (9000, '9000_later', 'x', now())")
    for action in (migrate.verify, migrate.install):
        with pytest.raises(errors.CatalogVersionMismatch) as mismatch:
            action(db.connect())
        assert "Upgrade the package" in (mismatch.value.hint or "")


def test_edited_migration_is_refused(db: Database) -> None:
    db.execute("UPDATE pgtrickle.pgt_schema_version SET checksum = 'x' WHERE version = 1")
    for action in (migrate.verify, migrate.install):
        with pytest.raises(errors.MigrationError, match="not the one that was applied"):
            action(db.connect())


def test_failing_migration_leaves_nothing_behind(empty_db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    _with(monkeypatch, Script(9000, "9000_wrong", "CREATE TABLE public.half (); SELECT wrong"))
    with pytest.raises(errors.MigrationError, match="wrong") as failure:
        migrate.install(empty_db.connect())
    assert failure.value.sqlstate == "42703"
    assert empty_db.value(_SCHEMAS) == 0
    assert empty_db.value("SELECT to_regclass('public.half')") is None


def test_missing_right_is_named(empty_db: Database) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        migrate.install(empty_db.connect(user=empty_db.create_role("guest")))
    assert empty_db.value(_SCHEMAS) == 0


def test_pg_trickle_extension_is_refused(empty_db: Database) -> None:
    connection = empty_db.connect()
    connection.execute("SET allow_system_table_mods = on")
    connection.execute("INSERT INTO pg_extension VALUES (99999, 'pg_trickle', 10, 2200, false, '0', NULL, NULL)")
    with pytest.raises(errors.MigrationError) as refusal:
        migrate.install(connection)
    assert refusal.value.sqlstate == "55000"
    assert refusal.value.hint
    assert empty_db.value(_SCHEMAS) == 0


def test_old_server_is_refused() -> None:
    connection: Any = SimpleNamespace(info=SimpleNamespace(server_version=140012))
    with pytest.raises(errors.MigrationError, match="PostgreSQL 14 is too old") as refusal:
        migrate.install(connection)
    assert refusal.value.sqlstate == "0A000"


def test_database_without_catalog_is_not_verified(empty_db: Database) -> None:
    for action in (migrate.verify, migrate.uninstall):
        with pytest.raises(errors.NotInstalled):
            action(empty_db.connect())


def test_uninstall_removes_every_schema_and_can_be_followed_by_install(every_db: Database) -> None:
    connection = every_db.connect()
    migrate.uninstall(connection)
    assert every_db.value(_SCHEMAS) == 0
    assert migrate.install(connection)


def test_what_was_restored_without_its_rows_says_so_and_can_be_removed(db: Database, empty_db: Database) -> None:
    programs = binaries(OLDEST)
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_stream_table('counts', 'SELECT count(*) AS n FROM orders')")
    dump = subprocess.run([programs / "pg_dump", "-s", db.dsn], check=True, capture_output=True).stdout
    psql = [programs / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", empty_db.dsn]
    subprocess.run(psql, input=dump, check=True, capture_output=True)
    connection = empty_db.connect()
    for call in (migrate.install, migrate.verify):
        with pytest.raises(errors.NotInstalled, match="restored without its rows"):
            call(connection)
    migrate.uninstall(connection)
    assert empty_db.value(_SCHEMAS) == 0
    assert migrate.install(connection)
    empty_db.execute("DROP TABLE counts")


def test_rendered_sql_makes_the_same_catalog(db: Database, empty_db: Database) -> None:
    programs = binaries(OLDEST)
    subprocess.run(
        [programs / "psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", "-", empty_db.dsn],
        input=migrate.render(),
        text=True,
        check=True,
        capture_output=True,
    )
    migrate.verify(empty_db.connect())
    rendered, installed = (
        subprocess.run([programs / "pg_dump", "-s", database.dsn], text=True, check=True, capture_output=True).stdout
        for database in (empty_db, db)
    )
    # Newer pg_dumps protect their output by a random key.
    assert _without_keys(rendered) == _without_keys(installed)


def _without_keys(dump: str) -> list[str]:
    return [line for line in dump.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]


def test_rendering_is_deterministic_and_skips_what_is_installed() -> None:
    assert migrate.render() == migrate.render()
    newest = max(script.version for script in migrate.scripts())
    assert "-- 0001_" not in migrate.render(newest)
    assert "-- functions" in migrate.render(newest)


def test_no_migration_was_edited_after_it_was_committed() -> None:
    """A database to which another text was applied is refused. Earlier ones were edited before anyone had them."""
    compared = 0
    for path in sorted((ROOT / "sql/migrations").glob("*.sql")):
        if int(path.name[:4]) < FIRST_KEPT:
            continue
        name = str(path.relative_to(ROOT))
        if added := _git("log", "--diff-filter=A", "--format=%H", "--", name).split():
            assert path.read_text() == _git("show", f"{added[-1]}:{name}"), name
            compared += 1
    assert compared


def _git(*arguments: str) -> str:
    run = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if run.returncode:
        pytest.skip("the history of the project is not here")
    return run.stdout


def test_migrations_are_numbered_without_gaps() -> None:
    *migrations, functions = migrate.scripts()
    assert [script.version for script in migrations] == list(range(1, len(migrations) + 1))
    assert functions.version == migrate.FUNCTIONS_VERSION
    assert functions.text.strip()
