"""A load: rows and the watermark they allow, committed together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, TypeVar

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks.generators.generator import Generator, check_generator
from pytrickle.watermarks.instant import parameter
from pytrickle.watermarks.loading.connections import Session, session
from pytrickle.watermarks.loading.frames import times

Row = TypeVar("Row")
Frame = TypeVar("Frame")
EventTime = str | int | Callable[[Any], Any]

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

    def __init__(self, generator: Generator, event_time: EventTime | None) -> None:
        self.generator = generator
        self._event_time = event_time

    @property
    def watermark(self) -> datetime | None:
        """Return the watermark in force; within the block that from before the load."""
        return self.generator.watermark

    def rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield rows unchanged, each when it is asked for, and show the generator the event time of each."""
        read = self._reader()
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

    def _reader(self) -> Callable[[Any], Any]:
        match self._event_time:
            case None:
                raise InvalidArgument("event_time is not given.", "load(…, event_time='placed_at'), or a position.")
            case str() | int() as key:
                return lambda row: row[key]
            case read:
                return read


@contextmanager
def load(
    connection: Any, source: str, *, generator: Generator, event_time: EventTime | None = None
) -> Iterator[Loading]:
    """Hold one transaction for a block that loads rows into `source`, and advance its watermark before the commit.

    `connection` is one of psycopg 3 or SQLAlchemy without an open transaction. `event_time` says where a row has its
    event time: a key, a position, or a function of the row; for frames the name of a column. The rows are those that
    went through `rows` or `frame`, whatever else the block does: also those that it rolls back to a savepoint, unless
    they went through within `Loading.attempt`.

    The generator has seen the rows and emitted only after the commit; if anything fails, it is as it was before.
    While nothing may be asserted, only the rows are committed. The database refuses a watermark behind the one it has,
    which fails the load: begin with `Generator.resume`. Raises InvalidArgument and whatever the block or the driver
    raises.
    """
    check_generator(generator)
    own = session(connection)
    if own.is_busy():
        raise InvalidArgument(
            "The connection has an open transaction, whose end a load would not see.",
            "Commit or roll it back before the load, or use another connection.",
        )
    loading = Loading(generator.copy(), event_time)
    committed = False
    with own.begin():
        transaction = own.value(_TRANSACTION, ())
        # With AUTOCOMMIT each statement has one of its own.
        _check_transaction(own, transaction)
        yield loading
        _check_transaction(own, transaction)
        _advance(own, source, loading.generator)
        committed = True
    # psycopg.Rollback leaves a block of psycopg's without an error.
    if committed:
        generator.take_over(loading.generator)


def _check_transaction(own: Session, transaction: str) -> None:
    if own.value(_TRANSACTION, ()) != transaction:
        raise InvalidArgument(
            "The rows would not be loaded in one transaction.",
            "Do without the isolation level AUTOCOMMIT, and without commits and rollbacks in the block.",
        )


def _advance(own: Session, source: str, generator: Generator) -> None:
    # What is emitted by a copy is in force nowhere until the commit.
    watermark = generator.emit()
    if watermark is not None:
        own.value(_ADVANCE, (source, parameter(watermark)))
