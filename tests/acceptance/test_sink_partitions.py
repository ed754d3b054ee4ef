"""The sink with a tracker: the least watermark over partitions, which the table need not know of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.streaming import PostgresSinkSource, postgres_sink
from pytrickle.streaming.sink.commit import commit_batch
from pytrickle.streaming.sink.stage import Part, Target
from pytrickle.watermarks import Tracker
from tests.conftest import Database
from tests.unit.moments import noon, seconds

OPTIONS = {"dsn": "host=nowhere", "table": "orders", "sink": "topic", "event_time": "at", "partition": "partition"}


def tracker() -> Tracker:
    return Tracker(watermark_lateness=seconds(5), max_ahead=seconds(3600 * 24 * 365 * 100))


def staged(to: Target, *rows: tuple[int, datetime | None, int | None]) -> Part:
    """Stage rows as a task does."""
    with psycopg.connect(to.dsn, autocommit=True) as task:
        create = "SELECT pgtrickle.create_sink_staging(%s::regclass, 'topic', %s, %s)"
        ((staging,),) = task.execute(create, (to.table, list(to.columns), to.partition)).fetchall()
        task.execute("SET TimeZone TO 'UTC'")
        for row in rows:
            task.execute(f"INSERT INTO pgtrickle_sinks.{staging} VALUES (%s, %s, %s)", row)
    return Part(staging, len(rows), "a query")


@pytest.mark.parametrize("kept", ["", ", partition int"])
def test_the_watermark_is_the_least_over_the_partitions_of_all_tasks(db: Database, kept: str) -> None:
    db.execute(f"CREATE TABLE orders (id int, at timestamptz{kept})")
    db.create_role("loader")
    db.execute("GRANT INSERT ON orders TO loader")
    to = Target(db.dsn.replace("postgres@", "loader@"), "orders", "topic", ("id", "at", "partition"), "partition")
    by = tracker()

    def load(batch: int, *parts: Part) -> Any:
        # The data source is asked anew for each batch, so nothing but the database remembers.
        assert commit_batch(to, batch, parts, by if batch else tracker(), "at")
        return db.value("SELECT watermark FROM pgtrickle.watermarks()")

    assert load(0, staged(to, (1, noon(60), 0), (2, noon(10), 1)), staged(to, (3, noon(70), 0))) == noon(5)
    assert load(1, staged(to, (4, noon(20), 1), (5, noon(10), 1))) == noon(15)
    assert load(2, staged(to, (6, noon(18), None), (7, noon(90), 1))) == noon(15), (
        "rows without a partition are one too"
    )
    assert load(3, staged(to, (8, None, None), (9, noon(14), 0)), staged(to, (10, noon(80), None))) == noon(65)
    assert not commit_batch(to, 3, [staged(to, (8, None, None), (9, noon(14), 0), (10, noon(80), None))], by, "at")
    assert (by.watermark, by.metrics().rows, by.metrics().late) == (noon(65), 7, 1)
    assert db.execute("SELECT count(*), count(DISTINCT id) FROM orders") == [(10, 10)]
    names = "SELECT array_agg(partition_name ORDER BY partition_name) FROM pgtrickle.partitions('orders')"
    assert db.value(names) == ["", "0", "1"]
    if kept:
        assert db.value("SELECT count(partition) FROM orders") == 7


def test_a_column_that_is_not_the_partition_must_be_one_of_the_table(db: Database) -> None:
    db.execute("CREATE TABLE orders (id int, at timestamptz)")
    to = Target(db.dsn, "orders", "topic", ("id", "at", "else"), "partition")
    with pytest.raises(psycopg.errors.DataError, match="else"):
        staged(to)


def test_a_tracker_and_its_partition_belong_together() -> None:
    cases: tuple[tuple[dict[str, Any], str], ...] = (
        ({"generator": tracker(), "event_time": "at"}, "needs partition"),
        ({"generator": tracker(), "partition": "partition"}, "event_time is not given"),
        ({"event_time": "at", "partition": "partition"}, "Only a Tracker"),
    )
    for given, message in cases:
        with pytest.raises(InvalidArgument, match=message):
            postgres_sink("", "orders", sink="topic", **given)
    from pyspark.sql.types import IntegerType, StructType, TimestampType

    schema = StructType().add("at", TimestampType()).add("partition", IntegerType())
    source: Any = PostgresSinkSource
    writer = source({**OPTIONS, "watermark_lateness": "5", "idle_timeout": "90"}).streamWriter(schema, False)
    assert isinstance(writer.generator, Tracker)
    assert (writer.generator.idle_timeout, writer.target.partition) == (seconds(90), "partition")
    for options, message in (
        ({"partition": "shard"}, "has no column shard"),
        ({"idle_timeout": "soon"}, "idle_timeout cannot be 'soon'"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            source({**OPTIONS, "watermark_lateness": "5", **options}).streamWriter(schema, False)
    with pytest.raises(InvalidArgument, match="idle_timeout is about partitions"):
        without = {name: value for name, value in OPTIONS.items() if name != "partition"}
        source({**without, "watermark_lateness": "5", "idle_timeout": "5"}).streamWriter(schema, False)
