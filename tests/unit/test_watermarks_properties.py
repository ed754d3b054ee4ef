"""What holds for every generator and tracker under any input."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytrickle.watermarks import (
    INFINITY,
    Generator,
    InputState,
    Tracker,
    adaptive,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    processing_time,
    punctuated,
    quantile,
)
from tests.repeats import in_parts
from tests.unit.moments import NOON, SetClock, noon, seconds

TAKING_MARKS = (cdc, heartbeat, punctuated)
EVERY: list[Callable[..., Generator]] = [
    *(adaptive, bounded_file, event_time, processing_time, quantile, *TAKING_MARKS),
    *(lambda **terms: adaptive(0.9, window=5, **terms), lambda **terms: quantile(0.5, window=4, **terms)),
]

offsets = st.integers(-200_000, 200_000) | st.sampled_from([-(10**9), 10**9])
events = st.none() | st.just(INFINITY) | offsets.map(noon)
steps = st.lists(
    st.tuples(st.sampled_from(["row", "row", "row", "mark", "emit", "exhaust"]), events, offsets.map(noon)), max_size=60
)


def play(generator: Generator, script: list[tuple[str, Any, datetime]], *, marks: bool) -> list[datetime | None]:
    """Do what a script says and return the watermark in force after every step."""
    shown = []
    for action, moment, at in script:
        if action == "row":
            before = generator.watermark
            late = generator.observe(moment, at)
            assert late == (before is not None and moment not in (None, INFINITY) and moment < before)
        elif action == "mark" and marks and moment is not None:
            generator.mark(moment, at)
        elif action == "exhaust" and at > noon(150_000):
            generator.exhaust()
        else:
            expected = generator.candidate(at)
            assert generator.emit(at) == expected
        shown.append(generator.watermark)
    return shown


def rising(shown: list[datetime | None]) -> bool:
    lowest = datetime.min.replace(tzinfo=NOON.tzinfo)
    return all((one or lowest) <= (other or lowest) for one, other in pairwise(shown))


@in_parts(3)
@pytest.mark.parametrize("make", EVERY)
@settings(max_examples=20)
@given(script=steps, ahead=st.none() | st.just(seconds(86_400)))
def test_every_generator_is_monotone_under_any_input(
    nth: int, make: Callable[..., Generator], script: Any, ahead: Any
) -> None:
    assert rising(play(make(max_ahead=ahead, clock=SetClock()), script, marks=make in TAKING_MARKS))


# Windows that rows outgrow, a wait for 100 rows that they reach, and gaps between the calls of `emit`.
LEARNING = [
    lambda **terms: adaptive(0.9, window=150, **terms),
    lambda **terms: quantile(0.9, window=20, **terms),
    *(event_time, bounded_file, heartbeat, punctuated, processing_time),
]


@pytest.mark.parametrize("make", LEARNING)
@settings(max_examples=60)
@given(data=st.data())
def test_a_column_is_the_same_as_its_rows_one_after_the_other_however_it_is_split(
    make: Callable[..., Generator], data: st.DataObject
) -> None:
    count = data.draw(st.integers(0, 220))
    values = data.draw(st.integers(0, 2**32 - 1).map(np.random.default_rng))
    rows = noon_plus(values.integers(-300, 300, count), gaps=values.random(count) < 0.05)
    arrivals = noon_plus(values.integers(0, 300, count))
    cuts = sorted(data.draw(st.lists(st.integers(0, count), max_size=6)))
    per_row = data.draw(st.booleans())
    one, many = (make(max_ahead=seconds(60), clock=SetClock(noon(10))) for _ in range(2))
    shown = []
    for start, end in pairwise([0, *cuts, count]):
        given_arrivals = arrivals[start:end] if per_row else noon(10)
        judged = many.observe_batch(rows[start:end], given_arrivals)
        expected = [
            one.observe(moment(row), moment(arrival) if per_row else noon(10))
            for row, arrival in zip(rows[start:end], arrivals[start:end], strict=True)
        ]
        assert judged.tolist() == expected
        shown.append(many.emit(noon(10)))
        assert shown[-1] == one.emit(noon(10))
        assert many.metrics(noon(10)) == one.metrics(noon(10))
        assert many.is_idle(noon(200)) == one.is_idle(noon(200))
    assert rising(shown)


def noon_plus(offset: Any, gaps: Any = None) -> Any:
    found = np.datetime64("2026-03-02T12:00:00", "us") + offset * np.timedelta64(1, "s")
    return found if gaps is None else np.where(gaps, np.datetime64("NaT", "us"), found)


def moment(value: Any) -> datetime | None:
    return None if np.isnat(value) else value.item().replace(tzinfo=NOON.tzinfo)


names = st.sampled_from("abcde")
reports = st.lists(
    st.tuples(
        st.sampled_from(["report", "report", "report", "emit", "release", "assign"]),
        names,
        st.none() | offsets.map(noon),
        st.integers(0, 90),
    ),
    max_size=60,
)


@given(script=reports, outliers=st.booleans())
def test_a_tracker_never_passes_the_least_of_its_active_inputs(script: Any, outliers: bool) -> None:
    clock = SetClock()
    tracker = Tracker("abcde", exclude_outliers=outliers, max_ahead=None, clock=clock)
    marks: dict[str, datetime] = {}
    shown: list[datetime | None] = [None]
    for action, name, watermark, elapsed in script:
        clock.now += seconds(elapsed)
        assigned = {one.name for one in tracker.status().inputs}
        if action == "report" and name in assigned:
            tracker.report(name, watermark)
        elif action == "release" and name in assigned:
            tracker.release(name)
        elif action == "assign":
            tracker.assign(name)
        active = [one.watermark for one in tracker.status().inputs if one.state is InputState.ACTIVE]
        before, after = tracker.watermark, tracker.emit()
        if after != before:
            assert active and None not in active and after == min(one for one in active if one)
        shown.append(after)
        known = tracker.marks()
        assert all(known[one] >= mark for one, mark in marks.items()), "high-water marks only rise"
        marks = known
    assert rising(shown)


@settings(max_examples=50)
@given(script=reports)
def test_reports_that_are_repeated_leave_a_tracker_as_it_is(script: Any) -> None:
    clock = SetClock()
    tracker = Tracker("abcde", idle_timeout=None, max_ahead=None, clock=clock)
    said = [(name, watermark) for action, name, watermark, _ in script if action == "report"]
    for _ in range(2):
        for name, watermark in said:
            tracker.report(name, watermark)
        tracker.emit()
        again = deepcopy(tracker)
        for name, watermark in said:
            again.report(name, watermark)
        assert (again.emit(), again.marks()) == (tracker.watermark, tracker.marks())
