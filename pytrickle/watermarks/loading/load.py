"""A load: rows and the watermark they allow, committed together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from typing import Any, TypeVar, overload

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks.generators.generator import Generator, check_generator
from pytrickle.watermarks.generators.tracker import Tracker
from pytrickle.watermarks.instant import parameter
from pytrickle.watermarks.loading.columns import Column, reader
from pytrickle.watermarks.loading.connections import Session, session
from pytrickle.watermarks.loading.frames import times
from pytrickle.watermarks.loading.partitions import PartitionedLoading, check_tracker
from pytrickle.watermarks.loading.resumed import watermark_of

Row = TypeVar("Row")
Frame = TypeVar("Frame")
AnyLoading = TypeVar("AnyLoading", "Loading", PartitionedLoading)

# A loader's session finds names by its own path: so these name what is PostgreSQL's with its schema.
_TRANSACTION = "SELECT CAST(pg_catalog.pg_current_xact_id() AS pg_catalog.text)"
_ADVANCE = (
    "SELECT CAST(pgtrickle.advance_watermark(CAST(%s AS pg_catalog.regclass), CAST(%s AS timestamp with time zone))"
    " AS pg_catalog.text)"
)


class Loading:
    """What the block of a load works with.

    `generator` is a copy of the loader's own, which takes it over when the load is committed: give it marks, or say
    that the source is exhausted.
    """

    def __init__(self, generator: Generator, event_time: Column | None) -> None:
        self.generator = generator
        self._event_time = event_time

    @property
    def watermark(self) -> datetime | None:
        """Return the watermark in force; within the block that from before the load."""
        return self.generator.watermark

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows unchanged, each when it is asked for, and show the generator the event time of each."""
        read = reader("event_time", self._event_time)
        for row in rows:
            self.generator.observe(read(row))
            yield row

    def frame(self, frame: Frame) -> Frame:
        """Return a frame of pandas or table of Arrow unchanged, and show the generator its column of event times.

        Raises PackageMissing without NumPy, InvalidArgument if the column has no time zone.
        """
        if not isinstance(self._event_time, str):
            raise InvalidArgument("event_time does not name a column.", "load(…, event_time='placed_at')")
        self.generator.observe_batch(times(frame, self._event_time))
        return frame

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Forget the rows seen in a block that fails, for use within a savepoint: what is rolled back moves nothing.

        ``with connection.transaction(), loading.attempt():`` for psycopg, ``connection.begin_nested()`` for SQLAlchemy.
        """
        before = self.generator.copy()
        try:
            yield
        except BaseException:
            self.generator.take_over(before)
            raise

    def resume(self, watermark: datetime | None) -> None:
        """Go on from the watermark that the database has, unless the generator's is further."""
        self.generator.resume(watermark)

    def advance(self, own: Session, source: str) -> None:
        """Advance the watermark of the source to what the generator may assert after the block."""
        # What is emitted by a copy is in force nowhere until the commit.
        watermark = self.generator.emit()
        if watermark is not None:
            own.value(_ADVANCE, (source, parameter(watermark)))


@overload
def load(
    connection: Any, source: str, *, generator: Generator, event_time: Column | None = None, partition: None = None
) -> AbstractContextManager[Loading]: ...
@overload
def load(
    connection: Any, source: str, *, generator: Tracker, event_time: Column | None = None, partition: Column
) -> AbstractContextManager[PartitionedLoading]: ...
def load(
    connection: Any,
    source: str,
    *,
    generator: Generator | Tracker,
    event_time: Column | None = None,
    partition: Column | None = None,
) -> AbstractContextManager[Loading] | AbstractContextManager[PartitionedLoading]:
    """Hold one transaction for a block that loads rows into `source`, and advance its watermark before the commit.

    `connection` is one of psycopg 3 or SQLAlchemy without an open transaction. `event_time` says where a row has its
    event time: a key, a position, or a function of the row; for frames the name of a column. The rows are those that
    went through `rows` or `frame`, whatever else the block does: also those that it rolls back to a savepoint, unless
    they went through within `Loading.attempt`.

    The generator has seen the rows and emitted only after the commit; if anything fails, it is as it was before.
    It goes on from the watermark that the database has, if that is further than its own. While nothing may be asserted,
    only the rows are committed. Where another loader advanced the source further meanwhile, the load fails.

    With a `Tracker`, and `partition`, which says where a row has its partition as `event_time` does for its event time,
    the watermark is the least over the partitions that are not idle. How far each is complete is kept in the database,
    for all loaders of the source: so nothing is lost by a restart, and several may load at once. Silence is judged by
    the database's clock, unless the tracker was given one.

    Raises InvalidArgument and whatever the block or the driver raises.
    """
    if isinstance(generator, Tracker):
        check_tracker(generator, partition)
        assert partition is not None
        tracked = PartitionedLoading(generator.copy(), event_time, partition)
        return _transaction(connection, source, tracked, lambda: generator.take_over(tracked.tracker))
    check_generator(generator)
    if partition is not None:
        raise InvalidArgument("Only a Tracker knows of partitions.", "load(…, generator=Tracker(), partition='shard')")
    loading = Loading(generator.copy(), event_time)
    return _transaction(connection, source, loading, lambda: generator.take_over(loading.generator))


@contextmanager
def _transaction(
    connection: Any, source: str, loading: AnyLoading, take_over: Callable[[], None]
) -> Iterator[AnyLoading]:
    own = session(connection)
    if own.is_busy():
        raise InvalidArgument(
            "The connection has an open transaction, whose end a load would not see.",
            "Commit or roll it back before the load, or use another connection.",
        )
    committed = False
    with own.begin():
        transaction = own.value(_TRANSACTION, ())
        # With AUTOCOMMIT each statement has one of its own.
        _check_transaction(own, transaction)
        loading.resume(watermark_of(own, source))
        yield loading
        _check_transaction(own, transaction)
        loading.advance(own, source)
        committed = True
    # psycopg.Rollback leaves a block of psycopg's without an error.
    if committed:
        take_over()


def _check_transaction(own: Session, transaction: str) -> None:
    if own.value(_TRANSACTION, ()) != transaction:
        raise InvalidArgument(
            "The rows would not be loaded in one transaction.",
            "Do without the isolation level AUTOCOMMIT, and without commits and rollbacks in the block.",
        )
