"""How values are written on the page: moments in UTC, numbers in groups of three digits, no invisible characters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from markupsafe import Markup

from pytrickle.durations import length
from pytrickle.inspect.drawing.picture import UNPRINTABLE

NONE = "–"
_KEPT = frozenset("\n\t")
_ENDS = {datetime.max: "infinity", datetime.min: "-infinity"}


def moment(value: datetime | None) -> str:
    """Write a moment in UTC, to the second before it.

    >>> moment(datetime(2026, 1, 1, 12, tzinfo=UTC)), moment(datetime.max)
    ('2026-01-01 12:00:00', 'infinity')
    """
    if value is None:
        return NONE
    end = _ENDS.get(value.replace(tzinfo=None))
    return end or f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def complete(watermark: datetime | None, batch: int | None) -> str:
    """Write how far something is complete, by event time, by batch number or by both.

    >>> complete(None, 42), complete(None, None)
    ('batch 42', '–')
    """
    parts = (None if watermark is None else moment(watermark), None if batch is None else f"batch {batch}")
    return " and ".join(filter(None, parts)) or NONE


def apart(span: timedelta | None, batches: int | None) -> str:
    """Write how far watermarks are, or may be, from each other.

    >>> apart(timedelta(minutes=5), None), apart(None, 1)
    ('5 min', '1 batch')
    """
    if batches is not None:
        return f"{batches} {'batch' if batches == 1 else 'batches'}"
    return span_of(span)


def span_of(value: timedelta | None) -> str:
    """Write a duration."""
    return NONE if value is None else length(value)


def age_of(value: timedelta) -> str:
    """Write an age in whole seconds, as the script of the page does from then on.

    >>> age_of(timedelta(seconds=61.7)), age_of(timedelta(seconds=-1))
    ('1 min 1 s', '0 s')
    """
    return length(timedelta(seconds=max(0, int(value.total_seconds()))))


def number(value: float | None) -> str:
    """Write a number, of those that are not whole two digits after the point.

    >>> number(12345), number(0.256), number(None)
    ('12,345', '0.26', '–')
    """
    if value is None:
        return NONE
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def share(value: float | None) -> str:
    """Write a share as a percentage.

    >>> share(0.051)
    '5.1 %'
    """
    return NONE if value is None else f"{value:.1%}".replace("%", " %")


def harmless(value: Any) -> Any:
    """Replace what is invisible or reverses the direction in a text that comes from the database.

    >>> harmless("a\\u202eb\\n")
    'a�b\\n'
    """
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    if value.isprintable():
        return value
    return "".join(each if each.isprintable() or each in _KEPT else UNPRINTABLE for each in value)
