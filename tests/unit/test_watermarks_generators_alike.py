"""What all watermark generators do alike: where they start, what they believe, when they are idle, what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import (
    INFINITY,
    Generator,
    adaptive,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    processing_time,
    punctuated,
    quantile,
)
from tests.unit.generators import EVERY, TAKING_MARKS, observe
from tests.unit.moments import NOON, SetClock, noon, seconds


@pytest.mark.parametrize("make", EVERY)
def test_nothing_may_be_asserted_before_anything_was_seen(make: Callable[..., Generator]) -> None:
    generator = make()
    expected = None if make is not processing_time else noon(-1)
    assert (generator.watermark, generator.candidate(NOON)) == (None, expected)


def test_a_candidate_changes_nothing_until_it_is_emitted() -> None:
    generator = event_time(seconds(0))
    observe(generator, 5)
    assert generator.candidate(NOON) == noon(5)
    assert (generator.watermark, observe(generator, 1)) == (None, [False])
    assert (generator.emit(NOON), observe(generator, 1)) == (noon(5), [True])


@pytest.mark.parametrize("make", [make for make in EVERY if make not in TAKING_MARKS])
def test_a_mark_that_would_not_be_heeded_is_an_error(make: Callable[..., Generator]) -> None:
    with pytest.raises(InvalidArgument, match="takes no marks"):
        make().mark(NOON)


@pytest.mark.parametrize("make", TAKING_MARKS)
def test_a_mark_of_infinity_says_that_the_source_is_exhausted(make: Callable[..., Generator]) -> None:
    generator = make()
    generator.mark(INFINITY)
    assert generator.emit() == INFINITY


def test_a_generator_started_at_infinity_stays_there() -> None:
    generator = event_time(start=INFINITY, clock=SetClock())
    assert (generator.emit(), generator.is_idle(noon(10**6))) == (INFINITY, False)


@pytest.mark.parametrize("make", EVERY)
def test_a_generator_goes_on_from_the_watermark_it_is_started_with(make: Callable[..., Generator]) -> None:
    generator = make(start=noon(100), clock=SetClock())
    assert generator.observe(noon(99))
    if make in TAKING_MARKS:
        generator.mark(noon(99))
    assert generator.emit() == noon(100)


@pytest.mark.parametrize("make", [event_time, heartbeat, quantile, bounded_file, adaptive])
def test_what_is_too_far_ahead_of_the_clock_is_counted_and_not_believed(make: Callable[..., Generator]) -> None:
    generator = make(max_ahead=seconds(60), clock=SetClock())
    observe(generator, 0, 0, 60, 61, 10**8)
    emitted = generator.emit()
    assert emitted is not None and emitted <= noon(60)
    assert (generator.metrics().ahead, generator.metrics().rows) == (2, 5)


def test_a_mark_too_far_ahead_is_not_believed_either() -> None:
    generator = punctuated(max_ahead=seconds(60), clock=SetClock())
    generator.mark(noon(61))
    assert (generator.emit(), generator.metrics().ahead) == (None, 1)


def test_one_day_ahead_is_the_limit_unless_given() -> None:
    generator = event_time(seconds(0), clock=SetClock())
    observe(generator, 86_400, 86_401)
    assert (generator.emit(), generator.metrics().ahead) == (noon(86_400), 1)


@pytest.mark.parametrize("unusable", [None, INFINITY, datetime.min.replace(tzinfo=UTC)])
def test_a_row_without_a_usable_event_time_is_counted_and_moves_nothing(unusable: datetime | None) -> None:
    generator = event_time(max_ahead=None)
    observe(generator, 1)
    assert not generator.observe(unusable, NOON)
    assert (generator.emit(NOON), generator.metrics(NOON).unplaced) == (noon(0), 1)


def test_event_times_of_any_zone_are_the_moments_they_are() -> None:
    generator = event_time(seconds(0))
    generator.observe(NOON.astimezone(timezone(timedelta(hours=5, minutes=30))), NOON)
    assert generator.emit(NOON) == NOON


def test_an_event_time_without_an_offset_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="no UTC offset"):
        event_time().observe(datetime(2026, 3, 2, 12))


@pytest.mark.parametrize("make", [make for make in EVERY if make is not processing_time])
def test_a_generator_is_idle_after_a_minute_without_rows(make: Callable[..., Generator]) -> None:
    clock = SetClock()
    generator = make(clock=clock)
    assert not generator.is_idle(noon(60))
    assert generator.is_idle(noon(61))
    generator.observe(NOON, noon(30))
    assert (generator.is_idle(noon(90)), generator.is_idle(noon(91))) == (False, True)
    assert not make(clock=clock, idle_timeout=None).is_idle(noon(10**6))
    generator.exhaust()
    assert not generator.is_idle(noon(10**6)), "who has said everything is not waited for"


def test_a_mark_is_a_sign_of_life() -> None:
    generator = heartbeat(clock=SetClock())
    generator.mark(NOON, noon(30))
    assert not generator.is_idle(noon(90))


@pytest.mark.parametrize(
    "make",
    [
        lambda: event_time(seconds(-1)),
        lambda: processing_time(seconds(-1)),
        lambda: cdc(seconds(-1)),
        lambda: heartbeat(seconds(-1)),
        lambda: adaptive(0),
        lambda: adaptive(1),
        lambda: adaptive(initial_delay=seconds(-1)),
        lambda: adaptive(window=1),
        lambda: quantile(1.5),
        lambda: quantile(window=0),
        lambda: event_time(idle_timeout=seconds(-1)),
        lambda: event_time(max_ahead=seconds(-1)),
    ],
)
def test_an_option_that_makes_no_sense_is_an_error(make: Callable[[], Generator]) -> None:
    with pytest.raises(InvalidArgument):
        make()


@pytest.mark.parametrize("make", [event_time, bounded_file, quantile, heartbeat])
def test_rows_that_are_read_again_change_nothing(make: Callable[..., Generator]) -> None:
    generator = make(clock=SetClock())
    rows = [5, 3, 9, 1, 7]
    observe(generator, *rows)
    once = generator.emit()
    observe(generator, *rows)
    assert generator.emit() == once != None  # noqa: E711


def test_marks_that_are_read_again_change_nothing() -> None:
    generator = punctuated(clock=SetClock())
    for mark in (1, 5, 9, 1, 5, 9):
        generator.mark(noon(mark))
    assert generator.emit() == noon(9)


@pytest.mark.parametrize("moment", ["2026-01-01", date(2026, 1, 1), 1_700_000_000])
def test_what_is_no_moment_is_refused(moment: Any) -> None:
    with pytest.raises(InvalidArgument, match="is not a datetime"):
        event_time().observe(moment)
