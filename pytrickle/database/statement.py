"""The text of a statement that is written as an expression over the catalog's tables, as psycopg runs it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ClauseElement, Insert, Update, bindparam
from sqlalchemy.dialects.postgresql.psycopg import PGCompiler_psycopg, PGDialect_psycopg


def statement(expression: ClauseElement, columns: Iterable[str] = ()) -> str:
    """Return a statement's text: what it is given is a parameter ``%(name)s``, what it knows is part of the text.

    An INSERT or UPDATE also sets the columns that are named beside it, each to the parameter of its name. Give a text
    without parameters an empty mapping if it holds a percent sign: psycopg reads it as doubled only then.

    >>> from sqlalchemy import Column, Integer, MetaData, Table, Text, bindparam, update
    >>> t = Table("t", MetaData(), Column("id", Integer), Column("state", Text), Column("error", Text))
    >>> statement(update(t).where(t.c.id == bindparam("id")).values(state="failed"), ["error"])
    "UPDATE t SET state='failed', error=%(error)s::VARCHAR WHERE t.id = %(id)s::INTEGER"
    """
    if isinstance(expression, Insert | Update):
        expression = expression.values({name: bindparam(name) for name in columns})
    if isinstance(expression, Insert):
        expression = expression.inline()  # SQLAlchemy would otherwise also return the number of the row.
    return str(expression.compile(dialect=_Dialect()))  # type: ignore[no-untyped-call]


class _Compiler(PGCompiler_psycopg):
    def visit_bindparam(self, bindparam: Any, *arguments: Any, **options: Any) -> Any:
        options["literal_binds"] = not bindparam.required
        return super().visit_bindparam(bindparam, *arguments, **options)  # type: ignore[no-untyped-call]


class _Dialect(PGDialect_psycopg):
    statement_compiler = _Compiler
