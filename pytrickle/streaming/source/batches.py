"""Rows of a query as Arrow record batches, by way of COPY."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv

from pytrickle.database import filled, translate_errors
from pytrickle.errors import InvalidArgument, PytrickleError
from pytrickle.streaming.source.columns import Column

# What PostgreSQL says of an infinite time that is to be a number.
_INFINITE = ("0A000", "22003", "22008")
_BLOCK = 4 * 1024 * 1024
_PARSING = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)
_DAYS_AND_MOMENTS = (pa.types.is_date32, pa.types.is_timestamp)
# PostgreSQL leaves out the quotes of NULL alone.
_NULL = {"null_values": [""], "strings_can_be_null": True, "quoted_strings_can_be_null": False}
_TRUTH = {"true_values": ["t"], "false_values": ["f"]}


def record_batches(
    connection: psycopg.Connection, query: sql.Composable, columns: Sequence[Column]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a query whose columns are written as `columns` say.

    Raises InvalidArgument for a value that Arrow's type cannot hold, such as NaN in a numeric of declared precision.
    """
    block = io.BytesIO()
    copied = filled("COPY ({query}) TO STDOUT (FORMAT csv)", query=query)
    try:
        with translate_errors(), connection.cursor() as cursor, cursor.copy(copied) as copy:
            # Each piece is a row.
            for row in copy:
                block.write(row)
                if block.tell() >= _BLOCK:
                    yield from _parsed(block, columns)
                    block = io.BytesIO()
    except PytrickleError as error:
        if error.sqlstate not in _INFINITE:
            raise
        raise InvalidArgument(f"A value cannot be read: {error}", "Leave its column out.") from error
    if block.tell():
        yield from _parsed(block, columns)


def schema(columns: Sequence[Column]) -> pa.Schema:
    """Return the schema of the record batches."""
    return pa.schema([(column.name, column.arrow) for column in columns])


def _parsed(block: io.BytesIO, columns: Sequence[Column]) -> Iterator[pa.RecordBatch]:
    block.seek(0)
    # By place: two columns may have one name.
    names = [f"c{place}" for place in range(len(columns))]
    types = {name: _copied(column.arrow) for name, column in zip(names, columns, strict=True)}
    reading = csv.ReadOptions(column_names=names, use_threads=False, block_size=block.getbuffer().nbytes + 1)
    try:
        table = csv.read_csv(block, reading, _PARSING, csv.ConvertOptions(column_types=types, **_NULL, **_TRUTH))
    except pa.ArrowInvalid as error:
        raise InvalidArgument(f"A value cannot be read: {error}", "Leave its column out.") from error
    arrays = [_restored(table.column(place), column.arrow) for place, column in enumerate(columns)]
    yield from pa.table(arrays, schema=schema(columns)).to_batches()


def _copied(kind: pa.DataType) -> pa.DataType:
    """Return the type that the written form of a column has."""
    if pa.types.is_binary(kind):
        return pa.string()
    if any(test(kind) for test in _DAYS_AND_MOMENTS):
        return pa.int32() if pa.types.is_date32(kind) else pa.int64()
    return kind


def _restored(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_binary(kind):
        decoded = (None if value is None else bytes.fromhex(value) for value in values.to_pylist())
        return pa.chunked_array([pa.array(decoded, kind)])
    return values.cast(kind)
