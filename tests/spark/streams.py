"""Streaming queries over files of orders, and what must hold of the table that they fill, whatever died meanwhile."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytrickle.watermarks import event_time
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

TABLE = "CREATE TABLE orders (id int NOT NULL, note text, placed_at timestamptz NOT NULL)"
START = datetime(2026, 3, 2, 12, tzinfo=UTC)
LATENESS = timedelta(seconds=5)
PER_FILE = 7
# The two forms of the sink.
FORMS = ("foreachBatch", "data source")


@dataclass
class Stream:
    """A directory that files of orders arrive in, in the order of event time but for `LATENESS`."""

    directory: Path
    orders: dict[int, datetime] = field(default_factory=dict)

    @property
    def checkpoint(self) -> str:
        return str(self.directory / "checkpoint")

    def arrive(self, files: int = 1) -> None:
        """Write further files, each of which one batch will take."""
        arrivals = self.directory / "arrivals"
        arrivals.mkdir(parents=True, exist_ok=True)
        for _ in range(files):
            first = len(self.orders)
            new = {first + i: START + timedelta(seconds=10 * (first + i) - i % 5) for i in range(PER_FILE)}
            lines = [json.dumps({"id": n, "note": f"n{n}", "placed_at": at.isoformat()}) for n, at in new.items()]
            written = self.directory / f"{first}.part"
            written.write_text("\n".join(lines))
            # Spark takes files by their time, and those of the same millisecond in any order.
            os.utime(written, (first + 1, first + 1))
            written.rename(arrivals / f"{first:09}.json")
            self.orders |= new

    def forget_commit(self, batch: int) -> None:
        """Leave the checkpoint as it is when the query dies between the sink's commit of a batch and Spark's own."""
        for path in (self.directory / "checkpoint" / "commits").glob(f"*{batch}*"):
            path.unlink()

    def read(self, spark: SparkSession) -> DataFrame:
        """Return the stream of orders, a file to a batch."""
        reader = spark.readStream.schema("id int, note string, placed_at timestamp")
        return reader.option("maxFilesPerTrigger", 1).json(str(self.directory / "arrivals"))

    def writer(self, frame: DataFrame, dsn: str, form: str, lateness: timedelta | None) -> DataStreamWriter:
        """Return what writes the stream from its checkpoint with a new sink; without a lateness by the query's own."""
        # Imported late: a program must set the driver's path before Spark is.
        from pytrickle.streaming import PostgresSinkSource, postgres_sink

        writer = frame.writeStream.option("checkpointLocation", self.checkpoint)
        if form == "foreachBatch":
            generator = event_time(lateness) if lateness else None
            return writer.foreachBatch(
                postgres_sink(dsn, "orders", sink="files", event_time="placed_at", generator=generator)
            )
        frame.sparkSession.dataSource.register(PostgresSinkSource)
        writer = writer.format("pytrickle").options(dsn=dsn, table="orders", sink="files", event_time="placed_at")
        return writer.option("watermark_lateness", str(lateness.total_seconds())) if lateness else writer

    def assert_promises_kept(self, db: Database, complete: bool = False) -> int:
        """Check that no order is there twice, and that no order below the watermark is missing; return how many are."""
        rows: list[tuple[Any, ...]] = db.execute("SELECT id, placed_at FROM orders")
        found = dict(rows)
        assert len(found) == len(rows), "an order is there twice"
        assert found.items() <= self.orders.items()
        watermark = next((at for (at,) in db.execute("SELECT watermark FROM pgtrickle.watermarks()")), None)
        if found:
            assert watermark == max(found.values()) - LATENESS
            assert [n for n, at in self.orders.items() if at < watermark and n not in found] == []
        else:
            assert watermark is None
        if complete:
            assert found == self.orders
        return len(found)
