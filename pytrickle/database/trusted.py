"""SQL that the planner or PostgreSQL itself wrote, on its way to psycopg: whole statements, and parts of templates."""

from collections.abc import Iterable

import psycopg
from psycopg import sql


def trusted(text: str) -> sql.SQL:
    """Pass on SQL that the planner or PostgreSQL itself wrote; it is never formatted again."""
    return sql.SQL(text)


def filled(template: str, **parts: sql.Composable | str) -> sql.Composed:
    """Fill the named places of a template, by SQL that the planner or PostgreSQL wrote, or as psycopg quotes it.

    Values are no parts: they are parameters of the statement.

    >>> counted = filled("SELECT count(*) FROM {table} WHERE {test}", table=sql.Identifier("a b"), test="x > %s")
    >>> counted.as_string()
    'SELECT count(*) FROM "a b" WHERE x > %s'
    """
    return sql.SQL(template).format(
        **{name: trusted(part) if isinstance(part, str) else part for name, part in parts.items()}
    )


def settle(connection: psycopg.Connection, settings: Iterable[str]) -> None:
    """Run statements that set something, such as SET LOCAL, by one message instead of one each."""
    connection.execute("; ".join(settings).encode())


def function_call(function: str, arguments: Iterable[sql.Composed]) -> sql.Composed:
    """Call a function of the catalog's public schema.

    >>> function_call("pause", [filled("name => %s")]).as_string()
    'SELECT "pgtrickle"."pause"(name => %s)'
    """
    name = sql.Identifier("pgtrickle", function)
    return filled("SELECT {name}({arguments})", name=name, arguments=sql.SQL(", ").join(arguments))
