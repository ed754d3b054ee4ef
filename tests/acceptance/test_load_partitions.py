"""load with a tracker: the watermark is the least over the partitions that are not idle, whoever loads and restarts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import pandas as pd
import psycopg
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks import INFINITY, Generator, Tracker, event_time, load, processing_time
from tests.conftest import Database
from tests.unit.moments import SetClock, noon, seconds

LATENESS = seconds(5)
TIMEOUT = seconds(60)
Rows = Iterable[tuple[str | None, datetime | None]]
# Eight rows of a partition that is ten minutes behind the other, in the order in which both are loaded.
FAST = [noon(minute * 60) for minute in range(10, 18)]
SLOW = [noon(minute * 60) for minute in range(8)]


@pytest.fixture
def events(db: Database) -> Database:
    db.execute("CREATE TABLE events (shard text, at timestamptz)")
    return db


def tracker(at: datetime | None = None, *expected: str, **options: Any) -> Tracker:
    """Return what a loader begins with after a restart: it knows nothing, and its clock stands at a moment."""
    clock = {} if at is None else {"clock": SetClock(at)}
    return Tracker(
        expected, watermark_lateness=LATENESS, **{"idle_timeout": TIMEOUT, "max_ahead": None, **clock, **options}
    )


def bring(db: Database | psycopg.Connection[Any], by: Tracker | Generator, rows: Rows) -> datetime | None:
    """Load rows as one transaction and return the watermark in force after it."""
    connection = db.connect() if isinstance(db, Database) else db
    columns: dict[str, Any] = {"partition": 0} if isinstance(by, Tracker) else {}
    with load(connection, "events", generator=by, event_time=1, **columns) as loading:
        connection.cursor().executemany("INSERT INTO events VALUES (%s, %s)", list(loading.rows(rows)))
    if connection is not db:
        connection.close()
    return by.watermark


def watermark(db: Database) -> Any:
    return db.value("SELECT max(watermark) FROM pgtrickle.watermarks()")


def states(db: Database) -> dict[str, str]:
    return dict(db.execute("SELECT partition_name, state FROM pgtrickle.partitions('events')"))


@pytest.mark.parametrize(("by", "late"), [("the newest row", 7), ("partitions", 0)])
def test_no_row_of_a_slow_partition_is_late_beside_a_fast_one(events: Database, by: str, late: int) -> None:
    events.execute("SELECT pgtrickle.set_event_time('events', 'at')")
    for fast, slow in zip(FAST, SLOW, strict=True):
        # Each load is one of a new process.
        loader = tracker() if by == "partitions" else event_time(LATENESS, max_ahead=None)
        bring(events, loader, [("fast", fast), ("slow", slow)])
    assert events.value("SELECT count(*) FROM pgtrickle.late_rows('events', max_rows => 100)") == late
    assert watermark(events) == (SLOW if by == "partitions" else FAST)[-1] - LATENESS


class Model:
    """The rule in plain words, over all that was ever committed."""

    def __init__(self) -> None:
        self.watermark: datetime | None = None
        self.marks: dict[str, datetime | None] = {}
        self.silent: dict[str, datetime] = {}

    def active(self, at: datetime) -> list[str]:
        return [n for n, mark in self.marks.items() if mark != INFINITY and at - self.silent[n] <= TIMEOUT]

    def load(self, at: datetime, heard: dict[str, datetime | None], expected: Iterable[str]) -> None:
        if not self.active(at):
            self.silent = dict.fromkeys(self.marks, at)
        for name, mark in heard.items():
            known = self.marks.get(name)
            self.marks[name] = max(known, mark) if known and mark else known or mark
            self.silent[name] = at
        for name in expected:
            self.marks.setdefault(name, None)
            self.silent.setdefault(name, at)
        marks = [self.marks[name] for name in self.active(at)]
        known_marks = [mark for mark in marks if mark is not None]
        if marks and len(known_marks) == len(marks):
            self.watermark = max(filter(None, [self.watermark, min(known_marks)]))
        elif self.marks and all(mark == INFINITY for mark in self.marks.values()):
            self.watermark = INFINITY


heard = st.dictionaries(st.sampled_from("abc"), st.none() | st.integers(-300, 300), max_size=3)
loads = st.tuples(
    st.sampled_from([1, 20, 40, 61, 500]), heard, st.sampled_from(["commit", "commit", "commit", "rollback"]),
    st.sampled_from(["", "", "d"]), st.sampled_from(["", "", "", "", "a", "abc"]),
)  # fmt: skip


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=st.lists(loads, max_size=9))
def test_whatever_is_loaded_the_watermark_is_the_least_of_those_that_are_not_idle(
    events: Database, script: list[tuple[int, dict[str, int | None], str, str, str]]
) -> None:
    events.execute("SELECT pgtrickle.reset_watermark('events')")
    connection, model, clock = events.connect(), Model(), 0
    for gap, offsets, end, expected, exhausted in script:
        clock += gap
        before, at = model.watermark, noon(clock)
        rows = {name: None if offset is None else noon(offset) for name, offset in offsets.items()}
        loader = tracker(at, *expected)
        with load(connection, "events", generator=loader, event_time=1, partition=0) as loading:
            list(loading.rows(rows.items()))
            for name in exhausted:
                loading.tracker.assign(name)
                loading.tracker.report(name, INFINITY)
            if end == "rollback":
                raise psycopg.Rollback
        if end == "commit":
            marks = {name: row and row - LATENESS for name, row in rows.items()} | dict.fromkeys(exhausted, INFINITY)
            model.load(at, marks, expected)
            assert loader.watermark == model.watermark
        assert before is None or (model.watermark is not None and before <= model.watermark)
        known = events.execute("SELECT partition_name, watermark FROM pgtrickle.pgt_source_partitions")
        assert dict(known) == model.marks
        found = events.execute("SELECT watermark FROM pgtrickle.watermarks()")
        assert found == ([(model.watermark,)] if model.watermark else [])
    connection.close()


def test_two_loaders_at_once_wait_for_each_other_and_neither_claims_for_the_other(events: Database) -> None:
    bring(events, tracker(), [("a", noon()), ("b", noon())])
    one, other = events.connect(), events.connect()
    with load(one, "events", generator=tracker(), event_time=1, partition=0) as ahead:
        list(ahead.rows([("a", noon(100))]))
        with load(other, "events", generator=tracker(), event_time=1, partition=0) as behind:
            list(behind.rows([("b", noon(50))]))
            heard = "SELECT pgtrickle.advance_partitions('events', %s::jsonb)"
            other.execute(heard, ('{"b": "2026-03-02T12:00:45Z"}',))
            one.execute("SET lock_timeout = '20ms'")
            with pytest.raises(psycopg.errors.LockNotAvailable), one.transaction():
                one.execute(heard, ('{"a": "2026-03-02T12:01:35Z"}',))
            assert watermark(events) == noon(-5)
        assert watermark(events) == noon(-5), "b is at 45, and a still at -5"
    assert watermark(events) == noon(45), "the second saw what the first had committed"


def test_what_is_rolled_back_moves_no_partition(events: Database) -> None:
    loader, connection = tracker(noon()), events.connect()
    bring(connection, loader, [("a", noon()), ("b", noon(10))])
    kept = events.execute("SELECT * FROM pgtrickle.partitions('events')")
    with (
        pytest.raises(ZeroDivisionError),
        load(connection, "events", generator=loader, event_time=1, partition=0) as loading,
    ):
        list(loading.rows([("a", noon(90)), ("c", noon(90))]))
        raise ZeroDivisionError
    assert events.execute("SELECT * FROM pgtrickle.partitions('events')") == kept
    with load(connection, "events", generator=loader, event_time=1, partition=0) as loading:
        with pytest.raises(ZeroDivisionError), connection.transaction(), loading.attempt():
            list(loading.rows([("a", noon(90)), ("c", noon(-90))]))
            raise ZeroDivisionError
        list(loading.rows([("a", noon(7))]))
    assert (watermark(events), loader.watermark, set(loader.marks())) == (noon(2), noon(2), {"a", "b"})


def test_a_partition_that_vanishes_comes_back_or_begins_in_the_past_pulls_nothing_back(events: Database) -> None:
    bring(events, tracker(noon()), [("a", noon(100)), ("b", noon(50))])
    bring(events, tracker(noon(50)), [("a", noon(150))])
    assert watermark(events) == noon(45), "b is waited for"
    bring(events, tracker(noon(61)), [("a", noon(200))])
    assert watermark(events) == noon(195), "b is idle"
    bring(events, tracker(noon(62)), [("b", noon(60)), ("new", noon(-500)), ("a", noon(300))])
    assert watermark(events) == noon(195), "and never pulled back, while both are behind"
    bring(events, tracker(noon(63)), [("b", noon(400)), ("new", noon(350))])
    assert watermark(events) == noon(295), "a is the least again"
    events.execute("SELECT pgtrickle.forget_partition('events', 'a')")
    bring(events, tracker(noon(64)), [])
    assert watermark(events) == noon(345)


def test_after_a_pause_of_all_loaders_no_partition_is_idle_at_once(events: Database) -> None:
    bring(events, tracker(noon()), [("a", noon(100)), ("b", noon(50))])
    bring(events, tracker(noon(5_000)), [("a", noon(5_000))])
    assert watermark(events) == noon(45), "b has the whole timeout anew"
    for later in (5_040, 5_080):
        bring(events, tracker(noon(later)), [("a", noon(later))])
    assert watermark(events) == noon(5_075)


def test_frames_and_the_servers_clock(events: Database) -> None:
    loader, connection = tracker(), events.connect()
    frame = pd.DataFrame({"shard": ["a", "a", "b", None], "at": [noon(5), noon(9), noon(7), noon(8)]})
    table = pa.table({"shard": [7, None], "at": pa.array([noon(9), None], pa.timestamp("us", "UTC"))})
    with load(connection, "events", generator=loader, event_time="at", partition="shard") as loading:
        assert loading.frame(frame) is frame
        assert loading.frame(table) is table
    assert set(states(events)) == {"", "7", "a", "b"}
    assert loader.watermark == noon(2)
    silent = "SELECT max(now() - silent_since) < interval '1 minute' FROM pgtrickle.partitions()"
    assert events.value(silent) is True


def test_a_load_goes_on_from_the_watermark_that_the_database_has(events: Database) -> None:
    bring(events, event_time(LATENESS), [("", noon(100))])
    behind = event_time(LATENESS)
    assert bring(events, behind, [("", noon(50))]) == noon(95) == watermark(events)
    loader = tracker()
    assert bring(events, loader, [("a", noon(60))]) == noon(95)
    assert loader.judge(noon(94))
    events.execute("SELECT pgtrickle.advance_watermark('events', 'infinity')")
    for new in (event_time(LATENESS), tracker()):
        assert bring(events, new, [("a", noon(200))]) == INFINITY


def test_what_a_load_in_partitions_cannot_do_is_refused_before_anything_is_done(events: Database) -> None:
    connection, column = events.connect(), {"event_time": "at", "partition": "shard"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"generator": tracker()}, "needs partition"),
        ({"generator": tracker(exclude_outliers=True), "partition": 0}, "leaves no outliers out"),
        ({"generator": processing_time(), "partition": 0}, "Only a Tracker knows of partitions"),
    ]
    for given_options, message in cases:
        with pytest.raises(InvalidArgument, match=message) as refused:
            load(connection, "events", **given_options)
        assert refused.value.hint
    for options in (column | {"partition": 0}, column | {"event_time": 0}):
        with (
            pytest.raises(InvalidArgument, match="do not name columns"),
            load(connection, "events", generator=tracker(), **options) as loading,
        ):
            loading.frame(pa.table({"shard": [1]}))
    assert events.execute("SELECT * FROM pgtrickle.partitions()") == []


def test_partitions_as_json_are_what_a_load_says(events: Database) -> None:
    said = json.dumps({"0": "2026-03-02T12:00:00Z", "1": None})
    call = "SELECT pgtrickle.advance_partitions('events', %s::jsonb, at => %s)"
    assert events.value(call, said, noon()) is None
    assert bring(events, tracker(noon(61)), [("0", noon(30))]) is None, "1 has nothing to say, and the timeout anew"
    assert bring(events, tracker(noon(100)), [("0", noon(30))]) is None
    assert bring(events, tracker(noon(122)), [("0", noon(40))]) == noon(35)
