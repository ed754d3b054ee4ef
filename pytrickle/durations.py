"""How a duration is written for people."""

from __future__ import annotations

from datetime import timedelta


def length(value: timedelta) -> str:
    """Write a duration for people, in its two largest units.

    >>> length(timedelta(minutes=90)), length(timedelta(seconds=0.12)), length(timedelta(days=-1))
    ('1 h 30 min', '120 ms', '-1 d')
    """
    if value < timedelta(0):
        return f"-{length(-value)}"
    if timedelta(0) < value < timedelta(seconds=1):
        return f"{max(1, round(value / timedelta(milliseconds=1)))} ms"
    if value < timedelta(minutes=1) and value.microseconds:
        return f"{value.total_seconds():.1f} s"
    minutes, seconds = divmod(int(value.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    written = [f"{number} {unit}" for number, unit in parts if number]
    return " ".join(written[:2]) or "0 s"
