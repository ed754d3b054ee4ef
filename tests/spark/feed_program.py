"""Streams the changes of a table into Parquet or another database, and dies at one step of a batch; run as a program,
since a killed process takes its Spark along."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition, WriterCommitMessage
from pyspark.sql.types import StructType

from pytrickle.compute.spark.session import build_session
from pytrickle.config import Settings
from pytrickle.streaming import PostgresSinkSource
from pytrickle.streaming.sink.data_source import PostgresStreamWriter
from pytrickle.streaming.source.readers import ChangeStreamReader
from tests.spark.feeds import changes, write_copy, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Death:
    """At which step of the first batch after a version the whole program dies, and where it says so."""

    step: str
    after: int
    group: int
    note: Path

    def at(self, step: str, version: int) -> None:
        """Kill the driver and its Java, and with them this worker, if it is time."""
        if step == self.step and version >= self.after:
            self.note.write_text(step)
            os.killpg(self.group, signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)


class DyingReader(ChangeStreamReader):
    """Dies when Spark asks for one of the steps of a batch."""

    def __init__(self, reader: ChangeStreamReader, death: Death) -> None:
        super().__init__(reader.options)
        self.death = death

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        self.death.at("before its end is known", start["version"])
        return super().latestOffset(start, limit)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        self.death.at("planned", start["version"])
        return super().partitions(start, end)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        for batch in super().read(partition):
            yield batch
            self.death.at("read", partition.between.since)

    def commit(self, end: dict[str, Any]) -> None:
        self.death.at("before the feed is told", end["version"])
        super().commit(end)
        self.death.at("the feed is told", end["version"])


@dataclass(frozen=True)
class DyingWriter(PostgresStreamWriter):
    """Dies before or after it commits what was staged of a batch."""

    death: Death

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        self.death.at("staged", batchId)
        super().commit(messages, batchId)
        self.death.at("committed by the sink", batchId)


def register(session: SparkSession, death: Death) -> None:
    """Let the session read by the format `dying`, and write by it."""

    class Dying(PostgresSinkSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def streamReader(self, schema: StructType) -> DyingReader:  # noqa: N802
            return DyingReader(super().streamReader(schema), death)

        def streamWriter(self, schema: StructType, overwrite: bool) -> DyingWriter:  # noqa: N802
            writer = super().streamWriter(schema, overwrite)
            return DyingWriter(writer.target, writer.event_time, writer.generator, death)

    session.dataSource.register(Dying)


def main(dsn: str, directory: str, copy: str, step: str, after: str) -> None:
    """Stream all that is complete now, into the database `copy` if it is given, unless a step kills it."""
    session = build_session(Settings(spark_master="local[1]"))
    place = Path(directory)
    register(session, Death(step, int(after), os.getpgid(0), place / "died"))
    frame = changes(session, dsn, "dying")
    query = write_copy(frame, place, copy, "dying") if copy else write_parquet(frame, place)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
