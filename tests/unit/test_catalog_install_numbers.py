"""A catalog that numbered stream tables by integers is upgraded, or names what of the user's stands in the way."""

from __future__ import annotations

import pytest

from pytrickle.catalog import install as migrate
from pytrickle.errors import MigrationError
from tests.conftest import Database

NUMBERS = 21
TYPES = (
    "SELECT DISTINCT data_type FROM information_schema.columns"
    " WHERE table_schema = 'pgtrickle' AND column_name = 'pgt_id'"
)


@pytest.fixture
def older(every_empty_db: Database) -> Database:
    """A catalog of before with two groups, of which one has lost its source."""
    for script in migrate.scripts():
        if 0 < script.version < NUMBERS:
            every_empty_db.execute(script.text)
            every_empty_db.execute(script.record)
    every_empty_db.execute("CREATE TABLE orders (id integer); CREATE TABLE gone (id integer)")
    every_empty_db.execute(
        "INSERT INTO pgtrickle.pgt_watermark_groups (group_name, sources, tolerance) SELECT name, "
        "ARRAY[name::regclass], '0' FROM unnest('{orders,gone}'::text[]) AS name; DROP TABLE gone"
    )
    return every_empty_db


def test_numbers_become_wider_and_owners_of_sources_are_known_where_they_can_be(older: Database) -> None:
    assert older.execute(TYPES) == [("integer",)]
    migrate.install(older.connect())
    assert older.execute(TYPES) == [("bigint",)]
    sequence = (
        "SELECT seqtypid::regtype::text FROM pg_sequence WHERE seqrelid = pg_get_serial_sequence(%s, %s)::regclass"
    )
    assert older.value(sequence, "pgtrickle.pgt_stream_tables", "pgt_id") == "bigint"
    owners = "SELECT group_name, source_owners FROM pgtrickle.pgt_watermark_groups ORDER BY 1"
    assert older.execute(owners) == [("gone", [None]), ("orders", ["postgres"])]


@pytest.mark.parametrize("read", ["pgt_stream_tables", "pgt_refresh_history"])
def test_a_view_of_the_users_that_stands_in_the_way_is_named_and_nothing_is_changed(older: Database, read: str) -> None:
    older.execute(f"CREATE VIEW dashboard AS SELECT pgt_id FROM pgtrickle.{read}")
    with pytest.raises(MigrationError, match=r"something of yours is made of the catalog: .*dashboard") as failure:
        migrate.install(older.connect())
    assert failure.value.hint == "Drop it, install, and create it again."
    assert older.execute(TYPES) == [("integer",)]
    older.execute("DROP VIEW dashboard")
    migrate.install(older.connect())
    assert older.execute(TYPES) == [("bigint",)]
