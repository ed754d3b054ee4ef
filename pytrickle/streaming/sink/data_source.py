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
from pytrickle.streaming.sink.commit import commit_batch, drop_staged
from pytrickle.streaming.sink.query import check_event_time, generator_of
from pytrickle.streaming.sink.stage import Part, Target, stage
from pytrickle.streaming.sink.text import columns
from pytrickle.watermarks import Generator
from pytrickle.watermarks import event_time as newest

_REQUIRED = ("dsn", "table", "sink", "event_time")


@dataclass(frozen=True, slots=True)
class Staged(WriterCommitMessage):
    """What a task tells the driver."""

    part: Part


class PostgresSinkSource(DataSource):
    """The format `pytrickle` of `writeStream`: loads each batch and advances the watermark in one transaction.

    Register it by `spark.dataSource.register`. Options: `dsn`, `table`, `sink` (the name that its batches are counted
    under, which belongs to one checkpoint), `event_time` (a column), and `watermark_lateness` in seconds, in place of
    the delay of the query's own `withWatermark`. The watermark is the newest event time minus that, and never lower
    than the table has it. A query that keeps state needs `watermark_lateness`: rows come out of a join later than the
    delay says, by as much as its interval, and a data source does not see what query it writes. Needs PySpark 4.1.
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
        target = Target(options["dsn"], options["table"], options["sink"], columns(schema))
        check_event_time(target.columns, options["event_time"])
        return PostgresStreamWriter(target, options["event_time"], _lateness(options, schema))


@dataclass(frozen=True)
class PostgresStreamWriter(DataSourceStreamArrowWriter):
    """Stages the rows of a batch in its tasks, and commits them on the driver's side."""

    target: Target
    event_time: str
    generator: Generator = field(repr=False)

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
    if missing := [name for name in _REQUIRED if not given.get(name)]:
        raise InvalidArgument(f"The option {missing[0]} is missing.", f"Give {', '.join(_REQUIRED)}.")
    return given


def _lateness(options: Mapping[str, str], schema: StructType) -> Generator:
    seconds = options.get("watermark_lateness")
    if seconds is None:
        return generator_of(schema, options["event_time"])
    try:
        return newest(timedelta(seconds=float(seconds)))
    except (ValueError, OverflowError):
        raise InvalidArgument(f"{seconds!r} is not a watermark_lateness.", "Give seconds, such as 5.") from None
