"""A tracker that sees rows itself, and one that goes on where another was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytrickle.watermarks import (
    Tracker,
    event_time,
)
from tests.unit.moments import SetClock, noon, seconds


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


rows = st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.integers(-100, 200)), max_size=30)


@given(script=rows)
def test_rows_of_an_input_are_what_a_generator_of_its_own_would_report(script: list[tuple[str, int | None]]) -> None:
    options = {"watermark_lateness": seconds(5), "max_ahead": seconds(150), "clock": SetClock(), "idle_timeout": None}
    seen, reported, columns = Tracker(**options), Tracker(**options), Tracker(**options)
    own = {name: event_time(seconds(5), max_ahead=seconds(150), clock=SetClock()) for name in "abc"}
    for name, offset in script:
        at = None if offset is None else noon(offset)
        own[name].observe(at)
        reported.assign(name)
        reported.report(name, own[name].candidate())
        assert seen.observe(name, at) == reported.judge(at)
        column = np.array([np.datetime64("NaT") if at is None else at.replace(tzinfo=None)], "datetime64[us]")
        columns.observe_batch(name, column)
    assert seen.marks() == reported.marks() == columns.marks()
    assert seen.emit() == reported.emit() == columns.emit()
    assert seen.metrics() == columns.metrics()
    assert seen.metrics().ahead == sum(generator.ahead for generator in own.values())


def test_a_tracker_goes_on_from_the_database_and_from_a_copy(clock: SetClock) -> None:
    tracker = Tracker(["a"], clock=clock)
    tracker.resume(noon(10))
    tracker.resume(None)
    tracker.resume(noon(5))
    assert (tracker.watermark, tracker.judge(noon(9)), tracker.expected) == (noon(10), True, ("a",))
    other = tracker.copy()
    other.observe("b", noon(30))
    other.report("a", noon(20))
    assert (other.emit(), tracker.watermark, tracker.marks()) == (noon(20), noon(10), {})
    tracker.take_over(other)
    assert (tracker.watermark, tracker.own_clock) == (noon(20), clock)
