"""Checks of a PostgreSQL server over an open connection: version, rights, snapshots, room for Spark."""

import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from pytrickle.catalog.read_reports import problems
from pytrickle.database import connect, filled, jdbc_target, translate_errors, trusted
from pytrickle.inspect.doctor.check import Check, ok, problem

OLDEST_SERVER = 15
# A refresh holds its snapshot, its writer, the catalog's pool and a listener, and Spark reads in parallel besides.
CONNECTIONS_NEEDED = 10

# A connection string that says so concerns the doctor alone, which only reads.
READ_ONLY = """
SELECT source FROM pg_settings
WHERE name = 'default_transaction_read_only' AND setting = 'on' AND source <> 'client'
"""
READ_ONLY_REMEDY = (
    "Turn it off for the server, the database or the role. Where the provider turned it on, the disk may be full."
)

DROPPED = """
SELECT pgtrickle_private.readable_text(name), pgtrickle_private.readable_text(group_name)
FROM pgtrickle_private.dropped_sources() ORDER BY name, group_name
"""

Connection = psycopg.Connection[Any]


def check_version(connection: Connection) -> Check:
    """Check that the server is recent enough, and takes changes: a standby does not, nor one that was told not to."""
    version = connection.info.parameter_status("server_version") or "unknown"
    if connection.info.server_version < OLDEST_SERVER * 10_000:
        remedy = f"Use PostgreSQL {OLDEST_SERVER} or later."
        return problem("server version", f"PostgreSQL {version} is older than {OLDEST_SERVER}", remedy)
    if _value(connection, "SELECT pg_is_in_recovery()"):
        remedy = "Connect to the primary, for example with target_session_attrs=read-write."
        return problem("server version", f"PostgreSQL {version} is a standby, which takes no writes", remedy)
    if source := _value(connection, READ_ONLY):
        found = f"PostgreSQL {version} takes no changes: default_transaction_read_only is on (set by: {source})"
        return problem("server version", found, READ_ONLY_REMEDY)
    return ok("server version", f"PostgreSQL {version}")


def check_extension(connection: Connection) -> Check:
    """Check that the pg_trickle extension, which owns the same schema, is absent."""
    if _value(connection, "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trickle')"):
        remedy = "Use another database: both own the schema pgtrickle."
        return problem("pg_trickle extension", "the pg_trickle extension is installed in this database", remedy)
    return ok("pg_trickle extension", "absent")


def check_rights(connection: Connection) -> Check:
    """Check that the role owns the catalog or, where there is none yet, may create it."""
    role = _value(connection, "SELECT quote_ident(current_user)")
    owner = _value(connection, "SELECT nspowner::regrole::text FROM pg_namespace WHERE nspname = 'pgtrickle'")
    if owner is not None:
        if _value(connection, "SELECT pg_has_role(to_regrole(%s), 'USAGE')", owner):
            return ok("rights", f"{role} may maintain the catalog, which {owner} owns")
        remedy = f"Connect as {owner}, or have it granted by: GRANT {owner} TO {role}."
        return problem("rights", f"{role} may not maintain the catalog, which {owner} owns", remedy)
    if _value(connection, "SELECT has_database_privilege(current_database(), 'CREATE')"):
        return ok("rights", f"{role} may create schemas in this database")
    database = _value(connection, "SELECT quote_ident(current_database())")
    remedy = f"Have the owner of the database run: GRANT CREATE ON DATABASE {database} TO {role}."
    return problem("rights", f"{role} may not create schemas in this database", remedy)


def check_catalog(connection: Connection, verify: Callable[[Connection], None]) -> Check:
    """Check that the catalog is the one this package was written for; raise what `verify` raises if not.

    Check also that every source of a watermark group still exists.
    """
    verify(connection)
    if dropped := connection.execute(DROPPED).fetchall():
        sentences = "; ".join(f"source {name} of group {group} was dropped" for name, group in dropped)
        names = [sql.Literal(name).as_string(connection) for name in dict.fromkeys(name for name, _ in dropped)]
        remedies = (
            f"If it was created again: SELECT pgtrickle.adopt_source({name}), "
            f"else SELECT pgtrickle.forget_source({name})."
            for name in names
        )
        return problem("catalog", sentences, " ".join(remedies))
    return ok("catalog", "installed, of this package's version")


def check_stream_tables(connection: Connection) -> Check:
    """Check that no stream table has lost what it needs, or waits for a tick to be computed anew."""
    if not _value(connection, "SELECT to_regprocedure('pgtrickle.problems()') IS NOT NULL"):
        return ok("stream tables", "none yet")
    found = [(row.stream_table, row.problem, row.remedy) for row in problems(connection)]
    if not found:
        return ok("stream tables", "none has lost what it needs")
    remedies = dict.fromkeys(remedy for _, _, remedy in found if remedy)
    sentences = "; ".join(f"{name}: {sentence}" for name, sentence, _ in found)
    return problem("stream tables", sentences, " ".join(remedies))


def check_grants(connection: Connection, grants: Callable[[Connection], tuple[str, ...]]) -> Check:
    """Check that nobody was granted more on the catalog than an install grants."""
    found = grants(connection) if _value(connection, "SELECT to_regnamespace('pgtrickle') IS NOT NULL") else ()
    if found:
        remedy = (
            "Revoke it, or have it taken back: SELECT pgtrickle.settle_grants(); pytrickle install --roles has the"
            " group of owners follow the owner of the catalog."
            if any(grant.startswith("the rights of") for grant in found)
            else "Revoke it, or have it taken back: SELECT pgtrickle.settle_grants()."
        )
        return problem("grants", f"somebody was granted {'; '.join(found)}", remedy)
    return ok("grants", "nobody was granted more than an install grants")


def check_snapshot(connection: Connection, dsn: str) -> Check:
    """Check that a second connection can read the snapshot that the first one exported."""
    with translate_errors(), connect(dsn, role="doctor") as other, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        name = _value(connection, "SELECT pg_export_snapshot()")
        exported = _value(connection, "SELECT pg_current_snapshot()::text")
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        other.execute(filled("SET TRANSACTION SNAPSHOT {name}", name=sql.Literal(name)))
        imported = _value(other, "SELECT pg_current_snapshot()::text")
        other.execute("ROLLBACK")
    if exported != imported:
        remedy = "Connect to the server directly, not through a pooler or load balancer."
        return problem("snapshot", "a second connection read another snapshot than the exported one", remedy)
    return ok("snapshot", "exported by one connection, imported by another")


def check_headroom(connection: Connection) -> Check:
    """Check that the server has connections to spare for a refresh and Spark's readers."""
    free, limit = connection.execute(
        "SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
        " - count(*), current_setting('max_connections')::int"
        " FROM pg_stat_activity WHERE backend_type = 'client backend'"
    ).fetchall()[0]
    if free < CONNECTIONS_NEEDED:
        remedy = "Raise max_connections, or close idle sessions."
        return problem("connections", f"{free} of {limit} are free, a refresh may need {CONNECTIONS_NEEDED}", remedy)
    return ok("connections", f"{free} of {limit} are free")


def check_tcp(connection: Connection) -> Check:
    """Check that the address the JDBC driver will use accepts TCP connections, which a Unix socket does not show."""
    address = urlsplit(jdbc_target(connection).url.removeprefix("jdbc:"))
    host, port = address.hostname or "localhost", address.port or 5432
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError as error:
        remedy = "Let the server listen on TCP (listen_addresses) and the firewall pass: Spark's driver needs it."
        return problem("TCP", f"{host}:{port} cannot be reached: {error}", remedy)
    return ok("TCP", f"{host}:{port} accepts connections")


def _value(connection: Connection, query: str, *parameters: object) -> Any:
    row = connection.execute(trusted(query), parameters or None).fetchone()
    return row[0] if row else None
