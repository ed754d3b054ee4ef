"""What is told of a watermark, when it is emitted, and how long a join keeps a row for it."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import (
    INFINITY,
    Emission,
    IntervalJoin,
    advancement_rate,
    emission_interval,
    event_time,
    parameter,
)
from tests.unit.moments import NOON, SetClock, noon, seconds

HOUR = 3_600


def test_the_metrics_of_a_generator() -> None:
    generator = event_time(seconds(0), clock=SetClock())
    for second in (10, 20, 30):
        generator.observe(noon(second), noon(second))
        generator.emit(noon(second))
    generator.observe(noon(5), noon(30))
    metrics = generator.metrics(noon(40))
    assert (metrics.watermark, metrics.lag, metrics.advancement_rate) == (noon(30), seconds(10), 1.0)
    assert (metrics.rows, metrics.late, metrics.late_ratio) == (4, 1, 0.25)
    assert (metrics.regressions, metrics.idle_share, generator.metrics(noon(91)).idle_share) == (0, 0.0, 1.0)


def test_nothing_is_told_that_is_not_known() -> None:
    metrics = event_time().metrics(NOON)
    assert (metrics.watermark, metrics.lag, metrics.advancement_rate, metrics.late_ratio) == (None, None, None, 0.0)


def loads(count: int, every: float, step: float) -> list[tuple[datetime, datetime]]:
    return [(noon(number * step), noon(number * every)) for number in range(count)]


def test_a_source_on_time_has_the_rate_one_whatever_its_cadence() -> None:
    for every in (1, 60, HOUR, 24 * HOUR):
        advances = loads(5, every, every)
        assert [advancement_rate(advances, noon((4 + late) * every)) for late in (0, 1, 2, 4)] == [1, 1, 0.5, 0.25]


def test_a_source_that_falls_behind_or_catches_up_shows_it() -> None:
    assert advancement_rate(loads(5, 60, 30), noon(240)) == 0.5
    assert advancement_rate(loads(5, 60, 600), noon(240)) == 10


def test_one_long_pause_among_many_advances_does_not_change_the_cadence() -> None:
    advances = [*loads(5, 60, 60), (noon(10_000), noon(10_000)), (noon(10_060), noon(10_060))]
    assert advancement_rate(advances, noon(10_120)) == 1


def test_the_rate_of_too_little_is_unknown() -> None:
    assert advancement_rate(loads(1, 60, 60), noon(60)) is None
    assert advancement_rate([(noon(1), NOON), (noon(2), NOON)], NOON) is None


def test_only_the_latest_twenty_advances_count() -> None:
    generator = event_time(seconds(0), clock=SetClock())
    for second in [*range(0, 100, 10), *range(100, 121)]:
        generator.observe(noon(second), noon(second))
        generator.emit(noon(second))
    assert generator.metrics(noon(122)).advancement_rate == 0.5, "of one second, not of ten"


def test_infinity_is_the_text_that_the_database_takes() -> None:
    assert (parameter(INFINITY), parameter(NOON)) == ("infinity", "2026-03-02T12:00:00+00:00")


@pytest.mark.parametrize(
    ("rate", "milliseconds"),
    [(0, 1_000), (999, 1_000), (1_000, 200), (99_999, 200), (100_000, 100), (999_999, 100), (1_000_000, 50)],
)
def test_more_rows_mean_shorter_intervals(rate: float, milliseconds: float) -> None:
    assert emission_interval(rate) == seconds(milliseconds / 1_000)


def test_a_slow_source_emits_every_second() -> None:
    emission = Emission(clock=SetClock())
    assert [emission.due(1, noon(elapsed)) for elapsed in (0, 0.5, 0.9, 1.0, 1.5, 1.9, 2.0)] == [
        *(False, False, False, True, False, False, True)
    ]


def test_a_fast_source_emits_more_often() -> None:
    emission = Emission(clock=SetClock())
    assert [emission.due(25_000, noon(elapsed)) for elapsed in (0.05, 0.1, 0.15, 0.2, 0.25)] == [
        *(False, True, False, True, False)
    ], "250,000 to 500,000 rows a second: every 100 ms"


def test_a_given_interval_is_kept_whatever_comes() -> None:
    emission = Emission(seconds(5), SetClock())
    assert [emission.due(10**6, noon(elapsed)) for elapsed in (1, 4.9, 5, 9.9, 10)] == [False, False, True, False, True]


def test_an_interval_of_nothing_emits_every_time() -> None:
    emission = Emission(seconds(0), SetClock())
    assert [emission.due(1, noon(elapsed)) for elapsed in (0, 0, 0.5, 0.2)] == [True] * 4


def test_a_clock_that_is_set_back_does_not_put_emission_off() -> None:
    emission = Emission(clock=SetClock(noon(HOUR)))
    assert not emission.due(1, noon(0))
    assert emission.due(1, noon(1))


def test_a_row_is_kept_while_the_other_side_may_still_match_it() -> None:
    join = IntervalJoin(seconds(300))
    kept = [join.keeps(NOON, noon(other)) for other in (-10_000, 299, 300, 300.000001, 10_000)]
    assert kept == [True, True, True, False, False]
    assert join.keeps(NOON, None), "a source that asserted nothing may send anything"
    assert not join.keeps(NOON, INFINITY), "an exhausted one sends nothing more"


@given(st.integers(-1_000, 1_000), st.integers(-1_000, 1_000), st.integers(0, 500))
def test_no_row_that_may_still_come_finds_its_match_evicted(left: int, watermark: int, interval: int) -> None:
    join = IntervalJoin(seconds(interval))
    to_come = range(watermark, watermark + 2_600)
    may_match = any(abs(left - right) <= interval for right in to_come)
    assert join.keeps(noon(left), noon(watermark)) == may_match


def test_a_join_is_complete_as_far_as_both_its_sides_are() -> None:
    join = IntervalJoin(seconds(1))
    assert join.watermark(noon(3), noon(5)) == noon(3)
    assert (join.watermark(None, NOON), join.watermark(NOON, None)) == (None, None)
    with pytest.raises(InvalidArgument):
        IntervalJoin(seconds(-1))
