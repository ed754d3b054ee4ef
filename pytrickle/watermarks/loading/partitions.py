"""A load of a source in partitions: what came of each, and the watermark that the database finds from that."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks.generators.tracker import Tracker
from pytrickle.watermarks.instant import parameter
from pytrickle.watermarks.loading.columns import Column, reader
from pytrickle.watermarks.loading.connections import Session
from pytrickle.watermarks.loading.frames import by_partition
from pytrickle.watermarks.loading.resumed import in_force

Row = TypeVar("Row")
Frame = TypeVar("Frame")

_ADVANCE = (
    "SELECT COALESCE(CAST(pg_catalog.to_json(pgtrickle.advance_partitions(CAST(%s AS pg_catalog.regclass),"
    " CAST(%s AS pg_catalog.jsonb), CAST(%s AS interval), CAST(%s AS pg_catalog.text[]),"
    " CAST(%s AS timestamp with time zone))) AS pg_catalog.text), 'null')"
)


class PartitionedLoading:
    """What the block of a load in partitions works with.

    `tracker` is a copy of the loader's own, which takes it over when the load is committed: say to it that a partition
    is exhausted, by ``tracker.report(name, INFINITY)``.
    """

    def __init__(self, tracker: Tracker, event_time: Column | None, partition: Column) -> None:
        self.tracker = tracker
        self._event_time = event_time
        self._partition = partition
        self._heard: set[str] = set()
        self._before = tracker.marks()

    @property
    def watermark(self) -> datetime | None:
        """Return the watermark in force; within the block that from before the load."""
        return self.tracker.watermark

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows unchanged, each when it is asked for, and show the tracker partition and event time of each."""
        name_of, time_of = reader("partition", self._partition), reader("event_time", self._event_time)
        for row in rows:
            name = named(name_of(row))
            self._heard.add(name)
            self.tracker.observe(name, time_of(row))
            yield row

    def frame(self, frame: Frame) -> Frame:
        """Return a frame of pandas or table of Arrow unchanged, and show the tracker its two columns.

        Raises PackageMissing without NumPy, InvalidArgument if the column of event times has no time zone.
        """
        if not isinstance(self._event_time, str) or not isinstance(self._partition, str):
            hint = "load(…, event_time='placed_at', partition='shard')"
            raise InvalidArgument("event_time and partition do not name columns.", hint)
        for value, times in by_partition(frame, self._event_time, self._partition):
            self.observe_batch(named(value), times)
        return frame

    def observe_batch(self, name: str, event_times: Any) -> None:
        """Show the tracker a column of event times of one partition, as `Generator.observe_batch` takes it."""
        self._heard.add(name)
        self.tracker.observe_batch(name, event_times)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Forget the rows seen in a block that fails; see `Loading.attempt`."""
        before, heard = self.tracker.copy(), set(self._heard)
        try:
            yield
        except BaseException:
            self.tracker.take_over(before)
            self._heard = heard
            raise

    def resume(self, watermark: datetime | None) -> None:
        """Go on from the watermark that the database has, unless the tracker's is further."""
        self.tracker.resume(watermark)

    def advance(self, own: Session, source: str) -> None:
        """Tell the database what was loaded of each partition, and go on from the watermark that it finds."""
        marks = self.tracker.marks()
        heard = self._heard | {name for name, mark in marks.items() if self._before.get(name) != mark}
        said = {name: parameter(marks[name]) if name in marks else None for name in sorted(heard)}
        timeout, clock = self.tracker.idle_timeout, self.tracker.own_clock
        answer = own.value(
            _ADVANCE,
            (
                source,
                json.dumps(said),
                None if timeout is None else f"{timeout.total_seconds():f} seconds",
                list(self.tracker.expected),
                None if clock is None else parameter(clock()),
            ),
        )
        self.tracker.resume(in_force(answer))


def check_tracker(given: Tracker, partition: object) -> None:
    """Raise InvalidArgument for a tracker that the database cannot follow, or without a partition."""
    if partition is None:
        hint = "load(…, partition='shard'): the key of a row, or the column, that says of which partition it is."
        raise InvalidArgument("A tracker needs partition.", hint)
    if given.excludes_outliers:
        hint = "Leave exclude_outliers out, and report to the tracker yourself where you need it."
        raise InvalidArgument("The database leaves no outliers out.", hint)


def named(value: object) -> str:
    """Return the name of the partition that a value stands for; rows without one make up a partition of their own.

    >>> named(7), named("eu/3"), named(None)
    ('7', 'eu/3', '')
    """
    return "" if value is None else str(value)
