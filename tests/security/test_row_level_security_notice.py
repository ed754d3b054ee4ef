"""Who creates a stream table is told whose row-level security it does not carry."""

from __future__ import annotations

import pytest

from tests.conftest import Database
from tests.security.staff import staff


def test_a_source_with_policies_is_told_of_when_the_stream_table_is_created(every_db: Database) -> None:
    every_db.execute("CREATE TABLE orders (id integer); CREATE TABLE notes (id integer) PARTITION BY RANGE (id)")
    every_db.execute("CREATE TABLE notes_1 PARTITION OF notes FOR VALUES FROM (0) TO (9)")
    every_db.execute("CREATE VIEW seen AS SELECT id FROM orders")
    connection, told = every_db.connect(), []
    connection.add_notice_handler(lambda notice: told.append(notice.message_primary))
    connection.execute("SELECT pgtrickle.create_stream_table('silent', 'SELECT id FROM seen JOIN notes USING (id)')")
    assert told == []
    every_db.execute("ALTER TABLE orders ENABLE ROW LEVEL SECURITY; ALTER TABLE notes_1 ENABLE ROW LEVEL SECURITY")
    connection.execute("SELECT pgtrickle.create_stream_table('open', 'SELECT id FROM seen JOIN notes USING (id)')")
    sentence = (
        "the stream table public.open does not carry the row-level security of public.notes_1, public.orders:"
        " whoever may read it sees all of its rows"
    )
    assert told == [sentence]
    connection.execute("SELECT pgtrickle.alter_stream_table('silent', query => 'SELECT id FROM orders')")
    assert told[1:] == [sentence.replace("open", "silent").replace("public.notes_1, ", "")]


def test_the_notice_reaches_those_who_create_by_python_or_on_the_command_line(
    every_db: Database, caplog: pytest.LogCaptureFixture
) -> None:
    with staff(every_db) as world:
        world.db.execute("ALTER TABLE people ENABLE ROW LEVEL SECURITY")
        world.client.create_stream_table("kept", "SELECT id FROM people")
    (record,) = caplog.records
    assert record.getMessage().startswith("the stream table public.kept does not carry the row-level security of")
    assert "policies of its own" in record.getMessage()
