"""How durations, instants and results are written on the command line and in JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from math import isfinite
from typing import TYPE_CHECKING, Any

import typer

from pytrickle.durations import length as length

if TYPE_CHECKING:
    Watermark = Any
else:
    # The name stands in the help of commands.
    Watermark = type("moment or batch", (), {})

# The largest numbers that PostgreSQL's types of these names hold.
INTEGER, BIGINT = 2**31 - 1, 2**63 - 1

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "millisecond": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "sec": timedelta(seconds=1),
    "second": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "min": timedelta(minutes=1),
    "minute": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "hour": timedelta(hours=1),
    "d": timedelta(days=1),
    "day": timedelta(days=1),
    "w": timedelta(weeks=1),
    "week": timedelta(weeks=1),
}
# As PostgreSQL writes a moment in a sentence, in UTC.
_MOMENT = re.compile(r"(?<![\d-])\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00(?::00)?(?!:?\d)")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_CLOCK = re.compile(r"([0-9]+):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?")


def duration(text: str) -> timedelta:
    """Read a duration: ``30 seconds``, ``5m``, ``1h 30m``, ``00:05:00`` or ``0``.

    Raises typer.BadParameter, a usage error, for anything else, and for one below zero.

    >>> duration("1h 30m")
    datetime.timedelta(seconds=5400)
    """
    below_zero = text.strip().startswith("-")
    try:
        length = _length(text.strip().lower().removeprefix("-").strip())
    except OverflowError:
        length = None
    if length is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write it like '30 seconds', '5m' or '1h 30m'.")
    if below_zero and length:
        raise typer.BadParameter(f"{text!r} is below zero; write a duration like '30 seconds', '5m' or '1h 30m'.")
    return length


def _length(text: str) -> timedelta | None:
    if text == "0":
        return timedelta(0)
    if clock := _CLOCK.fullmatch(text):
        hours, minutes, seconds = clock.groups(default="0")
        return timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds))
    parts = _PART.findall(text)
    units = [_UNITS.get(unit) or _UNITS.get(unit.removesuffix("s")) for _, unit in parts]
    if not parts or _PART.sub("", text) or None in units:
        return None
    return sum((float(number) * unit for (number, _), unit in zip(parts, units, strict=True) if unit), timedelta(0))


def instant(text: str) -> datetime:
    """Read a moment: ISO 8601 with a UTC offset or ``Z``, or ``infinity`` for a source that is exhausted.

    Raises typer.BadParameter when it has another form or no offset: a watermark cannot be moved back, so the zone
    is not guessed.

    >>> instant("2026-01-01T12:00Z").isoformat()
    '2026-01-01T12:00:00+00:00'
    """
    if text.strip().lower() == "infinity":
        return datetime.max.replace(tzinfo=UTC)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a moment; write it like 2026-01-01T12:00:00Z.") from None
    if moment.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no UTC offset; write it like 2026-01-01T12:00:00Z.")
    return moment


def watermark(text: str) -> datetime | int:
    """Read a watermark: a moment as `instant` does, or a whole number, which is that of a batch.

    >>> watermark("42"), watermark("2026-01-01T12:00Z").isoformat()
    (42, '2026-01-01T12:00:00+00:00')
    """
    return up_to(BIGINT)(int(text)) if _WHOLE.fullmatch(text.strip()) else instant(text)


def up_to(largest: int) -> Callable[[Any], Any]:
    """Return a check of the whole numbers of an option, one or several, that the database takes up to `largest`.

    >>> up_to(BIGINT)(42), up_to(BIGINT)([1, 2]), up_to(BIGINT)(None)
    (42, [1, 2], None)
    """

    def check(value: Any) -> Any:
        for number in value if isinstance(value, list | tuple) else [value]:
            if number is not None and abs(number) > largest:
                raise typer.BadParameter(f"{number} is out of range; numbers go up to {largest}.")
        return value

    return check


def limit(shown: str) -> Any:
    """Return the option that says how many rows are shown, which the functions of the database take as an integer."""
    return typer.Option("--limit", "-n", min=1, callback=up_to(INTEGER), help=f"How many {shown} to show.")


def address(text: str) -> tuple[str, int]:
    """Read where to listen: a port, or a host and a port; without a host it is this machine alone.

    >>> address("9187"), address("0.0.0.0:9187"), address("[::1]:9187")
    (('127.0.0.1', 9187), ('0.0.0.0', 9187), ('::1', 9187))
    """
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"{text!r} is no address; write it like 127.0.0.1:9187.")
    return host.strip("[]") or "127.0.0.1", int(port)


def jsonable(value: Any) -> Any:
    """Return what ``json`` can write: values as objects, moments in ISO 8601, durations in seconds."""
    if is_dataclass(value):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    match value:
        case datetime():
            return _written(value, UTC, "T", "auto")
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(key): jsonable(item) for key, item in value.items()}
        case tuple() | list():
            return [jsonable(item) for item in value]
        case float() if not isfinite(value):
            # As PostgreSQL's JSON has them: that has no number for it.
            return str(value).replace("nan", "NaN").replace("inf", "Infinity")
        case None | bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def cell(value: Any) -> str:
    """Write a value of a row for people: text as it is, and a moment with all its digits.

    >>> cell([1, None]), cell(True), cell(datetime(2026, 1, 1, 12, tzinfo=UTC))
    ('[1, null]', 'true', '2026-01-01 12:00:00+00:00')
    """
    if isinstance(value, datetime):
        return _written(value, None if sys.stdout.isatty() else UTC, " ", "auto")
    written = jsonable(value)
    return written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)


def moment(value: datetime) -> str:
    """Write a moment for people, to the second before it: in their own time zone on a terminal, else in UTC.

    >>> moment(datetime(2026, 1, 1, 12, tzinfo=UTC)), moment(datetime.max)
    ('2026-01-01 12:00:00+00:00', 'infinity')
    """
    return _written(value, None if sys.stdout.isatty() else UTC, " ", "seconds")


def sentence(text: str, *, local: bool | None = None) -> str:
    """Write the moments of a sentence as those of the tables beside it are written, with all their digits.

    That is in the time zone of this machine on a terminal, or as `local` says.

    >>> sentence("aligned at 2026-01-01 12:00:00.5+00; 1999-12-31 and +00 are no moments")
    'aligned at 2026-01-01 12:00:00.500000+00:00; 1999-12-31 and +00 are no moments'
    """
    zone = None if (sys.stdout.isatty() if local is None else local) else UTC
    return _MOMENT.sub(lambda found: _written(datetime.fromisoformat(found[0]), zone, " ", "auto"), text)


def _written(value: datetime, zone: tzinfo | None, separator: str, precision: str) -> str:
    """Write a moment in ISO 8601, in a time zone or in that of this machine."""
    match value.replace(tzinfo=None):
        case datetime.max:
            return "infinity"
        case datetime.min:
            return "-infinity"
    # Within a day of the ends of Python's calendar there may be no other zone.
    with suppress(OverflowError):
        value = value.astimezone(zone)
    return value.isoformat(separator, precision)


def through(event_time: datetime | None, batch: int | None) -> str | None:
    """Write how far something is complete, for people; None where neither kind says anything.

    >>> through(None, 42), through(datetime(2026, 1, 1, tzinfo=UTC), 42)
    ('batch 42', '2026-01-01 00:00:00+00:00 and batch 42')
    """
    parts = (None if event_time is None else moment(event_time), None if batch is None else f"batch {batch}")
    return " and ".join(filter(None, parts)) or None


def reached(value: datetime | int) -> str:
    """Write one watermark, of either kind, for people.

    >>> reached(42)
    'batch 42'
    """
    return f"batch {value}" if isinstance(value, int) else moment(value)


def distance(span: timedelta | None, batches: int | None) -> str | None:
    """Write how far watermarks are or may be apart, for people; None where that is not known.

    >>> distance(timedelta(minutes=5), None), distance(None, 1)
    ('5 min', '1 batch')
    """
    if batches is not None:
        return f"{batches} {'batch' if batches == 1 else 'batches'}"
    return None if span is None else length(span)
