"""What is told in local time, also while clocks change, is the same as what is told in UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytrickle import watermarks
from pytrickle.catalog.reports import HistoryEntry
from pytrickle.errors import InvalidArgument, PytrickleError
from pytrickle.watermarks import (
    INFINITY,
    Emission,
    IntervalJoin,
    Loading,
    PartitionedLoading,
    SkewAnalyzer,
    Tenants,
    Tracker,
    Validator,
    adaptive,
    advancement_rate,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    parameter,
    processing_time,
    punctuated,
    quantile,
    spreads,
    waits,
)
from tests.repeats import in_parts
from tests.unit.moments import SetClock

MINUTES = [timedelta(minutes=count) for count in (0, 1, 5, 20, 45)]
GENERATORS = {
    make.__name__: make
    for make in (adaptive, bounded_file, cdc, event_time, heartbeat, processing_time, punctuated, quantile)
}
WITHOUT_MOMENTS = {
    *("Advice", "Bar", "Distribution", "Loss", "Recommendation", "Subject", "advise", "describe", "draw_chart"),
    *("INFINITY", "InputState", "InputStatus", "Metrics", "TrackerStatus", "emission_interval"),
}
Say = Callable[[datetime], datetime]


class Wrapped(tzinfo):
    """A zone that is no ZoneInfo, as other packages have their own."""

    def __init__(self, name: str) -> None:
        self._zone = ZoneInfo(name)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=self._zone).utcoffset()

    def dst(self, moment: datetime | None) -> timedelta | None:
        return None if moment is None else moment.replace(tzinfo=self._zone).dst()

    def tzname(self, moment: datetime | None) -> str | None:
        return None if moment is None else moment.replace(tzinfo=self._zone).tzname()


# Where the clock on the wall stands when it is put forward, and when it is put back.
CHANGES: list[tuple[tzinfo, datetime]] = [
    (ZoneInfo("Europe/Berlin"), datetime(2026, 3, 29, 2)),
    (ZoneInfo("Europe/Berlin"), datetime(2026, 10, 25, 2)),
    (ZoneInfo("America/New_York"), datetime(2026, 3, 8, 2)),
    (ZoneInfo("America/New_York"), datetime(2026, 11, 1, 1)),
    (ZoneInfo("Australia/Lord_Howe"), datetime(2026, 10, 4, 2)),
    (ZoneInfo("Australia/Lord_Howe"), datetime(2026, 4, 5, 1, 30)),
    (ZoneInfo("Asia/Tehran"), datetime(2022, 3, 22)),
    (ZoneInfo("Asia/Tehran"), datetime(2022, 9, 21, 23)),
    (Wrapped("Europe/Berlin"), datetime(2026, 3, 29, 2)),
    (Wrapped("Europe/Berlin"), datetime(2026, 10, 25, 2)),
    (timezone(timedelta(hours=5, minutes=30)), datetime(2026, 3, 29, 2)),
    (timezone(-timedelta(hours=3)), datetime(2026, 10, 25, 2)),
]


@st.composite
def stories(draw: st.DrawFn) -> list[datetime]:
    """Moments around one change, as the clock on the wall shows them: some there are twice, some not at all."""
    zone, change = draw(st.sampled_from(CHANGES))
    around = st.integers(-150, 150).map(lambda minutes: change + timedelta(minutes=minutes))
    faces = draw(st.lists(st.tuples(around, st.sampled_from((0, 1))), min_size=3, max_size=12))
    return [face.replace(tzinfo=zone, fold=fold) for face, fold in faces]


def berlin(*faces: tuple[int, int, int, int, int]) -> list[datetime]:
    zone = ZoneInfo("Europe/Berlin")
    return [
        datetime(2026, month, day, hour, minute, fold=fold, tzinfo=zone) for month, day, hour, minute, fold in faces
    ]


SPRING = berlin((3, 29, 1, 59, 0), (3, 29, 3, 0, 0), (3, 29, 3, 1, 0))
AUTUMN = berlin((10, 25, 2, 30, 0), (10, 25, 2, 10, 1), (10, 25, 2, 30, 1))


def of_generators(moments: list[datetime], say: Say) -> Iterator[Any]:
    for name, make in GENERATORS.items():
        clock = SetClock(say(moments[0]))
        terms = {} if make is processing_time else {"idle_timeout": MINUTES[3]}
        generator = make(max_ahead=MINUTES[4], clock=clock, **terms)
        for moment, other in zip(moments, reversed(moments), strict=True):
            clock.now = say(moment)
            yield name, generator.observe(say(other)), generator.observe(say(moment), say(other))
            if name in ("cdc", "heartbeat", "punctuated"):
                generator.mark(say(other), say(moment))
                generator.mark(say(other))
            yield generator.candidate(say(moment)), generator.candidate(), generator.is_idle(say(other))
            yield generator.emit(say(moment)), generator.metrics(say(other)), generator.metrics()
            generator.resume(say(other))
            yield generator.watermark, generator.is_idle()
        yield make(start=say(moments[-1]), clock=clock).metrics(say(moments[0]))


def of_columns(moments: list[datetime], say: Say) -> Iterator[Any]:
    np = pytest.importorskip("numpy")
    faces = [moment.astimezone(UTC).replace(tzinfo=None) for moment in moments]
    column = np.array(faces, "datetime64[us]")
    generator, skews = event_time(clock=SetClock(say(moments[0]))), SkewAnalyzer(clock=SetClock(say(moments[0])))
    for moment in moments:
        skews.record_batch(column, say(moment))
        skews.record_batch(column)
        yield generator.observe_batch(column, say(moment)).tolist(), generator.emit(say(moment)), skews.distribution()


def of_trackers(moments: list[datetime], say: Say) -> Iterator[Any]:
    clock = SetClock(say(moments[0]))
    marks, terms = {"a": say(moments[-1])}, {"idle_timeout": MINUTES[3], "max_ahead": MINUTES[4]}
    for tracker in (
        Tracker("abc", clock=clock, **terms),
        Tracker("abcdef", exclude_outliers=True, marks=marks, start=say(moments[1]), clock=clock, **terms),
    ):
        for number, (moment, other) in enumerate(zip(moments, reversed(moments), strict=True)):
            clock.now = say(moment)
            yield tracker.report("abc"[number % 3], say(other), say(moment)), tracker.report("b", say(other))
            yield tracker.candidate(say(moment)), tracker.candidate(), tracker.status(say(other)), tracker.status()
            yield tracker.emit(say(moment)), tracker.judge(say(other)), tracker.metrics(say(other)), tracker.metrics()
            tracker.release("c")
            tracker.assign("c", say(other))
            yield tracker.marks(), tracker.watermark
        yield tracker.report("a", INFINITY), tracker.emit(), tracker.marks()
        clock.now = say(moments[0])


def of_others(moments: list[datetime], say: Say) -> Iterator[Any]:
    validator, skews = Validator(say(moments[0])), SkewAnalyzer(clock=SetClock(say(moments[0])))
    pairs = [(say(one), say(other)) for one, other in pairwise(moments)]
    yield advancement_rate(pairs, say(moments[-1]))
    for span in MINUTES[1:]:
        emission, join = Emission(span, clock=SetClock(say(moments[0]))), IntervalJoin(span)
        yield [(emission.due(1, say(moment)), emission.due(9)) for moment in moments]
        yield [(join.keeps(one, other), join.keeps(other, one), join.watermark(one, other)) for one, other in pairs]
    for moment, other in zip(moments, reversed(moments), strict=True):
        yield validator.check(say(moment)), validator.watermark, validator.regressions, parameter(say(moment))
        skews.record(say(moment), say(other))
        skews.record(say(moment))
        yield skews.distribution()
    tenants = Tenants(lambda: event_time(clock=SetClock(say(moments[0]))))
    loading = Loading(tenants["a"], lambda row: row)
    yield len(list(loading.rows(map(say, moments)))), tenants["a"].emit(say(moments[-1])), tenants.watermarks()
    partitions = PartitionedLoading(Tracker(clock=SetClock(say(moments[0]))), lambda row: row, lambda row: "a")
    yield len(list(partitions.rows(map(say, moments)))), partitions.tracker.marks()


def of_histories(moments: list[datetime], say: Say) -> Iterator[Any]:
    pairs = zip(moments, reversed(moments), strict=True)
    entries = [HistoryEntry(say(mark), say(at), "loader", None, None) for mark, at in pairs]
    for measure, given_to_it in ((waits, ("a", entries)), (spreads, ("ab", {"a": entries[::2], "b": entries[1::2]}))):
        try:
            yield measure(*given_to_it)
        except PytrickleError as error:
            yield str(error)


PARTS = (of_generators, of_columns, of_trackers, of_others, of_histories)


@in_parts(3)
@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=20)
@example(story=SPRING)
@example(story=SPRING[::-1])
@example(story=AUTUMN)
@example(story=AUTUMN[::-1])
@given(story=stories())
def test_local_moments_give_the_same_answers_as_the_same_instants_in_utc(
    nth: int, part: Any, story: list[datetime]
) -> None:
    local = [repr(answer) for answer in part(story, lambda moment: moment)]
    assert local == [repr(answer) for answer in part(story, lambda moment: moment.astimezone(UTC))]


def test_every_public_name_is_held_to_it() -> None:
    names = {name for part in PARTS for name in part.__code__.co_names} | set(GENERATORS)
    assert set(watermarks.__all__) - WITHOUT_MOMENTS - {"Generator", "load"} <= names


def test_an_input_that_was_heard_of_a_minute_ago_is_not_idle_when_clocks_are_put_forward() -> None:
    one, _, later = SPRING
    tracker = Tracker("ab", idle_timeout=timedelta(minutes=5), clock=SetClock(one))
    tracker.report("a", one, one)
    tracker.report("b", one - timedelta(minutes=30), one)
    tracker.report("a", later, later)
    assert tracker.emit(later) == one.astimezone(UTC) - timedelta(minutes=30)


def test_ten_past_two_after_the_clock_was_put_back_is_no_regression() -> None:
    validator = Validator()
    assert [validator.check(moment) for moment in AUTUMN] == [True, True, True]


class Nowhere(tzinfo):
    """A zone that does not say how far it is from UTC."""

    def utcoffset(self, moment: datetime | None) -> None:
        return None


@pytest.mark.parametrize(
    "wrong",
    [
        datetime(2026, 3, 2),
        datetime(2026, 3, 2, tzinfo=Nowhere()),
        datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))),
        datetime.min.replace(tzinfo=timezone(timedelta(hours=1))),
    ],
    ids=["naive", "a zone without offsets", "after the last year", "before the first year"],
)
def test_what_is_no_moment_in_utc_is_refused_and_changes_nothing(wrong: datetime) -> None:
    clock = SetClock()
    generator, tracker = heartbeat(clock=clock), Tracker("a", clock=clock)
    before = (generator.metrics(), tracker.status())
    for refused in (
        lambda: generator.emit(wrong),
        lambda: generator.resume(wrong),
        lambda: tracker.report("a", None, wrong),
        lambda: tracker.emit(wrong),
        lambda: tracker.assign("b", wrong),
        lambda: Tracker("a", marks={"a": wrong}),
        lambda: event_time(start=wrong),
        lambda: IntervalJoin(MINUTES[1]).watermark(wrong, wrong),
        lambda: parameter(wrong),
    ):
        with pytest.raises(InvalidArgument):
            refused()
    assert Validator().check(wrong) is False
    assert (generator.metrics(), tracker.status()) == before
