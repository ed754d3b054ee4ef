"""What a server tells of the columns of a query without reading a row."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pytrickle.database import filled
from pytrickle.errors import NotDifferentiable

# PostgreSQL plans nothing of what it need not read. Even to begin with a plan of which no row is asked takes long where
# it gets memory for as many groups as are expected.
NO_ROWS = "SELECT * FROM (SELECT * FROM (\n{query}\n) AS q OFFSET 0) AS q WHERE false"
# The query itself gives no row here. The outer join makes one, on which functions of its columns can be called.
ON_ONE_ROW = "SELECT {items} FROM (SELECT) AS one LEFT JOIN ({query}) AS q({names}) ON true"
DOMAIN = "(SELECT format_type(t.oid, -1) FROM pg_type AS t WHERE t.oid = pg_typeof({}) AND t.typtype = 'd')"
LACKS = re.compile("could not identify an (order|equality)(?:ing)? operator for type (.+)")
COLLATED = "SELECT coalesce(array_agg(oid), '{}') FROM pg_type WHERE oid = ANY (%s) AND typcollation <> 0"
# Classes of what says nothing about the query but only what kept the server from answering: connection, state of the
# transaction, rollback, resources, locks, an operator, the system. Of a lost connection the client tells by none.
NOT_ABOUT_THE_QUERY = frozenset({"", "08", "25", "40", "53", "55", "57", "58"})


def collations(connection: psycopg.Connection, query: str) -> tuple[str | None, ...]:
    """Return the collation of every column of a query, as it is written; None for none and for the default one."""
    with splitting(connection):
        types = _types(connection, query)
        row = connection.execute(COLLATED, (types,)).fetchone()
        collated = row[0] if row else []
        found = _of_each(
            connection, query, ["pg_collation_for({})::text" if oid in collated else "NULL" for oid in types]
        )
    return tuple(None if name in (None, '"default"') else str(name) for name in found)


def domains(connection: psycopg.Connection, query: str) -> tuple[str | None, ...]:
    """Return the domain of every column of a query; None where its type is none."""
    with splitting(connection):
        found = _of_each(connection, query, [DOMAIN] * len(_types(connection, query)))
    return tuple(None if name is None else str(name) for name in found)


def _types(connection: psycopg.Connection, query: str) -> list[int]:
    cursor = connection.execute(filled(NO_ROWS, query=query))
    return [column.type_code for column in cursor.description or ()]


def _of_each(connection: psycopg.Connection, query: str, asked: list[str]) -> tuple[object, ...]:
    """Return the value of an expression of each column, of a row in which all are NULL."""
    names = ", ".join(f"c{i}" for i in range(len(asked)))
    items = ", ".join(each.format(f"q.c{i}") for i, each in enumerate(asked))
    nothing = filled(NO_ROWS, query=query)
    return connection.execute(filled(ON_ONE_ROW, items=items, query=nothing, names=names)).fetchone() or ()


def raise_unless_about_the_query(error: psycopg.Error) -> None:
    """Raise an error again that says nothing about a query, so that nobody remembers it as what the query is like."""
    if (error.sqlstate or "")[:2] in NOT_ABOUT_THE_QUERY:
        raise error


@contextmanager
def splitting(connection: psycopg.Connection) -> Iterator[None]:
    """Turn the server's error into NotDifferentiable: PostgreSQL cannot compute a part of the query alone."""
    try:
        with connection.transaction():
            yield
    except psycopg.Error as error:
        raise_unless_about_the_query(error)
        said = error.diag.message_primary or "no reason"
        if lacks := LACKS.search(said):
            what = f"values of type {lacks[2]}, which have no {lacks[1]}"
            raise NotDifferentiable(f"rows that a delta tells apart by {what}") from error
        raise NotDifferentiable(f"a part of the query that PostgreSQL cannot compute alone: {said}") from error
