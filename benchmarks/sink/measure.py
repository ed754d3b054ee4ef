"""Streams the same files into the same table by every way of writing, in turns, and times it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from pathlib import Path

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from benchmarks.clock import Timing, stopwatch
from pytrickle.database import jdbc_target
from pytrickle.streaming import PostgresSinkSource, postgres_sink
from pytrickle.watermarks import event_time

TABLE = "public.orders"
COLUMNS = "id bigint, customer int, note text, amount numeric(12, 2), placed_at timestamptz"
SCHEMA = "id bigint, customer int, note string, amount decimal(12,2), placed_at timestamp"
PARTITIONS = 2


@dataclass(slots=True)
class Bench:
    """A directory with the files of every batch, a session, and the database that they go into."""

    spark: SparkSession
    connection: psycopg.Connection
    dsn: str
    directory: Path
    numbers: "count[int]" = field(default_factory=count)

    def fill(self, batches: int, rows: int) -> None:
        """Write the files: as many for each batch as there are tasks."""
        for batch in range(batches):
            first = batch * rows
            frame = self.spark.range(first, first + rows, 1, PARTITIONS).select(
                f.col("id"),
                (f.col("id") % 10_007).cast("int").alias("customer"),
                f.concat(f.lit("order number "), f.col("id").cast("string")).alias("note"),
                (f.col("id") % 99_991 / 100).cast("decimal(12,2)").alias("amount"),
                (f.lit("2026-03-02 12:00:00").cast("timestamp") + f.make_dt_interval(secs=f.col("id") / 1000)).alias(
                    "placed_at"
                ),
            )
            frame.write.mode("append").parquet(str(self.directory / "files"))

    def stream(self, write: Callable[["Bench", DataFrame, str], None]) -> float:
        """Run a query from the first file to the last into the emptied table; return how many seconds it took."""
        self.connection.execute(f"DROP TABLE IF EXISTS {TABLE}".encode())
        self.connection.execute(f"CREATE TABLE {TABLE} ({COLUMNS})".encode())
        number = next(self.numbers)
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", PARTITIONS)
        frame = reader.parquet(str(self.directory / "files"))
        return stopwatch(write, self, frame, str(self.directory / f"checkpoint_{number}"))


def jdbc_append(bench: Bench, frame: DataFrame, checkpoint: str) -> None:
    """Append each batch over JDBC with Spark's defaults."""
    _for_each(frame, _jdbc(bench), checkpoint)


def jdbc_rewriting(bench: Bench, frame: DataFrame, checkpoint: str) -> None:
    """Append each batch over JDBC, many rows to a statement."""
    _for_each(frame, _jdbc(bench, reWriteBatchedInserts="true", batchsize="5000"), checkpoint)


def foreach_batch(bench: Bench, frame: DataFrame, checkpoint: str) -> None:
    """Write each batch by `postgres_sink`."""
    sink = postgres_sink(
        bench.dsn, TABLE, sink=checkpoint, event_time="placed_at", generator=event_time(timedelta(seconds=5))
    )
    _for_each(frame, sink, checkpoint)


def data_source(bench: Bench, frame: DataFrame, checkpoint: str) -> None:
    """Write each batch by the data source."""
    bench.spark.dataSource.register(PostgresSinkSource)
    started = frame.writeStream.format("pytrickle").option("checkpointLocation", checkpoint)
    started = started.options(
        dsn=bench.dsn, table=TABLE, sink=checkpoint, event_time="placed_at", watermark_lateness="5"
    )
    started.trigger(availableNow=True).start().awaitTermination()


WAYS: dict[str, Callable[[Bench, DataFrame, str], None]] = {
    "JDBC append, as Spark does it": jdbc_append,
    "JDBC append, `reWriteBatchedInserts`": jdbc_rewriting,
    "`postgres_sink`": foreach_batch,
    "`PostgresSinkSource`": data_source,
}


def measure(bench: Bench, rows: int, repetitions: int) -> dict[str, Timing]:
    """Time all ways in turns, after one repetition that warmed up; each must leave every row in the table."""
    seconds: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(repetitions + 1):
        for name, way in WAYS.items():
            seconds[name].append(bench.stream(way))
            row = bench.connection.execute(f"SELECT count(*), count(DISTINCT id) FROM {TABLE}".encode()).fetchone()
            assert row == (rows, rows), f"{name} left {row} of {rows} rows"
    return {name: Timing(tuple(taken[1:])) for name, taken in seconds.items()}


def _for_each(frame: DataFrame, write: Callable[[DataFrame, int], None], checkpoint: str) -> None:
    started = frame.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    started.trigger(availableNow=True).start().awaitTermination()


def _jdbc(bench: Bench, **options: str) -> Callable[[DataFrame, int], None]:
    target = jdbc_target(bench.connection)

    def write(frame: DataFrame, batch_id: int) -> None:
        writer = frame.write.format("jdbc").options(url=target.url, dbtable=TABLE, **target.properties, **options)
        writer.mode("append").save()

    return write
