"""What the sink refuses before it stages anything, because what it would promise could not be kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql.functions import expr
from pyspark.sql.types import StructType, TimestampType

from pytrickle.errors import InvalidArgument
from pytrickle.streaming import PostgresSinkSource, postgres_sink
from pytrickle.watermarks import Generator, event_time, processing_time, punctuated
from tests.conftest import Database
from tests.repeats import first
from tests.spark.streams import FORMS, LATENESS, TABLE, Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OPTIONS = {"dsn": "host=nowhere", "table": "orders", "sink": "files", "event_time": "at", "watermark_lateness": "5"}
SCHEMA = StructType().add("at", TimestampType())
JOINED = "id = other AND placed_at BETWEEN sent_at - interval 1 hour AND sent_at + interval 1 hour"


def run(frame: DataFrame, db: Database, stream: Stream, column: str, generator: Generator | None) -> None:
    sink = postgres_sink(db.dsn, "orders", sink="files", event_time=column, generator=generator)
    writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", stream.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.parametrize("kind", first(1, ["join", "deduplication"]))
def test_a_query_with_state_needs_a_generator(db: Database, tmp_path: Path, spark: SparkSession, kind: str) -> None:
    db.execute(TABLE)
    stream = Stream(tmp_path)
    stream.arrive()
    frame = stream.read(spark).withWatermark("placed_at", "5 seconds")
    if kind == "join":
        others = stream.read(spark).withWatermark("placed_at", "5 seconds")
        others = others.selectExpr("id AS other", "placed_at AS sent_at")
        frame = frame.join(others, expr(JOINED)).select("id", "note", "placed_at")
    else:
        frame = frame.dropDuplicates(["id", "placed_at"])
    with pytest.raises(StreamingQueryException, match="keeps state"):
        run(frame, db, stream, "placed_at", None)
    assert db.value("SELECT count(*) FROM pg_class WHERE relnamespace = 'pgtrickle_sinks'::regnamespace") == 0
    run(frame, db, stream, "placed_at", event_time(LATENESS))
    assert db.value("SELECT count(*) FROM orders") > 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("mode", first(1, ["update", "complete"]))
def test_a_query_that_brings_changed_rows_again_is_refused(
    db: Database, tmp_path: Path, spark: SparkSession, mode: str, form: str
) -> None:
    db.execute(TABLE)
    stream = Stream(tmp_path)
    stream.arrive()
    frame = stream.read(spark).groupBy("note").agg(expr("count(*)::int AS id"), expr("max(placed_at) AS placed_at"))
    with pytest.raises(
        (StreamingQueryException, AnalysisException), match=f"(?i){mode}|it cannot replace what it wrote"
    ):
        writer = stream.writer(frame, db.dsn, form, LATENESS).outputMode(mode)
        writer.trigger(availableNow=True).start().awaitTermination()
    assert db.value("SELECT count(*) FROM pg_class WHERE relnamespace = 'pgtrickle_sinks'::regnamespace") == 0
    assert db.value("SELECT count(*) FROM orders") == 0


def test_a_column_of_event_times_that_the_query_lacks_is_refused_before_anything_is_staged(
    db: Database, tmp_path: Path, spark: SparkSession
) -> None:
    db.execute(TABLE)
    stream = Stream(tmp_path)
    stream.arrive()
    with pytest.raises(StreamingQueryException, match="has no column when"):
        run(stream.read(spark), db, stream, "when", event_time(LATENESS))
    assert db.execute("SELECT * FROM pgtrickle.pgt_sink_batches") == []


def test_the_data_source_checks_the_column_of_event_times_and_the_lateness() -> None:
    source: Any = PostgresSinkSource
    with pytest.raises(InvalidArgument, match="has no column when") as refused:
        source({**OPTIONS, "event_time": "when"}).streamWriter(SCHEMA, False)
    assert "at" in str(refused.value.hint)
    for lateness in ("inf", "-inf", "nan", "soon", "1e300", "-1"):
        with pytest.raises(InvalidArgument, match="watermark_lateness"):
            source({**OPTIONS, "watermark_lateness": lateness}).streamWriter(SCHEMA, False)


def test_a_generator_that_goes_by_rows_needs_to_know_their_event_time() -> None:
    with pytest.raises(InvalidArgument, match="event_time is not given"):
        postgres_sink("", "orders", sink="files", generator=event_time())
    for generator in (processing_time(), punctuated()):
        postgres_sink("", "orders", sink="files", generator=generator)
