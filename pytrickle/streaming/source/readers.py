"""What reads for Spark: a table or its changes in a batch, or its changes as a stream."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition

from pytrickle.database import connect
from pytrickle.errors import InvalidArgument, NotRetained
from pytrickle.streaming.source import stream
from pytrickle.streaming.source.changes import Between, change_batches
from pytrickle.streaming.source.columns import COMMIT, Column, Relation, relation
from pytrickle.streaming.source.conditions import Condition
from pytrickle.streaming.source.holder import can_hold, hold
from pytrickle.streaming.source.options import Options
from pytrickle.streaming.source.rows import Part, number_of_parts, parts_of_snapshot, parts_of_version, row_batches
from pytrickle.streaming.source.versions import between, version_read

_READER: tuple[type, ...] = (DataSourceStreamReader,)
# Several batches of what is available now: since PySpark 4.2, in one batch before.
with suppress(ImportError):
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

    _READER = (DataSourceStreamReader, SupportsTriggerAvailableNow)


@dataclass(frozen=True)
class Rows(InputPartition):
    """A part of a table, which another may have the name of by the time it is read."""

    part: Part
    relid: int


@dataclass(frozen=True)
class Changes(InputPartition):
    """The changes between two versions."""

    between: Between


@dataclass(frozen=True, slots=True)
class Found:
    """The relation that is read, and its columns that are."""

    relation: Relation
    columns: tuple[Column, ...]


class TableReader(DataSourceReader):
    """Reads a table, or its changes, in one or several tasks."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.conditions: tuple[Condition, ...] = ()

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts of the table, which all belong to one moment, or the changes."""
        options = self.options
        with connect(options.dsn, role="reader") as connection:
            found = relation(connection, options.table)
            if options.changes:
                return [Changes(between(connection, found, options))]
            version = version_read(connection, found, options)
            if version is not None:
                return [Rows(part, found.relid) for part in parts_of_version(options.partitions, version)]
            alone = options.snapshot is None and not can_hold(connection)
            number = 1 if alone else number_of_parts(found, options.partitions)
        # The parent, which starts the Python workers of this session, ends with it; this process may end at once.
        held = hold(options.dsn, number, os.getppid()) if number > 1 and options.snapshot is None else None
        return [Rows(part, found.relid) for part in parts_of_snapshot(found, number, options.snapshot, held)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return read(self.options, partition, self.conditions)


class ChangeStreamReader(*_READER):  # type: ignore[misc]
    """Follows the changes of a table; an offset is the version through which they were read."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.target: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what is complete now, and nothing that comes later."""
        self.target = stream.latest(self.options)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the version that the first batch begins after."""
        return {"version": stream.first(self.options)}

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: object = None
    ) -> dict[str, Any]:
        """Return the version through which the next batch reads."""
        most = getattr(limit, "max_files", None)
        return {"version": stream.latest(self.options, start["version"] if start else None, self.target, most)}

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return how many versions a batch may have; Spark has no name for them, so they travel as files."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

        most = self.options.most_versions
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the changes between two offsets."""
        if start["version"] == end["version"]:
            return []
        options = self.options
        return [Changes(Between(start["version"], end["version"], options.net, options.updates))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes."""
        return read(self.options, partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Say how far the feed was read: Spark asks for nothing before that again."""
        stream.committed(self.options, end["version"])


def find(connection: psycopg.Connection, options: Options) -> Found:
    """Find what is read; raise InvalidArgument for a table or column that is not there."""
    found = relation(connection, options.table)
    columns = found.chosen(options.columns) if options.columns else found.columns
    if not columns:
        raise InvalidArgument(f"{found.name} has no columns.", "Read a table that has some.")
    taken = {column.name for column in COMMIT} if options.changes else set()
    if clash := [column.name for column in columns if column.name in taken]:
        hint = "Name the columns to be read by the option columns, without this one."
        raise InvalidArgument(f"{found.name} has a column {clash[0]}, and so do changes.", hint)
    return Found(found, columns)


def read(options: Options, partition: InputPartition, conditions: Sequence[Condition] = ()) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a partition that meet all conditions, on a connection of its own."""
    with connect(options.dsn, role="reader") as connection:
        found = find(connection, options)
        if isinstance(partition, Changes):
            yield from change_batches(connection, found.relation, partition.between, found.columns, conditions)
        elif isinstance(partition, Rows):
            if found.relation.relid != partition.relid:
                raise NotRetained(
                    f"{options.table} is another table than when this read was planned.", "Load it again."
                )
            yield from row_batches(connection, found.relation, found.columns, partition.part, conditions)
