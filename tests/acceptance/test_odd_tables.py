"""Tables with odd names, columns and values are read as they are, or refused in words that say what to do."""

from __future__ import annotations

from typing import Any

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.streaming.source.data_source import PytrickleReads
from tests.conftest import Database

ODD = '"Odd.Schema"."or""der %s {0}"'


@pytest.fixture
def odd(db: Database) -> Database:
    db.execute('CREATE SCHEMA "Odd.Schema"')
    db.execute(f'CREATE TABLE {ODD} ("Id, x" int PRIMARY KEY, "a""b" text, _change_type text)')
    db.execute("SELECT pgtrickle.create_feed('f', %s)", ODD)
    db.execute(f"INSERT INTO {ODD} VALUES (1, 'x', 'own'), (2, NULL, '')")
    db.execute("SELECT pgtrickle.advance_watermark(%s, '2026-03-02 12:00Z')", ODD)
    db.execute(f'DELETE FROM {ODD} WHERE "Id, x" = 1')
    db.execute("SELECT pgtrickle.advance_watermark(%s, '2026-03-02 13:00Z')", ODD)
    return db


def read(db: Database, **given: object) -> list[tuple[Any, ...]]:
    """Read as Spark does: the schema first, then every part by its columns."""
    source = PytrickleReads({"dsn": db.dsn, **{name: str(value) for name, value in given.items()}})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    assert all(batch.schema.names == schema.fieldNames() for batch in batches)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def test_odd_names_are_read_with_all_their_columns(odd: Database) -> None:
    assert read(odd, table=ODD) == [(2, None, "")]
    assert sorted(read(odd, table=ODD, asOf="2026-03-02T13:00+01:00")) == [(1, "x", "own"), (2, None, "")]


def test_a_column_of_the_table_is_not_taken_for_one_of_changes(odd: Database) -> None:
    changes = {"table": ODD, "readChangeFeed": "true", "startingVersion": 1, "startingBoundInclusive": "false"}
    with pytest.raises(InvalidArgument, match="has a column _change_type, and so do changes"):
        read(odd, **changes)
    ((kind, _, _, text),) = read(odd, **changes, columns='a"b')
    assert (kind, text) == ("delete", "x")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.b.c.d", "'a.b.c.d' is no name of a table"),
        ('"unclosed', "is no name of a table|There is no table"),  # as PostgreSQL says, or since 16 does not
        ("v", "'v' is no table"),
        ("nowhere", "There is no table 'nowhere'"),
    ],
)
def test_what_is_no_table_is_told(db: Database, name: str, said: str) -> None:
    db.execute("CREATE VIEW v AS SELECT 1 AS one")
    with pytest.raises(InvalidArgument, match=said):
        read(db, table=name)


@pytest.mark.parametrize("value", ["infinity", "-infinity"])
@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
def test_an_infinite_time_says_to_leave_its_column_out(every_db: Database, kind: str, value: str) -> None:
    every_db.execute(f"CREATE TABLE t (id int, at {kind})")
    every_db.execute("INSERT INTO t VALUES (1, %s)", value)
    with pytest.raises(InvalidArgument, match="A value cannot be read") as refused:
        read(every_db, table="t")
    assert refused.value.hint == "Leave its column out."
    assert read(every_db, table="t", columns="id") == [(1,)]


def test_a_table_that_goes_between_two_reads_is_missed(db: Database) -> None:
    db.execute("CREATE TABLE t (id int)")
    source = PytrickleReads({"dsn": db.dsn, "table": "t"})
    reader = source.reader(source.schema())
    (part,) = reader.partitions()
    assert not list(reader.read(part))
    db.execute("DROP TABLE t")
    with pytest.raises(InvalidArgument, match="There is no table 't'"):
        list(reader.read(part))
