"""A streaming query that is killed at random moments goes on from its checkpoint, and nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import Database
from tests.documents import ROOT
from tests.repeats import first
from tests.spark.streams import FORMS, LATENESS, TABLE, Stream
from tests.waiting import wait_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

# Of either form of the sink: the first waits for a session, the second for a batch, and so on in turns.
KILLS = (2, 10)
# Seconds for a Spark to start, on a machine that is busy with other tests.
PATIENCE = 240
BATCH = "SELECT COALESCE(max(batch_id), -1) FROM pgtrickle.pgt_sink_batches"
SESSIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ 'sink'"


@pytest.mark.parametrize("kills", first(0, KILLS, then=1))
@pytest.mark.parametrize("form", first(1, FORMS, then=0))
def test_killed_queries_lose_and_double_nothing(
    db: Database, tmp_path: Path, spark: SparkSession, form: str, kills: int
) -> None:
    db.execute(TABLE)
    stream, chance = Stream(tmp_path), random.Random(kills)
    found, committing = [], 0
    with ExitStack() as stack:
        query = stack.enter_context(Query.standing_by(db, stream, form))
        for kill in range(kills):
            stream.arrive(2)
            query.start()
            # The next one starts its Java meanwhile; it touches nothing before it is told to.
            following = stack.enter_context(Query.standing_by(db, stream, form)) if kill + 1 < kills else query
            committing += query.kill(db, commits=kill % 2, later=chance.random() * (kill % 2))
            found.append(stream.assert_promises_kept(db))
            query = following
    assert committing, "no query was killed with a batch under way"
    assert found[-1] > 0
    writer = stream.writer(stream.read(spark), db.dsn, form, LATENESS)
    writer.trigger(availableNow=True).start().awaitTermination()
    stream.assert_promises_kept(db, complete=True)
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_sink_batches") == 1


@dataclass(frozen=True)
class Query:
    """A streaming query in a process of its own, which waits to be told to start."""

    process: subprocess.Popen[bytes]
    messages: Path

    @classmethod
    @contextmanager
    def standing_by(cls, db: Database, stream: Stream, form: str) -> Iterator[Query]:
        """Start the process and its Spark; kill what is left of them at the end."""
        program = [sys.executable, "-W", "ignore", "-m", "tests.spark.stream_program"]
        with tempfile.NamedTemporaryFile(dir=stream.directory, prefix="messages", delete=False) as messages:
            process = subprocess.Popen(
                [*program, db.dsn, str(stream.directory), form],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                cwd=ROOT,
                start_new_session=True,
                stdin=subprocess.PIPE,
                stderr=messages,
            )
        query = cls(process, Path(messages.name))
        try:
            yield query
        finally:
            query.end()

    def start(self) -> None:
        """Tell it to read the stream."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"start\n")
        self.process.stdin.flush()

    def kill(self, db: Database, commits: int, later: float) -> bool:
        """Kill it and its Spark some seconds after it loaded a batch, or began to; tell whether it was at work."""
        until = db.value(BATCH) + 1
        sign = (lambda: db.value(BATCH) >= until) if commits else (lambda: db.value(SESSIONS) > 0)
        wait_for(sign, f"a batch, see {self.messages}", self.runs, PATIENCE)
        time.sleep(later)
        assert self.runs(), self.messages.read_text()
        at_work = bool(db.value(SESSIONS))
        self.end()
        wait_for(lambda: db.value(SESSIONS) == 0, "the sessions of the killed query to end")
        return at_work

    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    def end(self) -> None:
        """Kill what still runs."""
        if self.runs():
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()
