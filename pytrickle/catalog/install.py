"""Install, verify and remove the catalog: numbered migrations once each, functions whenever they changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg import sql

from pytrickle.catalog.restored import refuse_begun, refuse_half_restored
from pytrickle.database import filled, translate_errors
from pytrickle.errors import (
    CatalogError,
    CatalogVersionMismatch,
    InsufficientPrivilege,
    MigrationError,
    NotInstalled,
    PlanError,
    PytrickleError,
    SerializationFailure,
)

OLDEST_SERVER = 15
FUNCTIONS_VERSION = 0
# Installs wait for each other by a lock that nobody else may take; the first ones meet where they create the schema.
_LOCK = """DO $$
BEGIN
    IF to_regclass('pgtrickle.pgt_schema_version') IS NOT NULL THEN
        LOCK TABLE pgtrickle.pgt_schema_version IN SHARE ROW EXCLUSIVE MODE;
    END IF;
END
$$"""
_PATIENCE = "SET LOCAL lock_timeout = '30s'"
_CREATED_MEANWHILE = ("23505", "42P06")
_HOLDERS = """
SELECT DISTINCT CASE WHEN a.pid IS NULL THEN 'a prepared transaction'
    ELSE format('process %s of %s', a.pid, coalesce(a.usename, 'an unknown role')) END,
    c.relname = 'pgt_leader' AND l.mode = 'ExclusiveLock'
FROM pg_locks AS l JOIN pg_class AS c ON c.oid = l.relation JOIN pg_namespace AS n ON n.oid = c.relnamespace
    LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
WHERE n.nspname = 'pgtrickle' AND l.pid IS DISTINCT FROM pg_backend_pid() AND l.granted
ORDER BY 1
"""

_RECORD = """\
INSERT INTO pgtrickle.pgt_schema_version (version, name, checksum, applied_at)
VALUES ({version}, {name}, {checksum}, clock_timestamp())
ON CONFLICT (version) DO UPDATE
SET name = EXCLUDED.name, checksum = EXCLUDED.checksum, applied_at = EXCLUDED.applied_at;
"""
_CHECKSUMS = "SELECT version, checksum FROM pgtrickle.pgt_schema_version"


@dataclass(frozen=True, slots=True)
class Script:
    """A piece of the catalog's SQL; the functions together are one script, of version 0."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return _checksum(self.text)

    @property
    def record(self) -> str:
        """The statement that writes the script into pgt_schema_version."""
        parts = {"version": self.version, "name": self.name, "checksum": self.checksum}
        return filled(_RECORD, **{name: sql.Literal(part) for name, part in parts.items()}).as_string()


@cache
def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@cache
def scripts() -> tuple[Script, ...]:
    """Return the package's migrations in order, then its functions."""
    root = _sql_directory()
    migrations = tuple(
        Script(int(path.name.partition("_")[0]), path.name.removesuffix(".sql"), path.read_text(encoding="utf-8"))
        for path in _sorted_sql(root / "migrations")
    )
    functions = "\n".join(path.read_text(encoding="utf-8") for path in _sorted_sql(root / "functions"))
    return (*migrations, Script(FUNCTIONS_VERSION, "functions", functions))


def install(connection: psycopg.Connection, *, roles: bool = False) -> tuple[str, ...]:
    """Bring the catalog to this package's version in one transaction; return the names of what was applied.

    Nothing is applied when the catalog is up to date. Concurrent installs wait for each other. With `roles`, those of
    the group roles for readers, loaders, operators and owners are created that are not there yet.
    Raises MigrationError when the server is too old, the pg_trickle extension is present, other transactions keep the
    catalog locked, or an applied migration is not the one of this package; CatalogVersionMismatch when the catalog is
    newer; NotInstalled when it was restored without its rows; InsufficientPrivilege, also where another role owns the
    catalog's schemas or something in them.
    """
    _check_server(connection)
    try:
        return _install(connection, roles)
    except PytrickleError as error:
        if error.sqlstate not in _CREATED_MEANWHILE:
            raise
        return _install(connection, roles)


def _install(connection: psycopg.Connection, roles: bool) -> tuple[str, ...]:
    with _migration(connection):
        connection.execute(_guard().encode(), prepare=False)
        connection.execute(_PATIENCE)
        connection.execute(_LOCK)
        applied = _applied(connection) or {}
        _check_history(applied)
        pending = tuple(script for script in scripts() if applied.get(script.version) != script.checksum)
        for script in pending:
            connection.execute(script.text.encode(), prepare=False)
            connection.execute(script.record.encode(), prepare=False)
        if roles:
            connection.execute(_roles().encode(), prepare=False)
    return tuple(script.name for script in pending)


def render(installed: int = 0, *, roles: bool = False) -> str:
    """Return what ``install`` would run on a catalog of version ``installed`` (0: none), for ``psql -1 -f``.

    The text depends on the package's version alone, and on whether the group roles are to be created.
    """
    pending = (script for script in scripts() if script.version == FUNCTIONS_VERSION or script.version > installed)
    parts = (f"-- {script.name}\n{script.text.rstrip()}\n\n{script.record}" for script in pending)
    return "\n".join((_guard(), f"{_LOCK};\n", *parts, *([_roles()] if roles else [])))


def trust(connection: psycopg.Connection) -> str:
    """Return the role to which all of the catalog belongs; raise InsufficientPrivilege naming what does not."""
    with translate_errors(), connection.transaction():
        row = connection.execute(
            "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'pgtrickle'"
        ).fetchone()
        if row is None:
            return "nobody, it is not installed"
        connection.execute(filled("SET LOCAL ROLE {owner}", owner=row[0]))
        connection.execute(_guard().encode(), prepare=False)
    return str(row[0])


def grants(connection: psycopg.Connection) -> tuple[str, ...]:
    """Return what somebody granted on the catalog that an install would take back."""
    with translate_errors():
        return tuple(grant for (grant,) in connection.execute("SELECT pgtrickle_private.foreign_grants()").fetchall())


def verify(connection: psycopg.Connection) -> None:
    """Check that the catalog is the one this package was written for.

    Raises NotInstalled, RestoreUnderWay, or CatalogVersionMismatch with the remedy.
    """
    with translate_errors():
        applied = _applied(connection)
    if applied is None:
        raise NotInstalled("This database has no pytrickle catalog.")
    _check_history(applied)
    if any(applied.get(script.version) != script.checksum for script in scripts()):
        raise CatalogVersionMismatch(
            "The catalog in this database is of another version than this package.",
            "Run pytrickle install to bring the catalog to this package's version.",
        )


def uninstall(connection: psycopg.Connection) -> None:
    """Remove the catalog, capture and state in one transaction, as ``sql/uninstall.sql`` says.

    One that was restored without its rows is removed, too. Raises NotInstalled when there is none.
    """
    with _migration(connection):
        connection.execute(_PATIENCE)
        connection.execute(_LOCK)
        if not _is_installed(connection):
            raise NotInstalled("This database has no pytrickle catalog.", "There is nothing to uninstall.")
        connection.execute((_sql_directory() / "uninstall.sql").read_bytes(), prepare=False)


@cache
def _guard() -> str:
    return (_sql_directory() / "guard.sql").read_text(encoding="utf-8")


def _sql_directory() -> Path:
    """Return the SQL shipped in the wheel, or the live files beside an editable install."""
    package = Path(__file__).parents[1]
    shipped = package / "_sql"
    return shipped if shipped.is_dir() else package.parent / "sql"


def _roles() -> str:
    return (_sql_directory() / "roles.sql").read_text(encoding="utf-8")


def _sorted_sql(directory: Path) -> list[Path]:
    """Return the SQL files of a directory and of its folders, in the order of the numbers they begin with."""
    entries = sorted(directory.iterdir(), key=lambda entry: entry.name)
    found = [_sorted_sql(entry) if entry.is_dir() else [entry] for entry in entries]
    return [path for paths in found for path in paths if path.name.endswith(".sql")]


def _check_server(connection: psycopg.Connection) -> None:
    if connection.info.server_version < OLDEST_SERVER * 10_000:
        raise MigrationError(
            f"PostgreSQL {connection.info.server_version // 10_000} is too old.",
            f"pytrickle needs PostgreSQL {OLDEST_SERVER} or later.",
            sqlstate="0A000",
        )


@contextmanager
def _migration(connection: psycopg.Connection) -> Iterator[None]:
    """Run the block in one transaction; what the SQL objects to is a MigrationError here."""
    try:
        with translate_errors(), connection.transaction():
            yield
    except (NotInstalled, CatalogVersionMismatch, InsufficientPrivilege):
        raise
    except SerializationFailure as error:
        raise _locked(connection, error) from error
    except (CatalogError, PlanError) as error:
        raise MigrationError(error.message, error.hint, sqlstate=error.sqlstate) from error


def _locked(connection: psycopg.Connection, error: SerializationFailure) -> MigrationError:
    found = connection.execute(_HOLDERS).fetchall()
    holders = ", ".join(dict.fromkeys(holder for holder, _ in found))
    hint = "End them, by pg_terminate_backend() or ROLLBACK PREPARED, and repeat this. Nothing was changed."
    if any(leads for _, leads in found):
        hint = "A refresher runs: stop all refreshers of this database, and repeat this. Nothing was changed."
    return MigrationError(
        f"Other transactions keep the catalog locked: {holders or error}.", hint, sqlstate=error.sqlstate
    )


def _applied(connection: psycopg.Connection) -> dict[int, str] | None:
    """Return the checksum of each applied script by version, or None where there is no catalog.

    Raise NotInstalled for one without rows: nothing says of which version its tables and functions are. Raise
    RestoreUnderWay for one that is not there completely yet.
    """
    if not _is_installed(connection):
        refuse_begun(connection)
        return None
    applied: dict[int, str] = dict(connection.execute(_CHECKSUMS).fetchall())
    refuse_half_restored(connection, has_rows=bool(applied))
    return applied


def _is_installed(connection: psycopg.Connection) -> bool:
    """Whether there is a catalog; raise MigrationError where it is that of pg_trickle."""
    (installed, foreign), *_ = connection.execute(
        "SELECT to_regclass('pgtrickle.pgt_schema_version') IS NOT NULL,"
        " EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trickle')"
    ).fetchall()
    if foreign:
        raise MigrationError(
            "The pg_trickle extension is installed in this database.",
            "Use another database: both own the schema pgtrickle, so they cannot be installed side by side.",
            sqlstate="55000",
        )
    return bool(installed)


def _check_history(applied: dict[int, str]) -> None:
    """Refuse a catalog that a newer package wrote, or whose migrations are not this package's."""
    known = {script.version: script.checksum for script in scripts()}
    if max(applied, default=0) > max(known):
        raise CatalogVersionMismatch(
            f"The catalog in this database is of version {max(applied)}, this package knows {max(known)}.",
            "Upgrade the package pytrickle-postgres.",
        )
    for version, checksum in applied.items():
        if version != FUNCTIONS_VERSION and known.get(version) != checksum:
            raise MigrationError(
                f"Migration {version} is not the one that was applied to this database.",
                "Install the package version that created the catalog, then upgrade from there.",
            )
