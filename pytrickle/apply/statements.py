"""Running SQL that we wrote inside the write transaction: statements, tables shaped like a query, index lookups."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from pytrickle.database import filled, settle, trusted

Text = str | sql.Composed

# Rows that a query shows need not fit the domains of its columns.
WITHOUT_DOMAINS = "SELECT pgtrickle_private.without_domains(to_regclass(%(made)s))"
HAND_OVER = """
SELECT pgtrickle_private.without_domains(r), pgtrickle_private.hand_over(r), pgtrickle_private.identify_if_published(r)
FROM to_regclass(%(made)s) AS r
"""
GUARD = "SELECT pgtrickle_private.guard_kept(to_regclass(%(made)s))"


def run(connection: psycopg.Connection, text: Text) -> int:
    """Execute SQL that we wrote and return the number of rows it touched."""
    return connection.execute(trusted(text) if isinstance(text, str) else text).rowcount


def create_like(connection: psycopg.Connection, name: str, query: Text) -> None:
    """Create a temporary table with the columns, types and collations of a query, for this transaction only."""
    template = "CREATE TEMP TABLE {name} ON COMMIT DROP AS {query} WITH NO DATA"
    run(connection, filled(template, name=sql.Identifier(name), query=query))


def create_input(connection: psycopg.Connection, name: str, query: Text) -> None:
    """Create such a table for rows that travelled, of the types by which they are stored."""
    create_like(connection, name, query)
    connection.execute(WITHOUT_DOMAINS, {"made": f"pg_temp.{name}"})


def create_kept(connection: psycopg.Connection, name: str, query: str) -> None:
    """Create an empty table that outlives the transaction, and that only refreshers may write."""
    create_lasting(connection, name, query)
    guard(connection, name)


def guard(connection: psycopg.Connection, name: str) -> None:
    """Let only refreshes write what is kept beside a stream table from now on."""
    connection.execute(GUARD, {"made": name})


def create_lasting(connection: psycopg.Connection, name: str, query: str, kind: str = "TABLE") -> None:
    """Create an empty table that outlives the transaction: it is the catalog owner's, whoever refreshes."""
    run(connection, filled("CREATE {kind} {name} AS\n{query}\nWITH NO DATA", kind=kind, name=name, query=query))
    connection.execute(HAND_OVER, {"made": name})


def drop(connection: psycopg.Connection, tables: str) -> None:
    """Drop the tables of a list, those of them that are there.

    After a DROP the client would drop all prepared statements, and the server had to plan those of every stream table
    anew; after a DO it does not. PostgreSQL notices by itself what became of the tables that a statement names.
    """
    run(connection, filled("DO $pgt$BEGIN DROP TABLE IF EXISTS {tables}; END$pgt$", tables=tables))


# A lookup by index is the same for any rows. Left to itself, PostgreSQL would plan it anew for those of each refresh,
# for it takes a parameter for more rows than there are.
LOOKUPS = {
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_seqscan": "off",
    "plan_cache_mode": "force_generic_plan",
}
# Rows travel as PostgreSQL writes them, so they are read as it writes them, whatever the query is evaluated under.
AS_WRITTEN = {"array_nulls": "on", "xmloption": "content"}
# One statement, as it is needed in a pipeline.
_SET = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in (LOOKUPS | AS_WRITTEN).items())
LOOK_UP = f"SELECT {_SET}".encode()


@contextmanager
def index_lookups(connection: psycopg.Connection) -> Iterator[None]:
    """Have joins follow the row hash's index, whatever a planner without statistics would guess.

    Before the first ANALYZE it takes an indexed expression for 200 values and prefers to read the whole table.
    """
    connection.execute(LOOK_UP)
    yield
    settle(connection, (f"SET LOCAL {name} TO DEFAULT" for name in LOOKUPS))
