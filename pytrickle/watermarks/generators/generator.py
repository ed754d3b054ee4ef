"""A watermark generator: from what a source delivers to the watermark that may be asserted for it."""

from __future__ import annotations

from copy import deepcopy
from datetime import datetime, timedelta
from enum import Flag, auto
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from pytrickle.errors import InvalidArgument
from pytrickle.watermarks.arrays import column
from pytrickle.watermarks.generators.asserted import Asserted
from pytrickle.watermarks.generators.metrics import Metrics
from pytrickle.watermarks.generators.validator import Validator
from pytrickle.watermarks.instant import FOREVER, INFINITY, Clock, length, microseconds, placed, utc, utc_now

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Counts, Mask

IDLE_TIMEOUT = timedelta(minutes=1)
MAX_AHEAD = timedelta(days=1)


class Strategy(Protocol):
    """How the next watermark is found; all times are in microseconds. Candidates may fall, watermarks do not."""

    def include(self, event_time: int, arrived_at: int) -> None:
        """Take one event time into account."""

    def include_batch(self, event_times: Counts, arrived_at: Counts | int) -> None:
        """Take a column of event times, of one row at least, into account."""

    def candidate(self, at: int) -> int | None:
        """Return what could be asserted at a moment, None for nothing yet."""


class Heeds(Flag):
    """What moves a watermark: the rows, or marks by which the source itself says how far it has come."""

    NOTHING = 0
    ROWS = auto()
    MARKS = auto()


class Terms(TypedDict, total=False):
    """What every generator may be told.

    `idle_timeout`: after so long without rows and marks it is idle (default one minute, None for never).
    `start`: the watermark already in force, such as the one the database has.
    `max_ahead`: rows and marks further ahead of the clock than this are not believed (default one day, None for all).
    `clock`: what time it is, where a call does not say.
    """

    idle_timeout: timedelta | None
    start: datetime | None
    max_ahead: timedelta | None
    clock: Clock


def check_generator(given: object) -> None:
    """Raise InvalidArgument for what is no generator, as a tracker is none."""
    if not isinstance(given, Generator):
        name = given.__name__ if isinstance(given, type | FunctionType) else type(given).__name__
        raise InvalidArgument(
            f"A load takes one generator, and {name} is none.",
            "Give what event_time() or another of them returns, or a Tracker together with partition.",
        )


class Generator:
    """Finds the watermark of one source, and judges its rows against the one in force.

    The watermark in force changes only by `emit`, never moves back, and is what `observe` compares rows with: a row is
    late if its event time lies before it. Not safe for use by several threads.
    """

    def __init__(self, strategy: Strategy, heeds: Heeds, **terms: Unpack[Terms]) -> None:
        self._strategy = strategy
        self._heeds = heeds
        self._clock = terms.get("clock", utc_now)
        idle_timeout, max_ahead = terms.get("idle_timeout", IDLE_TIMEOUT), terms.get("max_ahead", MAX_AHEAD)
        self._idle_timeout = None if idle_timeout is None else length("idle_timeout", idle_timeout)
        self._max_ahead = None if max_ahead is None else length("max_ahead", max_ahead)
        self._asserted = Asserted(terms.get("start"))
        self._marks = Validator()
        self._ahead = 0
        self._exhausted = self._asserted.watermark == INFINITY
        self._heard_at = microseconds(self._clock())

    @property
    def watermark(self) -> datetime | None:
        """Return the watermark in force, None while nothing may be asserted."""
        return self._asserted.watermark

    @property
    def ahead(self) -> int:
        """Return how many rows and marks were too far in the future to be believed."""
        return self._ahead

    @property
    def needs_rows(self) -> bool:
        """Return whether nothing but rows moves the watermark, so that it never advances without seeing them."""
        return self._heeds == Heeds.ROWS

    def observe(self, event_time: datetime | None, arrived_at: datetime | None = None) -> bool:
        """Take a row into account that arrived at a moment, else now; return whether it is late.

        A row without a usable event time, NULL or infinite, is counted and moves nothing.
        """
        at = microseconds(arrived_at or self._clock())
        count = placed(event_time)
        late = self._asserted.judge(count)
        self._heard_at = max(self._heard_at, at)
        if count is not None and self._believes(count, at) and Heeds.ROWS in self._heeds:
            self._strategy.include(count, at)
        return late

    def observe_batch(self, event_times: Any, arrived_at: Any = None) -> Mask:
        """Take a column of rows into account; return which of them are late, a column of bool.

        The same as `observe` for one row after the other. `event_times` are NumPy's datetime64, in UTC, or timestamps
        of Arrow or pandas with a zone; `arrived_at` is one moment for all, else now, or a column of the same length.
        Raises PackageMissing without NumPy, InvalidArgument for other columns.
        """
        counts, usable = column(event_times)
        at = self._arrivals(arrived_at, len(counts))
        late = self._asserted.judge_batch(counts, usable)
        if len(counts):
            self._heard_at = max(self._heard_at, at if isinstance(at, int) else int(at.max()))
            self._include(counts, usable, at)
        return late

    def mark(self, event_time: datetime, at: datetime | None = None) -> None:
        """Take the source's own word, at a moment, else now: it is complete through an event time, or has committed it.

        INFINITY means that it is exhausted. A mark behind an earlier one is counted as a regression. Raises
        InvalidArgument where the generator goes by rows or the clock alone.
        """
        if Heeds.MARKS not in self._heeds:
            raise InvalidArgument("This generator takes no marks.", "Use punctuated, cdc or heartbeat.")
        if event_time == INFINITY:
            self.exhaust()
            return
        arrived_at = microseconds(at or self._clock())
        count = placed(event_time)
        self._heard_at = max(self._heard_at, arrived_at)
        if count is not None and self._believes(count, arrived_at) and self._marks.check(event_time):
            self._strategy.include(count, arrived_at)

    def exhaust(self) -> None:
        """Say that no more data will come: from now on INFINITY is what may be asserted. There is no way back."""
        self._exhausted = True

    def candidate(self, at: datetime | None = None) -> datetime | None:
        """Return what `emit` would put in force at a moment, else now; for a transaction that may still fail."""
        return self._asserted.outcome(self._found(self._moment(at)))

    def emit(self, at: datetime | None = None) -> datetime | None:
        """Put the watermark in force that may be asserted at a moment, else now; return it, None for nothing yet."""
        moment = self._moment(at)
        return self._asserted.put(self._found(moment), moment)

    def resume(self, watermark: datetime | None) -> None:
        """Go on from the watermark that the database has, unless the one in force is further; None has no effect."""
        known = None if watermark is None else utc(watermark)
        if known is not None and (self.watermark is None or known > self.watermark):
            self._asserted.put(microseconds(known), self._moment(None))
            self._exhausted = self._exhausted or known == INFINITY

    def copy(self) -> Generator:
        """Return a generator in the same state, on the same clock, that goes its own way from here."""
        return deepcopy(self, {id(self._clock): self._clock})

    def take_over(self, other: Generator) -> None:
        """Put the generator into the state of a copy of it, which must not be used any more."""
        self.__dict__.update(other.__dict__)

    def is_idle(self, at: datetime | None = None) -> bool:
        """Return whether neither rows nor marks came for longer than the idle timeout."""
        if self._idle_timeout is None or self._exhausted:
            return False
        return microseconds(at or self._clock()) - self._heard_at > self._idle_timeout

    def metrics(self, at: datetime | None = None) -> Metrics:
        """Return what is known about the watermark at a moment, else now."""
        moment = self._moment(at)
        idle = float(self.is_idle(moment))
        return self._asserted.metrics(moment, idle_share=idle, regressions=self._marks.regressions, ahead=self._ahead)

    def _moment(self, at: datetime | None) -> datetime:
        return utc(at or self._clock())

    def _found(self, at: datetime) -> int | None:
        return FOREVER if self._exhausted else self._strategy.candidate(microseconds(at))

    def _believes(self, event_time: int, at: int) -> bool:
        if self._max_ahead is None or event_time <= at + self._max_ahead:
            return True
        self._ahead += 1
        return False

    def _arrivals(self, arrived_at: Any, rows: int) -> Counts | int:
        if arrived_at is None or isinstance(arrived_at, datetime):
            return microseconds(arrived_at or self._clock())
        counts, usable = column(arrived_at)
        if usable is not None or len(counts) != rows:
            raise InvalidArgument("Not every row has an arrival.", "Give one moment, or as many arrivals as rows.")
        return counts

    def _include(self, counts: Counts, usable: Mask | None, at: Counts | int) -> None:
        """Let the strategy see those rows of a column that have a credible event time."""
        credible = usable
        if self._max_ahead is not None:
            ahead = counts > at + self._max_ahead
            ahead = ahead if usable is None else ahead & usable
            if ahead.any():
                self._ahead += int(ahead.sum())
                credible = ~ahead if usable is None else usable & ~ahead
        if credible is not None:
            counts = counts[credible]
            at = at if isinstance(at, int) else at[credible]
        if len(counts) and Heeds.ROWS in self._heeds:
            self._strategy.include_batch(counts, at)
