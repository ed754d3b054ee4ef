"""Running a plan: DataFrames in, staged batches out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from pytrickle.db import JdbcTarget
from pytrickle.errors import SparkFailed
from pytrickle.execute.dataframes import Frames, consolidate
from pytrickle.execute.jdbc import PinnedReader
from pytrickle.plan.refresh_plan import Reading, RefreshPlan
from pytrickle.staged import Staged


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A Spark session and the database it reads."""

    spark: SparkSession
    target: JdbcTarget

    def compute(self, plan: RefreshPlan, snapshot: str, settings: tuple[str, ...]) -> Staged:
        """Compute the rows that a plan stages, reading everything in one exported snapshot.

        Raise SparkFailed, with the database's own sentence where the database refused.
        """
        reader = PinnedReader(self.spark, self.target, snapshot, settings)
        with translated():
            keyed = _collect(_read(reader, plan.keyed)) if plan.keyed else None
            return Staged(_rows(reader, plan), keyed)


def _rows(reader: PinnedReader, plan: RefreshPlan) -> pa.Table:
    if plan.read is not None:
        return _collect(_read(reader, plan.read))
    frames = Frames(reader, plan.join)
    try:
        return _collect(frames.rows())
    finally:
        frames.release()


def _read(reader: PinnedReader, reading: Reading) -> DataFrame:
    # One partition needs no shuffle, so netting stays within the task that reads.
    frame = reader.read(reading.query, reading.settings).coalesce(1)
    return consolidate(frame) if reading.weighted else frame


def _collect(frame: DataFrame) -> pa.Table:
    return frame.toArrow()


@contextmanager
def translated() -> Iterator[None]:
    """Turn Spark's errors into SparkFailed."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkFailed(f"Spark could not compute the refresh: {_sentence(str(error))}") from error


def _sentence(message: str) -> str:
    for line in message.splitlines():
        _, found, rest = line.partition("PSQLException: ")
        if found:
            return rest.removeprefix("ERROR: ").strip()
    return message.strip().splitlines()[0][:300] if message.strip() else "no message"
