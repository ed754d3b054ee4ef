"""Arrow's values as CSV that PostgreSQL reads back without loss."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyarrow import csv
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    MapType,
    StructType,
    UserDefinedType,
    VariantType,
    YearMonthIntervalType,
)

from pytrickle.errors import InvalidArgument
from pytrickle.streaming.sink.moments import text_of_days, text_of_moments

_INTERVALS = (DayTimeIntervalType, YearMonthIntervalType)
_WITHOUT_TEXT = (ArrayType, MapType, StructType, UserDefinedType, VariantType, *_INTERVALS)
_OPTIONS = csv.WriteOptions(include_header=False, quoting_style="needed")


def columns(schema: StructType) -> tuple[str, ...]:
    """Return the names of a schema's columns; raise InvalidArgument if one has values that are not written as text."""
    for field in schema.fields:
        if isinstance(field.dataType, _WITHOUT_TEXT):
            raise InvalidArgument(
                f"The sink cannot write the column {field.name} of type {_name(field.dataType)}.",
                f"Write it as text, such as to_json({field.name}), into a column that may be jsonb.",
            )
    return tuple(schema.fieldNames())


def written(batch: pa.RecordBatch) -> bytes:
    """Return the rows of a record batch as CSV without a header; NULL is unquoted, an empty text is quoted."""
    buffer = pa.BufferOutputStream()
    csv.write_csv(
        pa.RecordBatch.from_arrays([_text(one) for one in batch.columns], batch.schema.names), buffer, _OPTIONS
    )
    return bytes(buffer.getvalue())


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return text_of_moments(column)
    if pa.types.is_date32(column.type):
        return text_of_days(column)
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.array([None if value is None else f"\\x{value.hex()}" for value in _plain(column)], pa.string())
    return column


def _plain(column: pa.Array) -> Sequence[bytes | None]:
    values: list[bytes | None] = column.to_pylist()
    return values


def _name(kind: DataType) -> str:
    return kind.simpleString()
