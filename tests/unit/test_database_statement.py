"""Statements written as expressions run on psycopg, with what they know in their text and the rest as parameters."""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Identity, Integer, MetaData, Table, Text, bindparam, insert, select, update
from sqlalchemy.exc import CompileError

from pytrickle.database.statement import statement
from tests.conftest import Database

notes = Table(
    "notes",
    MetaData(),
    Column("id", Integer, Identity(always=True), primary_key=True),
    Column("state", Text),
    Column("note", Text),
    Column("n", Text),
)


@pytest.fixture
def stored(empty_db: Database) -> Database:
    table = "CREATE TABLE notes (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text, note text, n text)"
    empty_db.execute(table)
    return empty_db


def test_values_that_a_statement_knows_are_no_parameters(stored: Database) -> None:
    awkward = """it's 100%, not %(n)s or :n or "n" """
    connection = stored.connect()
    connection.execute(statement(insert(notes).values(state=awkward), ["note", "n"]), {"note": "%s", "n": None})
    assert stored.execute("TABLE notes") == [(1, awkward, "%s", None)]
    query = select(notes.c.id).where(notes.c.state == awkward, notes.c.note == bindparam("note")).limit(1)
    assert connection.execute(statement(query), {"note": "%s"}).fetchall() == [(1,)]


def test_an_insert_returns_nothing_unless_asked() -> None:
    assert statement(insert(notes), ["n"]) == "INSERT INTO notes (n) VALUES (%(n)s::VARCHAR)"
    assert statement(insert(notes).returning(notes.c.id), ["n"]).endswith("RETURNING notes.id")


def test_none_as_a_value_is_null() -> None:
    assert statement(update(notes).values(n=None)) == "UPDATE notes SET n=NULL"
    assert "note IS NULL" in statement(select(notes.c.id).where(notes.c.note.is_(None)))


def test_a_parameter_may_be_used_twice() -> None:
    note = bindparam("note")
    changed = update(notes).values(note=note).where(notes.c.note.is_distinct_from(note))
    assert statement(changed).count("%(note)s") == 2


def test_a_column_that_the_table_does_not_have_is_an_error() -> None:
    with pytest.raises(CompileError, match="Unconsumed column names: nothing"):
        statement(insert(notes), ["note", "nothing"])
