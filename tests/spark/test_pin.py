"""Spark's reads are pinned to the exported snapshot, by an option whose absence nobody would notice."""

from __future__ import annotations

from collections.abc import Iterator
from time import sleep
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pytrickle
from pytrickle.compute.spark.jdbc import FETCH_SIZE, PinnedReader, ctid_ranges
from pytrickle.database import Snapshot, exported_snapshot, jdbc_target
from pytrickle.plan.spark.reads import CTID
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "SELECT CAST(id AS text) AS id, ctid AS pgt_ctid FROM public.numbers"


@pytest.fixture
def numbers(db: Database) -> Database:
    """A table of 1000 numbers on several pages."""
    db.execute("CREATE TABLE numbers (id int PRIMARY KEY, filler text)")
    db.execute("INSERT INTO numbers SELECT n, repeat('x', 100) FROM generate_series(1, 1000) AS n")
    return db


def _reader(spark: SparkSession, db: Database, snapshot: Snapshot, **options: Any) -> PinnedReader:
    return PinnedReader(spark, jdbc_target(db.connect()), snapshot.name, (), **options)


def _change(db: Database) -> None:
    db.execute("INSERT INTO numbers SELECT n, '' FROM generate_series(1001, 1010) AS n")
    db.execute("DELETE FROM numbers WHERE id <= 500")


def _ids(frame: Any) -> set[int]:
    return {int(row.id) for row in frame.collect()}


@pytest.mark.parametrize(("fetch_size", "seen"), [(FETCH_SIZE, range(1, 1001)), ("0", range(501, 1011))])
def test_read_sees_the_snapshot_and_only_because_of_the_fetch_size(
    numbers: Database, spark: SparkSession, fetch_size: str, seen: range
) -> None:
    with exported_snapshot(numbers.dsn) as snapshot:
        _change(numbers)
        frame = _reader(spark, numbers, snapshot, fetch_size=fetch_size).read(f"SELECT id FROM ({ROWS}) AS r")
        assert _ids(frame) == set(seen)


def _slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        sleep(0.6)
        yield batch


def test_a_task_may_compute_for_long_between_two_parts_of_what_it_reads(numbers: Database, spark: SparkSession) -> None:
    numbers.execute(f"ALTER DATABASE {numbers.connect().info.dbname} SET idle_in_transaction_session_timeout = '300ms'")
    with exported_snapshot(numbers.dsn) as snapshot:
        frame = _reader(spark, numbers, snapshot, fetch_size="100").read("SELECT id FROM public.numbers")
        spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "400")
        try:
            assert _ids(frame.mapInArrow(_slowly, frame.schema)) == set(range(1, 1001))
        finally:
            spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_every_partition_of_a_parallel_read_sees_the_snapshot(numbers: Database, spark: SparkSession) -> None:
    numbers.execute("VACUUM ANALYZE numbers")
    pages = numbers.value("SELECT relpages FROM pg_class WHERE oid = 'numbers'::regclass")
    ranges = ctid_ranges(pages, 4)
    assert len(ranges) == 4
    with exported_snapshot(numbers.dsn) as snapshot:
        _change(numbers)
        frame = _reader(spark, numbers, snapshot).read_ranges(ROWS, ranges)
        assert frame.columns == ["id", CTID]
        rows = [int(row.id) for row in frame.collect()]
    assert sorted(rows) == list(range(1, 1001))


def test_read_uses_the_settings_it_was_given(numbers: Database, spark: SparkSession) -> None:
    with exported_snapshot(numbers.dsn) as snapshot:
        reader = PinnedReader(
            spark, jdbc_target(numbers.connect()), snapshot.name, ("SET LOCAL TimeZone = 'Asia/Kathmandu'",)
        )
        frame = reader.read(
            "SELECT CAST(TIMESTAMPTZ '2026-01-01 00:00+00' AS text) AS moment, current_setting('enable_seqscan')",
            ("SET LOCAL enable_seqscan = off",),
        )
        assert [tuple(row) for row in frame.collect()] == [("2026-01-01 05:45:00+05:45", "off")]


def test_snapshot_is_gone_with_its_holder_and_the_read_fails_instead_of_reading_on(
    numbers: Database, spark: SparkSession
) -> None:
    with exported_snapshot(numbers.dsn) as snapshot:
        reader = _reader(spark, numbers, snapshot)
    with pytest.raises(Exception, match="snapshot"):
        reader.read("SELECT CAST(id AS text) AS id FROM public.numbers").collect()


SETUP = """
CREATE SCHEMA "my tools";
CREATE TABLE t (id int PRIMARY KEY, s text);
INSERT INTO t VALUES (1, 'a');
CREATE FUNCTION "my tools".one() RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
SET search_path = public, "my tools";
CREATE FUNCTION ids() RETURNS SETOF int STABLE LANGUAGE sql AS 'SELECT id + one() FROM t'
"""


def test_the_columns_of_a_query_are_asked_for_in_a_session_that_reads_its_text_alike(
    db: Database, spark: SparkSession
) -> None:
    queries = {"by_path": "SELECT i FROM ids() AS i", "backslash": r"SELECT id, s || '\' AS s FROM t"}
    with db.connect() as creator:
        creator.execute(SETUP)
        for name, query in queries.items():
            creator.execute("SELECT pgtrickle.create_stream_table(%s, %s)", (name, query))
    db.execute(f"ALTER DATABASE {db.value('SELECT current_database()')} SET standard_conforming_strings = off")
    with pytrickle.connect(db.dsn, spark, direct_delta_rows=0) as client:
        assert {(result.action, result.error) for result in client.tick()} == {("FULL", None)}
        db.execute("INSERT INTO t VALUES (5, 'b')")
        assert {(result.action, result.error) for result in client.tick()} == {("FULL", None), ("DIFFERENTIAL", None)}
    assert sorted(db.execute("SELECT * FROM by_path")) == [(2,), (6,)]
    assert sorted(db.execute("SELECT * FROM backslash")) == [(1, "a\\"), (5, "b\\")]
