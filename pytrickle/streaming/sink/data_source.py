"""The sink as a Python Data Source, whose commit on the driver's side is the one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from pytrickle.errors import InvalidArgument, PytrickleError
from pytrickle.streaming.dsn import dsn_among
from pytrickle.streaming.sink.commit import commit_batch, drop_staged
from pytrickle.streaming.sink.query import check_columns, delay_of
from pytrickle.streaming.sink.stage import Part, Target, stage
from pytrickle.streaming.sink.text import columns
from pytrickle.watermarks import Generator, Tracker
from pytrickle.watermarks import event_time as newest
from pytrickle.watermarks.generators.generator import IDLE_TIMEOUT

_REQUIRED = ("table", "sink", "event_time")


@dataclass(frozen=True, slots=True)
class Staged(WriterCommitMessage):
    """What a task tells the driver."""

    part: Part


class PostgresSinkSource(DataSource):
    """The format `pytrickle` of `writeStream`: loads each batch and advances the watermark in one transaction.

    Register it by `spark.dataSource.register`. Options: `url` (or `dsn`), `table`, `sink` (the name that its batches
    are counted under, which belongs to one checkpoint), `event_time` (a column), and `watermark_lateness` in seconds,
    in place of the delay of the query's own `withWatermark`. The watermark is the newest event time minus that, and
    never lower than the table has it. A query that keeps state needs `watermark_lateness`: rows come out of a join
    later than the delay says, by as much as its interval, and a data source does not see what query it writes. Needs
    PySpark 4.1.

    With `partition`, a column that the table need not have, the watermark is the least over the partitions. One of
    which nothing came for `idle_timeout` seconds (60), while others came, is not waited for.
    """

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return "pytrickle"

    def streamWriter(self, schema: StructType, overwrite: bool) -> PostgresStreamWriter:  # noqa: N802
        """Return the writer of a query; raise InvalidArgument for options or columns that cannot be."""
        if overwrite:
            raise InvalidArgument("The sink appends; it cannot replace what it wrote.", "Use outputMode('append').")
        options = _checked(self.options)
        event_time, partition = options["event_time"], options.get("partition")
        target = Target(dsn_among(options) or "", options["table"], options["sink"], columns(schema), partition)
        check_columns(target.columns, event_time=event_time, partition=partition)
        return PostgresStreamWriter(target, event_time, _generator(options, schema))


@dataclass(frozen=True)
class PostgresStreamWriter(DataSourceStreamArrowWriter):
    """Stages the rows of a batch in its tasks, and commits them on the driver's side."""

    target: Target
    event_time: str
    generator: Generator | Tracker = field(repr=False)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        """Stage the rows of one task."""
        return Staged(stage(self.target, iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Load a batch and advance the watermark, unless that was committed before."""
        parts = [message.part for message in messages if isinstance(message, Staged)]
        commit_batch(self.target, batchId, parts, self.generator, self.event_time)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop what the tasks of a failed batch staged; what hinders that must not hide why the batch failed."""
        with suppress(PytrickleError):
            drop_staged(self.target)


def _checked(options: Mapping[str, str]) -> dict[str, str]:
    given = {name.lower(): value for name, value in options.items()}
    missing = [*([] if dsn_among(given) else ["url"]), *(name for name in _REQUIRED if not given.get(name))]
    if missing:
        raise InvalidArgument(f"The option {missing[0]} is missing.", f"Give url, {', '.join(_REQUIRED)}.")
    return given


def _generator(options: Mapping[str, str], schema: StructType) -> Generator | Tracker:
    lateness = _seconds(options, "watermark_lateness")
    if lateness is None:
        lateness = delay_of(schema, options["event_time"])
    idle_timeout = _seconds(options, "idle_timeout")
    if "partition" in options:
        silence = IDLE_TIMEOUT if idle_timeout is None else idle_timeout
        return Tracker(watermark_lateness=lateness, idle_timeout=silence)
    if idle_timeout is not None:
        raise InvalidArgument("idle_timeout is about partitions.", "Name the column partition too, or leave it out.")
    return newest(lateness)


def _seconds(options: Mapping[str, str], name: str) -> timedelta | None:
    seconds = options.get(name)
    try:
        found = None if seconds is None else timedelta(seconds=float(seconds))
    except (ValueError, OverflowError):
        found = timedelta(-1)
    if found is not None and found < timedelta(0):
        raise InvalidArgument(f"{name} cannot be {seconds!r}.", "Give seconds, such as 5.")
    return found
