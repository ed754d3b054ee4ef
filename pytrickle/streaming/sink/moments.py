"""Days and moments as PostgreSQL reads them: Arrow's own text ends at the year 32767 and has no years BC."""

from __future__ import annotations

from datetime import date, timedelta

import pyarrow as pa
import pyarrow.compute as pc

DAYS_OF_400_YEARS = 146_097
MICROSECONDS_OF_A_DAY = 86_400_000_000
# Within the years that Python and Arrow know, in days and in microseconds since 1970.
FIRST_DAY, LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))
PLAIN_DAYS = (FIRST_DAY, LAST_DAY)
PLAIN_MOMENTS = (FIRST_DAY * MICROSECONDS_OF_A_DAY, (LAST_DAY + 1) * MICROSECONDS_OF_A_DAY - 1)


def text_of_days(column: pa.Array) -> pa.Array:
    """Write days that Arrow cannot write; return others as they are."""
    numbers = column.cast(pa.int32())
    if _all_within(numbers, PLAIN_DAYS):
        return column
    return pa.array([None if days is None else day_text(days) for days in numbers.to_pylist()], pa.string())


def text_of_moments(column: pa.Array) -> pa.Array:
    """Write moments, with a time zone in UTC, that Arrow cannot write; return others as they are."""
    zone = column.type.tz
    # Arrow would write the time of the session's zone, and of its offset no seconds, which it may have: before 1920
    # that of Kathmandu was +05:41:16.
    column = column.cast(pa.timestamp("us", "UTC")) if zone else column.cast(pa.timestamp("us"))
    numbers = column.cast(pa.int64())
    if _all_within(numbers, PLAIN_MOMENTS):
        return column
    suffix = "+00" if zone else ""
    texts = [None if moment is None else moment_text(moment, suffix) for moment in numbers.to_pylist()]
    return pa.array(texts, pa.string())


def day_text(days: int) -> str:
    """Write a day, given in days since 1970.

    >>> day_text(0), day_text(-720_000), day_text(20_000_000)
    ('1970-01-01', '0003-09-16 BC', '56728-02-22')
    """
    day, era = _parts(days)
    return f"{day}{era}"


def moment_text(moment: int, suffix: str) -> str:
    """Write a moment, given in microseconds since 1970, with the suffix that names its zone.

    >>> moment_text(-1, "+00"), moment_text(-62_198_755_200_000_000, "")
    ('1969-12-31 23:59:59.999999+00', '0002-01-01 00:00:00.000000 BC')
    """
    days, rest = divmod(moment, MICROSECONDS_OF_A_DAY)
    seconds, fraction = divmod(rest, 1_000_000)
    day, era = _parts(days)
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction:06}"
    return f"{day} {clock}{suffix}{era}"


def _parts(days: int) -> tuple[str, str]:
    """Return the day, and the era where it is BC; every 400 years the days of the calendar are the same."""
    cycles, rest = divmod(days, DAYS_OF_400_YEARS)
    within = date(1970, 1, 1) + timedelta(days=rest)
    year = within.year + 400 * cycles
    shown, era = (year, "") if year > 0 else (1 - year, " BC")
    return f"{shown:04}-{within.month:02}-{within.day:02}", era


def _all_within(numbers: pa.Array, limits: tuple[int, int]) -> bool:
    ends = pc.min_max(numbers).as_py()
    return ends["min"] is None or (limits[0] <= ends["min"] and ends["max"] <= limits[1])
