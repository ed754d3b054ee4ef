"""The format `pytrickle` in Spark: tables as of a moment, and the changes between them, in batch and streaming."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

from pytrickle.database import exported_snapshot
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT = ("2026-03-02T12:00Z", "2026-03-02T13:00Z", "2026-03-02T14:00Z")
SIGNS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

Rows = Counter[tuple[Any, ...]]


@pytest.fixture
def orders(db: Database) -> Database:
    """A table with a feed at three watermarks, between which rows came, changed and went."""
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10,2), at timestamptz)")
    db.execute("SELECT pgtrickle.create_feed('shipping', 'orders')")
    db.execute("INSERT INTO orders SELECT n, n, now() FROM generate_series(1, 500) AS n")
    advance(db, 0)
    change(db)
    advance(db, 1)
    db.execute("DELETE FROM orders WHERE id % 9 = 0")
    advance(db, 2)
    return db


def advance(db: Database, number: int) -> None:
    db.execute("SELECT pgtrickle.advance_watermark('orders', %s)", AT[number])


def change(db: Database) -> None:
    db.execute("UPDATE orders SET amount = amount + 1, id = id + (SELECT max(id) FROM orders) WHERE id % 7 = 0")
    db.execute("UPDATE orders SET amount = amount + 0.5 WHERE id % 5 = 0")
    db.execute("DELETE FROM orders WHERE id % 11 = 0")
    db.execute("INSERT INTO orders SELECT n, n, now() FROM generate_series(3000, 3050) AS n ON CONFLICT DO NOTHING")


def read(spark: SparkSession, db: Database, **options: object) -> DataFrame:
    return spark.read.format("pytrickle").options(dsn=db.dsn, table="orders", **options).load()


def rows(frame: DataFrame) -> Rows:
    return Counter(tuple(row)[:2] for row in frame.collect())


def now(db: Database) -> Rows:
    return Counter(db.execute("SELECT id, amount FROM orders"))


def changed(before: Rows, changes: list[Any]) -> Rows:
    after = Counter(before)
    for kind, _, _, *row in changes:
        after[tuple(row[:2])] += SIGNS[kind]
    return +after


@pytest.mark.repeats
def test_as_of_reads_agree_whatever_is_written_between_their_partitions(orders: Database, spark: SparkSession) -> None:
    """Each partition reads in a snapshot of its own, and a writer commits before each of them."""
    before = now(orders)
    frame = read(spark, orders, asOf=AT[2], partitions=3)
    parts: list[Rows] = []
    for number in range(3):
        change(orders)
        parts.append(Counter(map(tuple, orders.execute(
            "SELECT id, amount FROM pgtrickle.as_of_version(NULL::orders, 3, 3, %s)", number))))  # fmt: skip
    assert sum(parts, Counter()) == before != now(orders)
    assert rows(frame) == before
    assert frame.rdd.getNumPartitions() == 3
    assert rows(read(spark, orders, asOf=AT[2], columns="amount, id").select("id", "amount")) == before
    assert rows(read(spark, orders)) == now(orders)


@pytest.mark.repeats
def test_partitions_of_an_exported_snapshot_read_one_moment(orders: Database, spark: SparkSession) -> None:
    orders.execute("INSERT INTO orders SELECT n, n, now() FROM generate_series(5000, 9000) AS n")
    with exported_snapshot(orders.dsn) as snapshot:
        before = now(orders)
        frame = read(spark, orders, snapshot=snapshot.name, partitions=3)
        change(orders)
        assert rows(frame) == before != now(orders)
        orders.execute("TRUNCATE orders")
        with pytest.raises(PySparkException, match="truncated or rewritten"):
            frame.collect()
    with pytest.raises(PySparkException, match="snapshot"):
        frame.collect()


def test_changes_lead_from_one_read_to_another(orders: Database, spark: SparkSession) -> None:
    before, after = rows(read(spark, orders, asOf=AT[0])), now(orders)
    bounds = {"startingTimestamp": AT[0], "startingBoundInclusive": "false", "readChangeFeed": "true"}
    changes = read(spark, orders, **bounds, computeUpdates="true").collect()
    assert changed(before, changes) == after != before
    assert {change[0] for change in changes} == set(SIGNS)


@pytest.mark.repeats
def test_the_bounds_of_changes_are_included_or_not(orders: Database, spark: SparkSession) -> None:
    at = [rows(read(spark, orders, asOf=moment)) for moment in AT]
    feed = {"readChangeFeed": "true"}
    own = read(spark, orders, **feed, startingVersion=2, endingVersion=2).collect()
    assert changed(at[0], own) == at[1]
    assert {change[1] for change in own} == {2}
    until = {"endingTimestamp": AT[2], "endingBoundInclusive": "false"}
    assert read(spark, orders, **feed, startingTimestamp=AT[1], **until).collect() == own
    net = read(spark, orders, **feed, startingTimestamp=AT[1], deduplicationMode="netChanges").collect()
    assert changed(at[0], net) == at[2]


@pytest.mark.repeats
def test_what_cannot_be_read_is_refused_without_the_password(orders: Database, spark: SparkSession) -> None:
    secret = orders.dsn.replace("postgres@", "postgres:s3cr3t@")
    reader = spark.read.format("pytrickle").options(dsn=secret, table="orders")
    attempts = (
        *({"asOf": "2026-03-02T15:00Z"}, {"asOf": "2026-01-01T00:00Z"}, {"version": "9"}, {"partitions": "x"}),
        *({"sheet": "1"}, {"asOf": AT[0], "group": "nobody"}, {"readChangeFeed": "true"}, {"table": "nowhere"}),
    )
    for options in attempts:
        with pytest.raises(PySparkException) as raised:
            reader.options(**options).load().collect()
        assert "s3cr3t" not in str(raised.value), options
        reader = spark.read.format("pytrickle").options(dsn=secret, table="orders")
    frame = reader.load()
    assert "s3cr3t" not in frame._jdf.queryExecution().toString()


def stream(spark: SparkSession, db: Database, place: Path, **options: object) -> int:
    """Have a streaming query append to Parquet all that is complete now; return how many batches it took."""
    source = spark.readStream.format("pytrickle").options(
        dsn=db.dsn, table="orders", feed="shipping", readChangeFeed="true", **options
    )
    query = (
        source.load()
        .writeStream.format("parquet")
        .option("path", str(place / "rows"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sum(1 for progress in query.recentProgress if progress.numInputRows)


@pytest.mark.repeats
def test_a_stream_follows_from_its_checkpoint_and_says_what_it_has_read(
    orders: Database, spark: SparkSession, tmp_path: Path
) -> None:
    first = rows(read(spark, orders, version=1))
    start = {"startingVersion": 1, "startingBoundInclusive": "false", "maxVersionsPerTrigger": 1}
    assert stream(spark, orders, tmp_path, **start) == 2
    assert changed(first, spark.read.parquet(str(tmp_path / "rows")).collect()) == now(orders)
    change(orders)
    assert stream(spark, orders, tmp_path, **start) == 0
    orders.execute("SELECT pgtrickle.advance_watermark('orders', 'infinity')")
    change(orders)
    assert stream(spark, orders, tmp_path, **start) == 1
    assert changed(first, spark.read.parquet(str(tmp_path / "rows")).collect()) == rows(read(spark, orders, version=4))
    assert orders.value("SELECT read_version FROM pgtrickle.feeds()") >= 3
