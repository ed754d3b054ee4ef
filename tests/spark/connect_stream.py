"""Streams orders through Spark Connect into PostgreSQL, started anew for every file; run as a program, because a
process that has a classic session cannot start one of the other kind."""

import os
import sys
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.streaming.query import StreamingQuery
from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

from pytrickle.compute.spark.java import find_jdbc_jar
from tests.spark.streams import Stream

OPTIONS = "--driver-class-path {} --conf spark.ui.enabled=false pyspark-shell"


def main(dsn: str, directory: str, form: str) -> None:
    """Write how many orders were streamed, and the kind of the session."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = OPTIONS.format(find_jdbc_jar())
    session = SparkSession.builder.remote("local[1]").getOrCreate()
    sys.stdout.write(f"{stream_orders(session, dsn, directory, form)}\n{type(session).__module__}\n")


def stream_orders(session: SparkSession, dsn: str, directory: str, form: str) -> int:
    """Load two files by one form of the sink; return how many orders these had."""
    stream = Stream(Path(directory))
    for _ in range(2):
        stream.arrive()
        frame = stream.read(session).withWatermark("placed_at", "5 seconds")
        writer = stream.writer(frame, dsn, form, None)
        started(writer.trigger(availableNow=True)).awaitTermination()
    return len(stream.orders)


def started(writer: DataStreamWriter, attempts: int = 5) -> StreamingQuery:
    """Start a query; its Python worker has ten seconds to connect back, which on a busy machine may be too few."""
    try:
        return writer.start()
    except PySparkException as error:
        if attempts == 1 or "connect back" not in str(error):
            raise
    return started(writer, attempts - 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
