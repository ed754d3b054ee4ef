"""PostgreSQL's infinite dates in Python: loaded as, and dumped from, the greatest and least value of the type."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from psycopg.abc import AdaptContext, Buffer
from psycopg.types.datetime import (
    DateDumper,
    DateLoader,
    DatetimeDumper,
    DatetimeNoTzDumper,
    TimestampLoader,
    TimestamptzLoader,
)

_INFINITE = {b"infinity": 1, b"-infinity": -1}


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
    def load(self, data: Buffer) -> datetime:
        match _INFINITE.get(bytes(data)):
            case 1:
                return datetime.max.replace(tzinfo=UTC)
            case -1:
                return datetime.min.replace(tzinfo=UTC)
            case _:
                return super().load(data)


class _InfiniteDateDumper(DateDumper):
    def dump(self, obj: date) -> Buffer | None:
        return _infinite(obj, date.max, date.min) or super().dump(obj)


class _InfiniteTimestampDumper(DatetimeNoTzDumper):
    def dump(self, obj: datetime) -> Buffer | None:
        return _infinite(obj, datetime.max, datetime.min) or super().dump(obj)


class _InfiniteTimestamptzDumper(DatetimeDumper):
    def dump(self, obj: datetime) -> Buffer | None:
        return _infinite(obj.replace(tzinfo=None), datetime.max, datetime.min) or super().dump(obj)

    def upgrade(self, obj: datetime, format: Any) -> Any:
        return self if obj.tzinfo else _InfiniteTimestampDumper(self.cls)


def _infinite(value: Any, greatest: Any, least: Any) -> bytes | None:
    return b"infinity" if value == greatest else b"-infinity" if value == least else None


def register_infinity(context: AdaptContext) -> None:
    """Make the connection or cursor read and write infinite dates and timestamps.

    ``timestamptz 'infinity'`` is ``datetime.max`` in UTC and ``'-infinity'`` is ``datetime.min`` in UTC; ``timestamp``
    and ``date`` likewise without a zone. psycopg alone raises DataError for them.
    """
    adapters = context.adapters
    adapters.register_loader("date", _InfiniteDateLoader)
    adapters.register_loader("timestamp", _InfiniteTimestampLoader)
    adapters.register_loader("timestamptz", _InfiniteTimestamptzLoader)
    adapters.register_dumper(date, _InfiniteDateDumper)
    adapters.register_dumper(datetime, _InfiniteTimestamptzDumper)
