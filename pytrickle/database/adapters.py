"""PostgreSQL's values that Python cannot hold: infinity, moments outside the years 1 to 9999, months."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from psycopg import DataError
from psycopg.abc import AdaptContext, Buffer
from psycopg.types.datetime import (
    DateDumper,
    DateLoader,
    DatetimeDumper,
    DatetimeNoTzDumper,
    IntervalLoader,
    TimestampLoader,
    TimestamptzLoader,
)
from psycopg.types.string import TextLoader

# Types whose values in Python are others, such as a month of 30 days, or are written in another way.
_WRITTEN = (
    *("bytea", "date", "interval", "numeric", "time", "timestamp", "timetz"),
    *("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange"),
    *("int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
)

_INFINITE = {b"infinity": 1, b"-infinity": -1}
_GREATEST, _LEAST = (moment.replace(tzinfo=UTC) for moment in (datetime.max, datetime.min))
_LAST_DAY = datetime(9999, 12, 31, tzinfo=UTC)


class _InfiniteDateLoader(DateLoader):
    def load(self, data: Buffer) -> date:
        match _INFINITE.get(bytes(data)):
            case 1:
                return date.max
            case -1:
                return date.min
            case _:
                return super().load(data)


class _InfiniteTimestampLoader(TimestampLoader):
    def load(self, data: Buffer) -> datetime:
        match _INFINITE.get(bytes(data)):
            case 1:
                return datetime.max
            case -1:
                return datetime.min
            case _:
                return super().load(data)


class _InfiniteTimestamptzLoader(TimestamptzLoader):
    """Loads a moment with the UTC offset of the session's time zone at that moment, and not with the zone itself.

    Python compares and subtracts two datetimes of one zone by what the clock on the wall shows.
    """

    def load(self, data: Buffer) -> datetime:
        match _INFINITE.get(bytes(data)):
            case 1:
                return _GREATEST
            case -1:
                return _LEAST
            case _:
                moment = super().load(data)
                return moment.replace(tzinfo=timezone(moment.utcoffset() or timedelta(0)), fold=0)


class _LoweredTimestamptzLoader(_InfiniteTimestamptzLoader):
    """Loads a moment that Python cannot hold as an earlier one: a watermark sent back then never promises more."""

    def load(self, data: Buffer) -> datetime:
        text = bytes(data)
        if text in _INFINITE:
            return super().load(data)
        if text.endswith(b"BC"):
            return _LEAST
        # In some zones year 10000 begins hours earlier than in UTC.
        if len(text.partition(b" ")[0]) > len("9999-12-31"):
            return _LAST_DAY
        loaded = super().load(data)
        return loaded if loaded < _GREATEST else _LAST_DAY


class _InfiniteIntervalLoader(IntervalLoader):
    """Loads infinity, which PostgreSQL has since version 17; psycopg takes it for zero."""

    def load(self, data: Buffer) -> timedelta:
        match _INFINITE.get(bytes(data)):
            case 1:
                return timedelta.max
            case -1:
                return timedelta.min
            case _:
                return super().load(data)


class _NearestIntervalLoader(_InfiniteIntervalLoader):
    """Loads an interval that Python cannot hold as the longest of the same direction that it can."""

    def load(self, data: Buffer) -> timedelta:
        try:
            return super().load(data)
        except DataError:
            return timedelta.min if bytes(data).startswith(b"-") else timedelta.max


class _WrittenTimestamptzLoader(_InfiniteTimestamptzLoader):
    def load(self, data: Buffer) -> Any:
        text = bytes(data)
        try:
            return text.decode() if text in _INFINITE else super().load(data)
        except DataError:
            return text.decode()


class _InfiniteDateDumper(DateDumper):
    def dump(self, obj: date) -> Buffer | None:
        return _infinite(obj, date.max, date.min) or super().dump(obj)


class _InfiniteTimestampDumper(DatetimeNoTzDumper):
    def dump(self, obj: datetime) -> Buffer | None:
        return _infinite(obj, datetime.max, datetime.min) or super().dump(obj)


class _InfiniteTimestamptzDumper(DatetimeDumper):
    def dump(self, obj: datetime) -> Buffer | None:
        return _infinite(obj, _GREATEST, _LEAST) or super().dump(obj)

    def upgrade(self, obj: datetime, format: Any) -> Any:
        return self if obj.tzinfo else _InfiniteTimestampDumper(self.cls)


def _infinite(value: Any, greatest: Any, least: Any) -> bytes | None:
    return b"infinity" if value == greatest else b"-infinity" if value == least else None


def register_infinity(context: AdaptContext) -> None:
    """Make the connection or cursor read and write infinite dates and timestamps, and read infinite intervals.

    ``timestamptz 'infinity'`` is ``datetime.max`` in UTC and ``'-infinity'`` is ``datetime.min`` in UTC; ``timestamp``
    and ``date`` likewise without a zone, ``interval`` as ``timedelta.max`` and ``timedelta.min``. psycopg alone raises
    DataError for them, and for what Python cannot hold.
    """
    adapters = context.adapters
    adapters.register_loader("date", _InfiniteDateLoader)
    adapters.register_loader("timestamp", _InfiniteTimestampLoader)
    adapters.register_loader("timestamptz", _InfiniteTimestamptzLoader)
    adapters.register_loader("interval", _InfiniteIntervalLoader)
    adapters.register_dumper(date, _InfiniteDateDumper)
    adapters.register_dumper(datetime, _InfiniteTimestamptzDumper)


def register_lowered(context: AdaptContext) -> None:
    """Make the connection or cursor load every ``timestamptz`` and ``interval``: never to read data.

    It comes after ``register_infinity``. A finite moment outside the years 1 to 9999 comes as the nearest before it
    that Python can hold: ``datetime.min``, or the beginning of the last day. An interval of more than 999,999,999 days
    comes as the longest that Python can hold.
    """
    context.adapters.register_loader("interval", _NearestIntervalLoader)
    context.adapters.register_loader("timestamptz", _LoweredTimestamptzLoader)


def register_written(context: AdaptContext) -> None:
    """Make the connection or cursor load values as PostgreSQL writes them, for output.

    Integers, floats, truth values, JSON, arrays, and the moments that Python can hold are still loaded as such.
    """
    for name in _WRITTEN:
        context.adapters.register_loader(name, TextLoader)
    context.adapters.register_loader("timestamptz", _WrittenTimestamptzLoader)
