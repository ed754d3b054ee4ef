"""Every watermark generator: the worked numbers of the field, and what each does that the others do not."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import (
    INFINITY,
    adaptive,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    processing_time,
    punctuated,
    quantile,
)
from tests.unit.generators import observe
from tests.unit.moments import NOON, SetClock, noon, seconds


def test_the_greatest_event_time_minus_the_lateness() -> None:
    generator = event_time(seconds(5))
    generator.observe(datetime(2024, 5, 16, 9, tzinfo=UTC))
    assert generator.emit() == datetime(2024, 5, 16, 8, 59, 55, tzinfo=UTC)


def test_an_event_before_the_next_watermark_is_not_late_while_the_one_in_force_is_lower() -> None:
    ten = datetime(2026, 3, 18, 10, tzinfo=UTC)
    generator = event_time(seconds(5))
    arrivals = [ten + seconds(second) for second in (3, 1, 7)]
    assert [generator.observe(one, ten) for one in arrivals] == [False, False, False]
    assert generator.candidate(ten) == ten + seconds(2)
    assert not generator.observe(ten + seconds(1), ten)
    assert generator.emit(ten) == ten + seconds(2)
    assert generator.observe(ten + seconds(1), ten)
    assert not generator.observe(ten + seconds(2), ten), "only what lies before the watermark is late"


def test_the_lateness_is_one_second_unless_given() -> None:
    generator = event_time()
    observe(generator, 10)
    assert generator.emit() == noon(9)


def test_processing_time_follows_the_clock_and_not_the_rows() -> None:
    clock = SetClock()
    generator = processing_time(seconds(10), clock=clock)
    assert observe(generator, -3600, 600) == [False, False]
    assert generator.emit() == noon(-10)
    clock.now = noon(60)
    assert generator.emit() == noon(50)
    clock.now = noon(20)
    assert generator.emit() == noon(50), "a clock that is set back takes nothing back"


def test_processing_time_with_an_idle_timeout_is_an_error() -> None:
    with pytest.raises(InvalidArgument, match="no idle timeout"):
        processing_time(idle_timeout=seconds(60))
    for generator in (processing_time(clock=SetClock()), processing_time(idle_timeout=None, clock=SetClock())):
        assert not generator.is_idle(noon(10**9))


def test_only_marks_move_a_punctuated_watermark() -> None:
    generator = punctuated()
    observe(generator, 100)
    assert generator.emit(NOON) is None
    generator.mark(noon(30), NOON)
    assert (generator.emit(NOON), observe(generator, 29, 30)) == (noon(30), [True, False])
    generator.mark(noon(20), NOON)
    assert (generator.emit(NOON), generator.metrics(NOON).regressions) == (noon(30), 1)


def test_change_capture_trails_the_last_transaction_committed() -> None:
    generator = cdc(seconds(3))
    generator.mark(noon(30), NOON)
    assert generator.emit(NOON) == noon(27)


def test_heartbeats_go_on_without_rows() -> None:
    generator = heartbeat(seconds(5))
    observe(generator, 10)
    assert generator.emit(NOON) == noon(5)
    generator.mark(noon(40), NOON)
    assert generator.emit(NOON) == noon(35)
    observe(generator, 50)
    assert generator.emit(NOON) == noon(45)


def test_a_file_stands_at_the_greatest_time_read_and_ends_at_infinity() -> None:
    generator = bounded_file()
    observe(generator, 1, 2, 3)
    assert generator.emit(NOON) == noon(3)
    generator.exhaust()
    assert generator.watermark == noon(3), "the end is asserted like everything else, by emitting it"
    assert generator.emit(NOON) == INFINITY
    assert observe(generator, 10**6) == [True]
    assert generator.metrics(NOON).lag is None


def test_a_quantile_is_not_led_astray_by_one_row_of_the_far_future() -> None:
    robust, greatest = (make(max_ahead=None, watermark_lateness=seconds(0)) for make in (quantile, event_time))
    for generator in (robust, greatest):
        observe(generator, *range(10), 10**9)
    assert (robust.emit(NOON), greatest.emit(NOON)) == (noon(9), noon(10**9))


def test_a_quantile_leaves_out_the_newest_hundredth_of_its_window_and_one_row_at_least() -> None:
    generator = quantile(watermark_lateness=seconds(0))
    observe(generator, 0)
    assert generator.emit(NOON) is None
    observe(generator, 1)
    assert generator.emit(NOON) == noon(0)
    observe(generator, *range(2, 200))
    assert generator.emit(NOON) == noon(197), "of 200 rows the 198th"
    observe(generator, *range(200, 5_000))
    assert generator.emit(NOON) == noon(4_989), "of the last 1,000 the 990th"


def test_an_adaptive_delay_is_thirty_seconds_until_a_hundred_rows_were_seen() -> None:
    generator = adaptive()
    for number in range(99):
        generator.observe(noon(number), noon(number + 2))
    assert generator.emit(noon(100)) == noon(98 - 30)
    generator.observe(noon(99), noon(101))
    assert generator.emit(noon(101)) == noon(99 - 2)


def test_an_adaptive_delay_is_that_which_99_of_100_rows_kept() -> None:
    generator = adaptive()
    for skew in range(1, 101):
        generator.observe(noon(1_000), noon(1_000 + skew))
    assert generator.emit(noon(2_000)) == noon(1_000 - 99)


def test_an_adaptive_delay_forgets_what_its_window_has_lost() -> None:
    generator = adaptive(window=100)
    for skew in [*[60] * 100, *[1] * 100]:
        generator.observe(noon(1_000), noon(1_000 + skew))
    assert generator.emit(noon(2_000)) == noon(999)


def test_an_adaptive_watermark_does_not_follow_a_delay_that_grows() -> None:
    generator = adaptive(window=100)
    for skew in [1] * 100:
        generator.observe(noon(1_000), noon(1_000 + skew))
    assert generator.emit(noon(2_000)) == noon(999)
    for skew in [60] * 100:
        generator.observe(noon(1_000), noon(1_000 + skew))
    assert generator.emit(noon(2_000)) == noon(999)
    assert generator.metrics(noon(2_000)).regressions == 1


def test_an_adaptive_delay_is_never_negative_though_a_clock_be_ahead() -> None:
    generator = adaptive()
    for _ in range(100):
        generator.observe(noon(60), noon(0))
    assert generator.emit(NOON) == noon(60)


def test_an_adaptive_generator_that_reads_a_window_again_stays_where_it_is() -> None:
    generator = adaptive()
    for _ in range(2):
        for number in range(150):
            generator.observe(noon(number), noon(number + number % 7))
        emitted = generator.emit(noon(200))
        assert emitted == noon(149 - 6)
