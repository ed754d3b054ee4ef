"""Event times as whole microseconds, and the watermark of a source that is exhausted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pytrickle.errors import InvalidArgument

Clock = Callable[[], datetime]

INFINITY = datetime.max.replace(tzinfo=UTC)
"""The watermark of a source that will get no more data: ``datetime.max`` in UTC, PostgreSQL's ``infinity``."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_now() -> datetime:
    """Return the time of this machine's clock."""
    return datetime.now(UTC)


def parameter(watermark: datetime) -> str:
    """Return a watermark as the text that ``pgtrickle.advance_watermark`` takes, from any driver.

    psycopg by itself sends ``datetime.max`` as a moment in the year 9999, which PostgreSQL does not take for infinity.

    >>> parameter(INFINITY), parameter(datetime(2026, 1, 1, 12, tzinfo=UTC))
    ('infinity', '2026-01-01T12:00:00+00:00')
    """
    moment = utc(watermark)
    return "infinity" if moment == INFINITY else moment.isoformat()


def microseconds(moment: datetime) -> int:
    """Return a moment in microseconds since 1970; raise InvalidArgument if it is none, or has no UTC offset.

    >>> microseconds(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC))
    1000000
    """
    # Every row passes here, and of most of them there is nothing to ask.
    if type(moment) is not datetime or moment.tzinfo is not UTC:
        _check(moment)
    return span(moment - _EPOCH)


def _check(moment: datetime) -> None:
    """Raise InvalidArgument for what is no moment, or has no UTC offset."""
    # The NaT of pandas is a datetime, and like NaN it does not equal itself.
    if not isinstance(moment, datetime) or moment != moment:
        raise InvalidArgument(f"{moment!r} is not a datetime.", "Give a datetime with a UTC offset.")
    if moment.utcoffset() is None:
        raise InvalidArgument(f"{moment} has no UTC offset.", "Give it one, such as tzinfo=datetime.UTC.")


def utc(moment: datetime) -> datetime:
    """Return a moment in UTC; raise InvalidArgument as ``microseconds`` does, or if it has another year there.

    Every moment that is kept goes through here or through ``microseconds``: Python compares and subtracts two datetimes
    of one ``ZoneInfo`` by what the clock on the wall shows, so where it is put forward a minute takes an hour.

    >>> from zoneinfo import ZoneInfo
    >>> utc(datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))).isoformat()
    '2026-10-25T01:30:00+00:00'
    """
    if type(moment) is datetime and moment.tzinfo is UTC:
        return moment
    try:
        return instant(microseconds(moment))
    except OverflowError:
        hint = "Give INFINITY for a source that is exhausted."
        raise InvalidArgument(f"{moment} is not in the years 1 to 9999 in UTC.", hint) from None


def instant(count: int) -> datetime:
    """Return the moment that many microseconds after 1970, in UTC; the inverse of ``microseconds``."""
    return _EPOCH + timedelta(microseconds=count)


def span(length: timedelta) -> int:
    """Return a duration in microseconds."""
    return (length.days * 86_400 + length.seconds) * 1_000_000 + length.microseconds


FOREVER = microseconds(INFINITY)
LOWEST = microseconds(datetime(1, 1, 2, tzinfo=UTC))
HIGHEST = microseconds(datetime(9999, 12, 30, tzinfo=UTC))


def placed(event_time: datetime | None) -> int | None:
    """Return an event time in microseconds, or None where there is none: NULL, NaT, infinite, the calendar's edge days.

    An infinite event time says nothing about how far a source has come, and its maximum would end the source for ever.
    """
    if event_time is None or event_time != event_time:
        return None
    count = microseconds(event_time)
    return count if LOWEST <= count <= HIGHEST else None


def length(name: str, value: timedelta) -> int:
    """Return the microseconds of an option that must not be negative; raise InvalidArgument otherwise."""
    if value < timedelta(0):
        raise InvalidArgument(f"{name} must not be negative, it is {value}.", "Give zero or more.")
    return span(value)
