"""Streams orders into PostgreSQL until it is killed; run as a program, since a killed process takes its Spark along."""

import sys
from pathlib import Path

from pytrickle.config import Settings
from pytrickle.execute.session import build_session
from pytrickle.streaming import postgres_sink
from pytrickle.watermarks import event_time
from tests.spark.streams import LATENESS, Stream


def main(dsn: str, directory: str) -> None:
    """Run the query over what arrives in a directory."""
    stream = Stream(Path(directory))
    sink = postgres_sink(dsn, "orders", sink="files", event_time="placed_at", generator=event_time(LATENESS))
    frame = stream.read(build_session(Settings(spark_master="local[1]")))
    frame.writeStream.foreachBatch(sink).option("checkpointLocation", stream.checkpoint).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
