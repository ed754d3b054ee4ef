"""A streaming query that is killed at random moments goes on from its checkpoint, and nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pytrickle.streaming import postgres_sink
from pytrickle.watermarks import event_time
from tests.conftest import Database
from tests.documents import ROOT
from tests.spark.streams import LATENESS, TABLE, Stream
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# With the sixteen faults of test_sink.py these make twenty.
KILLS = 4
FILES = 8
BATCH = "SELECT COALESCE(max(batch_id), -1) FROM pgtrickle.pgt_sink_batches"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ 'sink'"


def test_killed_queries_lose_and_double_nothing(db: Database, tmp_path: Path, spark: SparkSession) -> None:
    db.execute(TABLE)
    stream, chance = Stream(tmp_path), random.Random()
    for _ in range(KILLS):
        stream.arrive(FILES)
        kill_at(db, stream, batches=chance.randint(1, 3), later=chance.random())
        assert stream.assert_promises_kept(db) > 0
    finish(db, stream, spark)
    stream.assert_promises_kept(db, complete=True)
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_sink_batches") == 1


def kill_at(db: Database, stream: Stream, batches: int, later: float) -> None:
    """Start the query, and kill it and its Spark a moment after it has committed some more batches."""
    until = db.value(BATCH) + batches
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.spark.stream_program", db.dsn, str(stream.directory)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable},
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for(lambda: db.value(BATCH) >= until, "batches to be committed", lambda: process.poll() is None)
        time.sleep(later)
        assert process.poll() is None
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    wait_for(lambda: db.value(SESSIONS) == 0, "the sessions of the killed query to end")


def finish(db: Database, stream: Stream, spark: SparkSession) -> None:
    sink = postgres_sink(db.dsn, "orders", sink="files", event_time="placed_at", generator=event_time(LATENESS))
    started = stream.read(spark).writeStream.foreachBatch(sink).option("checkpointLocation", stream.checkpoint)
    started.trigger(availableNow=True).start().awaitTermination()
