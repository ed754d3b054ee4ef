"""The watermark over partitions: who counts, who is waited for, and what is kept when a partition moves."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.errors import InvalidArgument, UnknownInput
from pytrickle.watermarks import (
    INFINITY,
    InputState,
    InputStatus,
    Tenants,
    Tracker,
    Validator,
    event_time,
)
from pytrickle.watermarks.generators.outliers import outliers
from tests.unit.moments import NOON, SetClock, noon, seconds


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


def input_of(tracker: Tracker, name: str) -> InputStatus:
    return next(one for one in tracker.status().inputs if one.name == name)


def test_an_idle_partition_holds_up_the_others_until_it_is_left_out() -> None:
    now = datetime(2026, 3, 18, 10, 5, tzinfo=UTC)
    clock = SetClock(now - seconds(600))
    tracker = Tracker(["0", "1", "2"], clock=clock)
    tracker.report("2", datetime(2026, 3, 18, 9, 55, tzinfo=UTC))
    clock.now = now
    patient = Tracker(["0", "1", "2"], idle_timeout=None, clock=clock)
    patient.report("2", datetime(2026, 3, 18, 9, 55, tzinfo=UTC), now - seconds(600))
    for each in (tracker, patient):
        each.report("0", datetime(2026, 3, 18, 10, 5, tzinfo=UTC))
        each.report("1", datetime(2026, 3, 18, 10, 4, 50, tzinfo=UTC))
    assert patient.emit() == datetime(2026, 3, 18, 9, 55, tzinfo=UTC)
    assert tracker.emit() == datetime(2026, 3, 18, 10, 4, 50, tzinfo=UTC)
    assert (patient.status().waiting_for, tracker.status().waiting_for) == ("2", "1")
    assert (input_of(tracker, "2").state, tracker.metrics().idle_share) == (InputState.IDLE, pytest.approx(1 / 3))


def test_an_input_is_idle_after_more_than_a_minute_of_silence(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("a", noon(10))
    tracker.report("b", noon(5))
    clock.now = noon(60)
    tracker.report("a", noon(10))
    assert tracker.emit() == noon(5), "a report that repeats the watermark is a sign of life"
    clock.now = noon(61)
    assert tracker.emit() == noon(10)


def test_an_input_that_never_reported_is_waited_for_until_it_is_idle(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("a", noon(10))
    assert (tracker.emit(), tracker.status().waiting_for) == (None, "b")
    clock.now = noon(50)
    tracker.report("a", noon(10))
    tracker.report("b", None)
    clock.now = noon(100)
    assert tracker.emit() is None, "to have nothing to assert yet is a sign of life too"
    clock.now = noon(110)
    tracker.report("a", noon(20))
    clock.now = noon(111)
    assert tracker.emit() == noon(20)


def test_while_all_inputs_are_idle_the_watermark_stays_where_it_is(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("a", noon(10))
    tracker.report("b", noon(5))
    assert tracker.emit() == noon(5)
    clock.now = noon(1_000)
    assert tracker.emit() == noon(5), "neither back to nothing nor on to what only one input asserted"
    assert (tracker.status().waiting_for, tracker.metrics().idle_share) == (None, 1.0)


def test_an_input_that_wakes_up_behind_takes_nothing_back(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("b", noon(5))
    clock.now = noon(100)
    tracker.report("a", noon(90))
    assert tracker.emit() == noon(90)
    tracker.report("b", noon(50))
    assert (tracker.emit(), tracker.status().waiting_for) == (noon(90), "b")
    tracker.report("a", noon(95))
    tracker.report("b", noon(92))
    assert tracker.emit() == noon(92)


def test_a_tracker_without_inputs_asserts_nothing(clock: SetClock) -> None:
    assert Tracker(clock=clock).emit() is None
    assert Tracker(clock=clock).metrics().idle_share == 0


def test_an_input_nobody_assigned_is_an_error(clock: SetClock) -> None:
    tracker = Tracker(["a"], clock=clock)
    for call in (lambda: tracker.report("b", NOON), lambda: tracker.release("b")):
        with pytest.raises(UnknownInput, match="'b'"):
            call()


def test_exhausted_inputs_hold_nobody_up_and_only_all_of_them_are_the_end(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("a", INFINITY)
    tracker.report("b", noon(5))
    assert tracker.emit() == noon(5)
    clock.now = noon(1_000)
    assert input_of(tracker, "a").state is InputState.EXHAUSTED
    assert tracker.emit() == noon(5), "an idle input may wake up: the end would be for ever"
    tracker.report("b", INFINITY)
    assert tracker.emit() == INFINITY


def test_high_water_marks_are_kept_while_a_partition_is_read_elsewhere(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("a", noon(10))
    tracker.report("b", noon(20))
    tracker.release("a")
    assert tracker.emit() == noon(20)
    tracker.assign("a")
    assert input_of(tracker, "a").watermark == noon(10)
    assert not tracker.report("a", noon(3)), "rows read again from an older offset"
    assert (input_of(tracker, "a").watermark, input_of(tracker, "a").regressions) == (noon(10), 1)
    assert tracker.report("a", noon(30))
    tracker.report("b", noon(30))
    assert (tracker.emit(), tracker.metrics().regressions) == (noon(30), 1)


def test_high_water_marks_survive_a_restart(clock: SetClock) -> None:
    before = Tracker(["a", "b"], clock=clock)
    before.report("a", noon(10))
    before.report("b", noon(20))
    before.release("b")
    assert before.marks() == {"a": noon(10), "b": noon(20)}
    after = Tracker(["a", "b"], marks=before.marks(), start=noon(10), clock=clock)
    assert (after.watermark, after.report("b", noon(1)), after.emit()) == (noon(10), False, noon(10))


def test_an_input_assigned_again_is_not_idle_at_once(clock: SetClock) -> None:
    tracker = Tracker(["a"], marks={"b": noon(3)}, clock=clock)
    clock.now = noon(100)
    tracker.report("a", noon(50))
    tracker.assign("b")
    assert tracker.emit() == noon(3)
    tracker.assign("a")
    assert input_of(tracker, "a").watermark == noon(50), "to assign twice changes nothing"


def test_a_watermark_too_far_in_the_future_is_counted_and_not_believed(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], max_ahead=seconds(60), clock=clock)
    tracker.report("a", noon(5))
    tracker.report("b", noon(7))
    assert not tracker.report("a", noon(61))
    assert tracker.report("b", noon(60))
    assert (tracker.emit(), input_of(tracker, "a").ahead, tracker.metrics().ahead) == (noon(5), 1, 1)
    assert Tracker(["a"], max_ahead=None, clock=clock).report("a", noon(10**9))
    assert not Tracker(["a"], clock=clock).report("a", noon(86_401)), "one day is the limit unless given"


def test_a_clock_that_is_ahead_raises_its_partition_and_is_never_the_least(clock: SetClock) -> None:
    tracker = Tracker("abc", clock=clock)
    for name, watermark in (("a", noon(-30)), ("b", noon(-40)), ("c", noon(570))):
        tracker.report(name, watermark)
    assert (tracker.emit(), tracker.status().waiting_for) == (noon(-40), "b")


def report_all(tracker: Tracker, *watermarks: float) -> None:
    for name, watermark in zip("abcdefgh", watermarks, strict=False):
        tracker.report(name, noon(watermark))


@pytest.mark.parametrize(("ahead_or_behind", "expected"), [(-1_000, 0), (1_000, 0)])
def test_an_outlier_of_five_is_left_out_if_asked_for_and_reported(
    clock: SetClock, ahead_or_behind: int, expected: int
) -> None:
    tracker = Tracker("abcde", exclude_outliers=True, clock=clock)
    plain = Tracker("abcde", clock=clock)
    for each in (tracker, plain):
        report_all(each, 0, 1, 2, 3, ahead_or_behind)
    assert tracker.emit() == noon(expected)
    assert plain.emit() == noon(min(0, ahead_or_behind)), "whoever is ahead was not waited for anyway"
    assert (input_of(tracker, "e").state, input_of(tracker, "e").excluded) == (InputState.OUTLIER, 1)
    assert input_of(plain, "e").state is InputState.ACTIVE
    tracker.candidate()
    tracker.status()
    assert input_of(tracker, "e").excluded == 1, "counted once for every emission"


def test_idle_and_exhausted_inputs_are_no_part_of_what_an_outlier_is_measured_by(clock: SetClock) -> None:
    tracker = Tracker("abcdef", exclude_outliers=True, clock=clock)
    report_all(tracker, 0, 0, 0, 0, 0, -1_000)
    tracker.report("a", INFINITY)
    assert tracker.emit() == noon(0)
    tracker.report("b", INFINITY)
    assert input_of(tracker, "f").state is InputState.ACTIVE, "four are left, and of four none can be an outlier"


@given(st.lists(st.integers(-(10**15), 10**15), max_size=4))
def test_of_four_sources_none_is_ever_an_outlier(watermarks: list[int]) -> None:
    assert outliers(dict(enumerate(watermarks))) == frozenset()


@given(st.lists(st.integers(-100, 100) | st.integers(-(10**15), 10**15), min_size=1, max_size=12))
def test_outliers_are_more_than_two_sample_deviations_from_the_median(watermarks: list[int]) -> None:
    from fractions import Fraction
    from statistics import median, variance

    values = [Fraction(one) for one in watermarks]
    spread = 4 * variance(values) if len(values) > 1 else 0
    expected = {number for number, one in enumerate(values) if (one - median(values)) ** 2 > spread}
    assert outliers(dict(enumerate(watermarks))) == (expected if len(values) > 1 else frozenset())


def test_five_sources_are_enough_for_an_outlier_and_equal_ones_have_none() -> None:
    assert outliers(dict(enumerate([0, 0, 0, 0, 1]))) == {4}
    assert outliers(dict(enumerate([7] * 9))) == frozenset()


def test_tenants_do_not_wait_for_each_other(clock: SetClock) -> None:
    tenants = Tenants(lambda: Tracker(["only"], clock=clock))
    tenants["slow"].report("only", noon(1))
    tenants["fast"].report("only", noon(50))
    assert (tenants["fast"].emit(), tenants["slow"].emit()) == (noon(50), noon(1))
    assert tenants["silent"].emit() is None
    assert tenants.watermarks() == {"slow": noon(1), "fast": noon(50), "silent": None}
    assert tenants["fast"] is tenants["fast"]


def test_tenants_may_have_generators(clock: SetClock) -> None:
    tenants = Tenants(lambda: event_time(seconds(0), clock=clock))
    tenants["one"].observe(noon(5))
    tenants["other"].observe(noon(1))
    assert [tenants[tenant].emit() for tenant in ("one", "other")] == [noon(5), noon(1)]


def test_a_validator_counts_regressions_and_does_not_raise() -> None:
    validator = Validator()
    assert [validator.check(noon(second)) for second in (1, 1, 5, 4, 3, 6)] == [True, True, True, False, False, True]
    assert (validator.watermark, validator.regressions) == (noon(6), 2)
    assert not Validator(noon(10)).check(noon(9))


def test_a_validator_counts_what_cannot_be_compared_instead_of_raising() -> None:
    validator = Validator()
    naive = noon().replace(tzinfo=None)
    assert [validator.check(one) for one in (naive, noon(), naive, noon(1))] == [False, True, False, True]
    assert (validator.watermark, validator.regressions) == (noon(1), 2)


def test_rows_are_judged_by_the_watermark_of_all_inputs(clock: SetClock) -> None:
    tracker = Tracker(["a", "b"], clock=clock)
    tracker.report("a", noon(10))
    tracker.report("b", noon(5))
    assert not tracker.judge(noon(-100)), "nothing is in force yet"
    tracker.emit()
    assert [tracker.judge(one) for one in (noon(4), noon(5), noon(7), None)] == [True, False, False, False]
    metrics = tracker.metrics()
    assert (metrics.rows, metrics.late, metrics.late_ratio, metrics.unplaced) == (5, 1, 0.2, 1)


@pytest.mark.parametrize("option", ["idle_timeout", "max_ahead"])
def test_negative_limits_are_errors(option: str) -> None:
    with pytest.raises(InvalidArgument, match=option):
        Tracker(**{option: seconds(-1)})  # type: ignore[arg-type]
