"""Look at everything pytrickle needs and say what is missing, each problem with its remedy."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import psycopg

from pytrickle.database import connect, translate_errors
from pytrickle.errors import PytrickleError
from pytrickle.inspect.doctor import server
from pytrickle.inspect.doctor.check import Check, attempt, ok, problem

# What to do about a catalog that lacks a part, by what the server says of it: some restores, or hands, leave that.
RESTORE = (
    "Restore the database again, its section post-data included. Without a backup, have the catalog made anew: drop the"
    " schemas whose names begin with pgtrickle, then run pytrickle install."
)
WRITE_FUNCTIONS = (
    "Have its functions written anew: DELETE FROM pgtrickle.pgt_schema_version WHERE version = 0, then run pytrickle"
    " install."
)
LACKING = {"42883": WRITE_FUNCTIONS, "42P01": RESTORE, "42703": RESTORE, "42704": RESTORE, "3F000": RESTORE}


@dataclass(frozen=True, slots=True)
class Probes:
    """What the doctor needs from other parts of the package.

    `find_java` and `find_jar` say which Java runtime and JDBC driver Spark will use, `find_archive` what makes its
    start faster; `verify_catalog` looks whether the catalog fits the package, `trust` to whom all of it belongs,
    `grants` what was granted on it; `read_pinned` lets Spark read an exported snapshot and says in words what it saw,
    None leaves Spark out of it. Each raises one of our errors, with a hint, when something is wrong.
    """

    find_java: Callable[[], str]
    find_jar: Callable[[], str]
    find_archive: Callable[[], str]
    verify_catalog: Callable[[psycopg.Connection[Any]], None]
    trust: Callable[[psycopg.Connection[Any]], str]
    grants: Callable[[psycopg.Connection[Any]], tuple[str, ...]]
    read_pinned: Callable[[], str] | None = None


def examine(dsn: str, probes: Probes) -> Iterator[Check]:
    """Yield the checks of the machine, then of the server behind `dsn`; no password is ever part of one.

    Nothing is written. When the server cannot be reached, its further checks are left out.
    """
    yield attempt("Java", probes.find_java)
    yield attempt("JDBC driver", probes.find_jar)
    yield attempt("Java classes", probes.find_archive)
    try:
        connection = connect(dsn, role="doctor")
    except PytrickleError as error:
        yield problem("connection", str(error), error.hint)
        return
    with connection:
        yield from _examine_server(connection, dsn, probes)
    if probes.read_pinned is not None:
        yield attempt("Spark", probes.read_pinned)


def _examine_server(connection: psycopg.Connection[Any], dsn: str, probes: Probes) -> Iterator[Check]:
    info = connection.info
    yield ok("connection", f"database {info.dbname} at {info.host}:{info.port} as {info.user}")
    looks: tuple[tuple[str, Callable[[], Check]], ...] = (
        ("server version", lambda: server.check_version(connection)),
        ("pg_trickle extension", lambda: server.check_extension(connection)),
        ("rights", lambda: server.check_rights(connection)),
        ("ownership", lambda: ok("ownership", f"all of the catalog belongs to {probes.trust(connection)}")),
        ("catalog", lambda: server.check_catalog(connection, probes.verify_catalog)),
        ("stream tables", lambda: server.check_stream_tables(connection)),
        ("grants", lambda: server.check_grants(connection, probes.grants)),
        ("snapshot", lambda: server.check_snapshot(connection, dsn)),
        ("connections", lambda: server.check_headroom(connection)),
        ("TCP", lambda: server.check_tcp(connection)),
    )
    of_the_catalog = None
    for name, look in looks:
        check = _taken(name, look, of_the_catalog)
        # What is amiss with the catalog as a whole is also why a part of it is not there.
        of_the_catalog = check.remedy if name == "catalog" else of_the_catalog
        yield check


def _taken(name: str, look: Callable[[], Check], of_the_catalog: str | None) -> Check:
    try:
        with translate_errors():
            return look()
    except PytrickleError as error:
        remedy = LACKING.get(error.sqlstate or "")
        if remedy is None:
            return problem(name, str(error), error.hint)
        return problem(name, f"the catalog is incomplete: {error}", of_the_catalog or remedy)
