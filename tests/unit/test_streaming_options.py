"""Options of the format `pytrickle` that cannot be are refused before anything is read."""

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.streaming.source.options import Options

WRONG = (
    ({}, "table is missing"),
    ({"table": "t", "sheet": "1"}, "no option 'sheet'"),
    ({"table": "t", "version": "1", "asOf": "2"}, "exclude each other"),
    ({"table": "t", "group": "g"}, "without asOf"),
    ({"table": "t", "readChangeFeed": "true", "partitions": "2"}, "one task"),
    ({"table": "t", "asOf": "2026-03-02T12:00"}, "no UTC offset"),
    ({"table": "t", "asOf": "noon"}, "not a time"),
    ({"table": "t", "readChangeFeed": "true", "asOf": "2"}, "not its changes"),
    ({"table": "t", "readChangeFeed": "yes"}, "no value"),
    ({"table": "t", "startingVersion": "1", "startingTimestamp": "2"}, "exclude each other"),
    ({"table": "t", "startingVersion": "1"}, "startingVersion is for changes"),
    ({"table": "t", "computeUpdates": "true", "readChangeFeed": "false"}, "computeUpdates is for changes"),
    ({"table": "t", "feed": "f"}, "feed is for changes"),
    ({"table": "t", "readChangeFeed": "true", "maxVersionsPerTrigger": "0"}, "0 is too small"),
    ({"table": "t", "partitions": "0"}, "0 is too small"),
    ({"table": "t", "partitions": "10001"}, "too large for the option partitions"),
    ({"table": "t", "version": str(2**63)}, "too large for the option version"),
    ({"table": "t", "asOf": str(2**63)}, "too large for the option asof"),
    ({"table": "t", "asOf": "0001-01-01T00:00+14:00"}, "not a time"),
    ({"table": "t", "columns": "id, id"}, "one twice"),
    ({"table": "t", "columns": "id,,amount"}, "no name"),
)


def test_a_column_with_a_comma_in_its_name_stands_in_quotes() -> None:
    read = Options.of({"dsn": "", "table": "t", "columns": 'id, "last, first", "a ""b"""'})
    assert read.columns == ("id", "last, first", 'a "b"')


def test_what_cannot_be_read_is_refused_and_no_password_is_shown() -> None:
    for options, match in WRONG:
        with pytest.raises(InvalidArgument, match=match) as refused:
            Options.of({"dsn": "postgresql://me:s3cr3t@db/shop", **options})
        assert "s3cr3t" not in f"{refused.value} {refused.value.hint}"
    assert "s3cr3t" not in repr(Options.of({"dsn": "postgresql://me:s3cr3t@db/shop", "table": "t"}))
