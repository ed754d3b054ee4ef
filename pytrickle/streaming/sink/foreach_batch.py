"""The sink as a function for foreachBatch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from pytrickle.errors import InvalidArgument
from pytrickle.streaming.sink.commit import commit_batch
from pytrickle.streaming.sink.query import check_columns, check_output_mode, check_stateless, generator_of
from pytrickle.streaming.sink.stage import Part, Target, stage
from pytrickle.streaming.sink.text import columns
from pytrickle.watermarks import Generator, Tracker
from pytrickle.watermarks.generators.generator import check_generator
from pytrickle.watermarks.loading.partitions import check_tracker

_PARTS = "staging string, rows bigint, query string"


@dataclass(slots=True)
class PostgresSink:
    """Writes micro-batches of one streaming query into one table; see `postgres_sink`."""

    dsn: str = field(repr=False)
    table: str
    sink: str
    event_time: str | None
    generator: Generator | Tracker | None
    partition: str | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Load a micro-batch and advance the watermark in one transaction, unless that was committed before."""
        target = Target(self.dsn, self.table, self.sink, columns(frame.schema), self.partition)
        check_output_mode(frame)
        check_columns(target.columns, event_time=self.event_time, partition=self.partition)
        if self.generator is None:
            check_stateless(frame)
            self.generator = generator_of(frame.schema, self.event_time)
        parts = [Part(*row) for row in frame.mapInArrow(_staging(target), _PARTS).collect()]
        commit_batch(target, batch_id, parts, self.generator, self.event_time)


def postgres_sink(
    dsn: str,
    table: str,
    *,
    sink: str,
    event_time: str | None = None,
    generator: Generator | Tracker | None = None,
    partition: str | None = None,
) -> PostgresSink:
    """Return a function for `writeStream.foreachBatch` that loads each batch into a table exactly once.

    Batches are counted under the name `sink`, which belongs to one checkpoint. The columns of the query are those of
    the table, by name. `event_time` names the column whose values the generator sees. The query must be one that only
    appends: a batch of another output mode raises InvalidArgument, but for Spark Connect, where it cannot be seen.

    Without a generator the watermark is the query's own: the newest event time minus the delay of `withWatermark` for
    that column. This holds only where the query keeps no state: rows come out of a join later by as much as its
    interval. Such a query is refused without a generator; through Spark Connect that cannot be seen.

    With a `Tracker` the watermark is the least over partitions, as `load` has it: `partition` names the column that
    says of which one a row is, such as Kafka's `partition`. The table need not have that column.

    Raises InvalidArgument for what is no generator, for one that goes by rows, without `event_time`, and for a tracker
    without `partition`.

    The tasks write to the database themselves: pytrickle must be installed on the executors, `dsn` be valid there.
    """
    if isinstance(generator, Tracker):
        check_tracker(generator, partition)
    elif partition is not None:
        raise InvalidArgument("Only a Tracker knows of partitions.", "generator=Tracker()")
    elif generator is not None:
        check_generator(generator)
    if event_time is None and (isinstance(generator, Tracker) or (generator is not None and generator.needs_rows)):
        raise InvalidArgument("The generator goes by rows, and event_time is not given.", "event_time='placed_at'")
    return PostgresSink(dsn, table, sink, event_time, generator, partition)


def _staging(target: Target) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def staged(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        part = stage(target, batches)
        yield pa.RecordBatch.from_pydict(
            {
                "staging": pa.array([part.staging], pa.string()),
                "rows": [part.rows],
                "query": pa.array([part.query], pa.string()),
            }
        )

    return staged
