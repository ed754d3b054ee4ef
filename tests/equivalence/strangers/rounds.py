"""Queries as stream tables of one database, compared after the first load and after each round of changes."""

import psycopg

from pytrickle.client.client import Client
from pytrickle.errors import PytrickleError, QueryRefused
from tests.conftest import Database
from tests.equivalence.oracle import differences
from tests.equivalence.strangers.changes import ROUNDS, change, move_rows
from tests.equivalence.strangers.played import Played

_SOURCES = (
    "SELECT DISTINCT source_relid::oid::int FROM pgtrickle.pgt_dependencies WHERE source_type = 'TABLE' ORDER BY 1"
)
_ORDERS = 6  # in which the rows are stored when a query is compared with itself
_PLANS = (
    (),
    ("enable_hashjoin", "enable_hashagg", "enable_indexscan", "enable_indexonlyscan"),
    ("enable_mergejoin", "enable_sort", "enable_seqscan", "enable_incremental_sort"),
    ("enable_nestloop", "enable_hashagg", "enable_bitmapscan", "enable_material"),
)


def play(db: Database, client: Client, queries: list[Played]) -> None:
    """Make stream tables of the queries, change what they read, and note what becomes of them."""
    names = {f"strange{number}": played for number, played in enumerate(queries)}
    for name, played in names.items():
        _create(db, client, name, played)
    live = {name: played for name, played in names.items() if played.status == "equal"}
    tables = _sources(db.connect())
    for number in range(len(ROUNDS) + 1):
        if number:
            change(db.connect(), number - 1, tables)
        _tick(client, live)
        for name, played in live.items():
            if played.status in {"equal", "failed"}:
                _compare(db, name, played)


def _sources(connection: psycopg.Connection) -> list[int]:
    return [relid for (relid,) in connection.execute(_SOURCES.encode())]


def _create(db: Database, client: Client, name: str, played: Played) -> None:
    try:
        text = _usable(db, name, played.query)
    except psycopg.Error as error:
        played.refused("unusable", error)
        return
    try:
        client.create_stream_table(name, text)
    except QueryRefused as error:
        played.refused("refused", error)
    except PytrickleError as error:
        played.refused("failed", error)
    except Exception as error:
        played.refused("crash", error)


def _usable(db: Database, name: str, query: str) -> str:
    """Make the view that the stream table must equal; return the query with a view's distinct column names."""
    with db.connect() as connection:
        try:
            connection.execute(f"CREATE VIEW expected_{name} AS {query}".encode())
        except psycopg.errors.DuplicateColumn:
            columns = connection.execute(f"SELECT * FROM ({query}) AS q LIMIT 0".encode()).description or ()
            names = ", ".join(f"c{number}" for number in range(len(columns)))
            connection.execute(f"CREATE VIEW expected_{name} ({names}) AS {query}".encode())
            ((query,),) = connection.execute(f"SELECT pg_get_viewdef('expected_{name}'::regclass)".encode())
        connection.execute(f"SELECT * FROM expected_{name}".encode())
    return query


def _tick(client: Client, live: dict[str, Played]) -> None:
    going = {name: played for name, played in live.items() if played.status == "equal"}
    try:
        results = {result.stream_table.removeprefix("public."): result for result in client.tick()}
    except Exception as error:
        for played in going.values():
            played.refused("crash", error)
        return
    for name, played in going.items():
        if name in results:
            played.refreshed(str(results[name].action), results[name].error or results[name].reason)


def _compare(db: Database, name: str, played: Played) -> None:
    with db.connect() as connection:
        try:
            wrong = _differences(connection, name)
        except psycopg.Error as error:
            played.refused("indeterminate", error)
            return
        if wrong and played.status == "equal":
            played.status = "unequal" if _is_determinate(connection, name) else "indeterminate"
            played.detail = f"after {len(played.actions)} refreshes: {wrong[:6]}"


def _differences(connection: psycopg.Connection, name: str) -> list[tuple[str, int]]:
    """Compare by equality, or by text what has none."""
    try:
        return differences(connection, name, f"TABLE expected_{name}", False)
    except (psycopg.errors.UndefinedFunction, psycopg.errors.DatatypeMismatch):
        return differences(connection, name, f"TABLE expected_{name}", True)


def _is_determinate(connection: psycopg.Connection, name: str) -> bool:
    """Whether other plans, and the same rows stored in another order, give the same answer."""
    answers = set()
    for order in range(_ORDERS):
        with connection.transaction(force_rollback=True):
            if order:
                move_rows(connection, _sources(connection), order)
            answers |= {_answer(connection, name, settings) for settings in _PLANS}
    return len(answers) == 1


def _answer(connection: psycopg.Connection, name: str, settings: tuple[str, ...]) -> tuple[str, ...]:
    with connection.transaction(force_rollback=True):
        for setting in settings:
            connection.execute(f"SET LOCAL {setting} = off".encode())
        rows = connection.execute(f"SELECT q::text FROM expected_{name} AS q".encode())
        return tuple(sorted(str(row) for row in rows))
