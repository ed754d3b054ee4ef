"""The bounds of changes: the versions between them and no others, whichever way they are given; else an error."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from pytrickle.database import connect
from pytrickle.errors import InvalidArgument, NotFresh, NotRetained, PytrickleError
from pytrickle.streaming.source.changes import change_batches
from pytrickle.streaming.source.columns import relation
from pytrickle.streaming.source.data_source import PytrickleReads
from pytrickle.streaming.source.options import Options
from pytrickle.streaming.source.versions import between
from tests.conftest import Database

FIRST, LAST = 10, 14
TIMES = {hour: f"2026-03-02T{hour}:00Z" for hour in range(FIRST, LAST + 1)}


@pytest.fixture
def versions(db: Database) -> dict[int, int]:
    """A table that got a row before each full hour, and its version there; those of another table lie in between."""
    db.execute("CREATE TABLE t (hour int PRIMARY KEY)")
    db.execute("CREATE TABLE u (hour int PRIMARY KEY)")
    db.execute("SELECT pgtrickle.create_feed('t', 't'), pgtrickle.create_feed('u', 'u')")
    for hour, time in TIMES.items():
        db.execute("INSERT INTO t VALUES (%s)", hour)
        for name in ("t", "u"):
            db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", name, time)
    numbers = [version for (version,) in db.execute("SELECT version FROM pgtrickle.versions('t')")]
    return dict(zip(TIMES, numbers, strict=True))


def options(db: Database, **given: object) -> dict[str, str]:
    return {
        "dsn": db.dsn,
        "table": "t",
        "readChangeFeed": "true",
        **{name: str(value) for name, value in given.items()},
    }


def hours(db: Database, **given: object) -> list[int]:
    """Return the hours of the rows that are among the changes."""
    with connect(db.dsn) as connection:
        found = relation(connection, "t")
        wanted = between(connection, found, Options.of(options(db, **given)))
        return [hour for batch in change_batches(connection, found, wanted, found.columns)
                for hour in batch.column("hour").to_pylist()]  # fmt: skip


def bound(side: str, versions: dict[int, int], hour: int, form: str, inclusive: bool) -> dict[str, object]:
    """Give an hour as a number, as a watermark, or as a moment after it by which nothing else is complete."""
    given = {
        "version": {f"{side}Version": versions[hour]},
        "time": {f"{side}Timestamp": TIMES[hour]},
        "later": {f"{side}Timestamp": TIMES[hour].replace(":00Z", ":30Z")},
    }[form]
    return {**given, f"{side}BoundInclusive": str(inclusive).lower()}


def test_the_changes_between_two_bounds_are_those_of_the_versions_between_them(
    db: Database, versions: dict[int, int]
) -> None:
    """Each side at a version, at a watermark or between two, with its own changes or without."""
    sides = [(form, inclusive) for form in ("version", "time", "later") for inclusive in (True, False)]
    for start, end in ((12, 12), (11, 13), (12, 13)):
        for (since, with_first), (until, with_last) in product(sides, sides):
            given = bound("starting", versions, start, since, with_first) | bound(
                "ending", versions, end, until, with_last
            )
            begins = start if with_first and since != "later" else start + 1
            ends = end if with_last or until == "later" else end - 1
            if (start, since, until) == (end, "later", "time"):
                with pytest.raises(InvalidArgument, match="end before they begin"):
                    hours(db, **given)
                continue
            assert hours(db, **given) == list(range(begins, ends + 1)), given


def test_bounds_that_cannot_be_are_refused_and_are_no_empty_answer(db: Database, versions: dict[int, int]) -> None:
    newest = versions[LAST]
    beyond = newest + 1
    attempts: tuple[tuple[dict[str, Any], type[PytrickleError], str], ...] = (
        ({"startingVersion": newest, "endingVersion": versions[FIRST]}, InvalidArgument, "end before"),
        ({"startingTimestamp": TIMES[13], "endingTimestamp": TIMES[11]}, InvalidArgument, "end before"),
        ({"startingTimestamp": TIMES[13], "endingVersion": versions[11]}, InvalidArgument, "end before"),
        ({"startingVersion": beyond}, NotRetained, "has no version"),
        ({"startingVersion": beyond, "startingBoundInclusive": "false"}, NotRetained, "has no version"),
        ({"startingVersion": newest, "endingVersion": beyond}, NotRetained, "has no version"),
        ({"startingVersion": newest, "endingVersion": beyond, "endingBoundInclusive": "false"}, NotRetained, "has no"),
        ({"startingTimestamp": "2026-03-03T00:00Z"}, NotFresh, "not complete"),
        ({"startingVersion": versions[11], "endingTimestamp": "2026-03-03T00:00Z"}, NotFresh, "not complete"),
        ({"startingVersion": versions[FIRST]}, NotRetained, "before"),
        ({}, InvalidArgument, "no beginning"),
    )
    for given, error, match in attempts:
        with pytest.raises(error, match=match):
            hours(db, **given)
    assert hours(db, startingVersion=newest, startingBoundInclusive="false") == []
    assert hours(db, startingVersion=newest) == [LAST]


def test_a_stream_names_a_feed_of_its_own_table_and_has_no_end(db: Database, versions: dict[int, int]) -> None:
    """The reader of another feed would never learn what it missed."""
    start = {"startingVersion": versions[FIRST], "startingBoundInclusive": "false"}
    columns = PytrickleReads(options(db)).schema()

    def stream(**given: object) -> None:
        PytrickleReads(options(db, **start, **given)).streamReader(columns)

    stream(feed="t", maxVersionsPerTrigger=1)
    with pytest.raises(InvalidArgument, match=r"follows public\.u, not t"):
        stream(feed="u")
    with pytest.raises(NotRetained, match="no feed 'shiping'"):
        stream(feed="shiping")
    with pytest.raises(InvalidArgument, match="endingVersion is not for streams"):
        stream(endingVersion=versions[LAST])
    with pytest.raises(InvalidArgument, match="feed is for streams"):
        PytrickleReads(options(db, **start, feed="t")).reader(columns)
