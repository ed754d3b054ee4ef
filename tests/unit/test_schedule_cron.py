"""The moments of cron schedules: time zones, days that are skipped, and what happens when clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.errors import ConfigError
from pytrickle.schedule.cron import nth_moment

BERLIN = "Europe/Berlin"


def moments(expression: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next moments in UTC, each worked out from the one before it, as the refresher does."""
    found, moment = [], datetime.fromisoformat(after)
    for _ in range(count):
        moment = nth_moment(expression, zone, moment).astimezone(UTC)
        found.append(f"{moment:%m-%d %H:%M}")
    return found


def test_a_moment_is_one_of_its_time_zone_and_lies_after_the_one_given() -> None:
    assert moments("0 6 * * *", BERLIN, "2026-01-01T05:00Z", 2) == ["01-02 05:00", "01-03 05:00"]
    assert moments("0 6 * * *", BERLIN, "2026-07-01T03:59:59.9Z", 1) == ["07-01 04:00"]
    assert moments("0 6 * * *", "Asia/Tokyo", "2026-01-01T00:00Z", 1) == ["01-01 21:00"]
    assert moments("*/20 * * * mon-fri", "UTC", "2026-01-02T23:30Z", 2) == ["01-02 23:40", "01-05 00:00"]


def test_a_range_of_one_value_is_that_value_whatever_its_step() -> None:
    assert moments("24-24/4 17-17/2 * * *", "UTC", "2026-01-01T00:00Z", 2) == ["01-01 17:24", "01-02 17:24"]
    assert moments("0 7-17/7,1-1/3 * * *", "UTC", "2026-01-01T00:00Z", 3) == [
        "01-01 01:00",
        "01-01 07:00",
        "01-01 14:00",
    ]


def test_what_does_not_exist_when_the_clock_is_put_forward_fires_at_the_first_moment_that_does() -> None:
    """On 29 March 2026 02:00 in Berlin is 03:00 at once, which is 01:00 UTC."""
    assert moments("30 2 * * *", BERLIN, "2026-03-28T00:00Z", 3) == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]


def test_what_occurs_twice_when_the_clock_is_put_back_fires_the_first_time_only() -> None:
    """On 25 October 2026 03:00 in Berlin, which is 01:00 UTC, is 02:00 once more."""
    assert moments("30 2 * * *", BERLIN, "2026-10-24T12:00Z", 2) == ["10-25 00:30", "10-26 01:30"]
    assert moments("30 2 * * *", BERLIN, "2026-10-25T01:10Z", 1) == ["10-26 01:30"]


def test_minutes_and_hours_that_begin_with_a_star_follow_the_face_of_the_clock() -> None:
    assert moments("*/30 * * * *", BERLIN, "2026-03-29T00:20Z", 3) == ["03-29 00:30", "03-29 01:00", "03-29 01:30"]
    assert moments("*/30 * * * *", BERLIN, "2026-10-25T00:20Z", 3) == ["10-25 00:30", "10-25 01:00", "10-25 01:30"]
    assert moments("*/30 2 * * *", BERLIN, "2026-03-28T12:00Z", 1) == ["03-30 00:00"]


def test_days_that_a_month_lacks_are_left_out() -> None:
    assert moments("0 0 29 2 *", "UTC", "2026-01-01T00:00Z", 1) == ["02-29 00:00"]
    assert nth_moment("0 0 29 2 *", "UTC", datetime(2096, 3, 1, tzinfo=UTC)).year == 2104
    assert moments("0 0 31 * *", "UTC", "2026-01-31T00:00Z", 2) == ["03-31 00:00", "05-31 00:00"]


def test_the_day_of_the_month_or_of_the_week_must_match_and_both_if_one_begins_with_a_star() -> None:
    assert moments("0 0 13 * fri", "UTC", "2026-01-01T00:00Z", 3) == ["01-02 00:00", "01-09 00:00", "01-13 00:00"]
    assert moments("0 0 */13 * fri", "UTC", "2026-01-01T00:00Z", 2) == ["02-27 00:00", "03-27 00:00"]


def test_a_tier_takes_every_second_or_tenth_moment() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert nth_moment("0 * * * *", "UTC", start, 2) == start + timedelta(hours=2)
    assert nth_moment("0 * * * *", "UTC", start, 10) == start + timedelta(hours=10)


def test_an_unknown_time_zone_says_so() -> None:
    with pytest.raises(ConfigError, match="Mars/Olympus") as unknown:
        nth_moment("0 * * * *", "Mars/Olympus", datetime(2026, 1, 1, tzinfo=UTC))
    assert unknown.value.hint and "tzdata" in unknown.value.hint


ZONES = ("UTC", BERLIN, "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Asia/Beirut", "Asia/Kathmandu")
FIELDS = st.tuples(
    st.sampled_from(["*", "*/7", "0", "30", "10-50/20"]), st.sampled_from(["*", "*/3", "0", "2", "1-3", "23"])
)


@given(FIELDS, st.sampled_from(ZONES), st.integers(0, 2 * 366 * 24 * 60))
def test_moments_never_go_back(fields: tuple[str, str], zone: str, minutes: int) -> None:
    after = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    for _ in range(3):
        moment = nth_moment(f"{' '.join(fields)} * * *", zone, after)
        assert after < moment.astimezone(UTC) < after + timedelta(hours=50)
        after = moment.astimezone(UTC)
