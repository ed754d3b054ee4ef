"""The reader as a Python Data Source: tables as of versions, and the changes between them, in batch and streaming."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql.datasource import DataSource
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pytrickle.database import connect
from pytrickle.errors import InvalidArgument
from pytrickle.streaming.source import stream
from pytrickle.streaming.source.batches import schema
from pytrickle.streaming.source.columns import COMMIT
from pytrickle.streaming.source.options import Options, check_batch, check_stream
from pytrickle.streaming.source.readers import ChangeStreamReader, TableReader, find


class PytrickleReads(DataSource):
    """The format `pytrickle` of `read` and `readStream`; see `docs/howto/read-from-spark.md` for its options."""

    @classmethod
    def name(cls) -> str:
        """Return what `format` is given."""
        return "pytrickle"

    def schema(self) -> StructType:
        """Return the columns of the table, after those of a change where changes are read."""
        options = Options.of(self.options)
        with connect(options.dsn, role="reader") as connection:
            found = find(connection, options)
        columns = (*COMMIT, *found.columns) if options.changes else found.columns
        return from_arrow_schema(schema(columns), prefer_timestamp_ntz=True)

    def reader(self, schema: StructType) -> TableReader:
        """Return the reader of a batch."""
        check_batch(self.options)
        options = _planned(self.options, schema)
        return _filtering_reader(options) if options.push_filters else TableReader(options)

    def streamReader(self, schema: StructType) -> ChangeStreamReader:  # noqa: N802
        """Return the reader of a stream of changes."""
        options = _planned(self.options, schema)
        if not options.changes:
            raise InvalidArgument("A stream reads changes.", "Set the option readChangeFeed to true.")
        check_stream(self.options)
        stream.check_feed(options)
        return ChangeStreamReader(options)


def _planned(options: Mapping[str, str], schema: StructType) -> Options:
    """Read the options for a query that is planned: its columns are read, whatever the table has by then."""
    planned = Options.of(options)
    of_changes = {column.name for column in COMMIT} if planned.changes else set()
    return replace(planned, columns=tuple(name for name in schema.fieldNames() if name not in of_changes))


def _filtering_reader(options: Options) -> TableReader:
    try:
        from pytrickle.streaming.source.filters import FilteringReader
    except ImportError:
        raise InvalidArgument("pushFilters needs PySpark 4.1.", "Leave it out: Spark applies the filters.") from None
    return FilteringReader(options)
