"""The watermark of a source that is read in parts: the least over its partitions, or over the inputs of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Unpack

from pytrickle.errors import UnknownInput
from pytrickle.watermarks.arrays import column
from pytrickle.watermarks.generators.asserted import Asserted
from pytrickle.watermarks.generators.generator import IDLE_TIMEOUT, MAX_AHEAD, Generator, Terms
from pytrickle.watermarks.generators.inputs import Input, InputState, InputStatus, least, states
from pytrickle.watermarks.generators.metrics import Metrics
from pytrickle.watermarks.generators.ways import LATENESS
from pytrickle.watermarks.generators.ways import event_time as newest
from pytrickle.watermarks.instant import INFINITY, Clock, length, microseconds, placed, utc, utc_now

if TYPE_CHECKING:
    from pytrickle.watermarks.arrays import Mask

_NOTHING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TrackerStatus:
    """A tracker at one moment: the watermark in force, every input, and the active one that all wait for."""

    watermark: datetime | None
    inputs: tuple[InputStatus, ...]
    waiting_for: str | None


class Tracker:
    """Combines the watermarks of several inputs: W = min over those that are active; it never moves back.

    An input's watermark is what was reported of it or, of rows that the tracker sees itself (`observe`), the newest
    event time minus `watermark_lateness`. Given to `load` or a sink it keeps to a table in the database what was loaded
    of each partition, and the database decides by the same rule; see `pgtrickle.advance_partitions`.

    An input that reported nothing for longer than `idle_timeout` is idle and left out. While all are idle the watermark
    stays where it is: silence asserts nothing. An input that wakes up behind the watermark does not pull it back; the
    watermark stands until the least has passed it. Not safe for use by several threads.

    With `exclude_outliers`, active inputs more than two sample standard deviations from the median are left out; that
    takes five inputs at least. It lets the watermark pass a laggard, whose rows are late then, so it is for sources
    whose clocks are wrong. `marks` are high-water marks from before a restart. Of the terms, `max_ahead` is about the
    watermarks that are reported.
    """

    def __init__(
        self,
        inputs: Iterable[str] = (),
        *,
        watermark_lateness: timedelta = LATENESS,
        exclude_outliers: bool = False,
        marks: Mapping[str, datetime] | None = None,
        **terms: Unpack[Terms],
    ) -> None:
        self.own_clock = terms.get("clock")
        self._clock: Clock = self.own_clock or utc_now
        self._idle_timeout = terms.get("idle_timeout", IDLE_TIMEOUT)
        self._max_ahead = terms.get("max_ahead", MAX_AHEAD)
        for name, value in (("idle_timeout", self._idle_timeout), ("max_ahead", self._max_ahead)):
            if value is not None:
                length(name, value)
        length("watermark_lateness", watermark_lateness)
        self._lateness = watermark_lateness
        self.excludes_outliers = exclude_outliers
        self._asserted = Asserted(terms.get("start"))
        began = self._moment(None)
        self._released = {name: Input(mark, began) for name, mark in (marks or {}).items()}
        self._inputs: dict[str, Input] = {}
        self._rows: dict[str, Generator] = {}
        self.expected = tuple(inputs)
        for name in self.expected:
            self.assign(name, began)

    @property
    def watermark(self) -> datetime | None:
        """Return the watermark in force, None while nothing may be asserted."""
        return self._asserted.watermark

    @property
    def idle_timeout(self) -> timedelta | None:
        """Return the silence after which an input is left out, None for never."""
        return self._idle_timeout

    def observe(self, name: str, event_time: datetime | None, arrived_at: datetime | None = None) -> bool:
        """Take a row of an input into account that arrived at a moment, else now; return whether it is late.

        An input that was not assigned is so from its first row on. A row without a usable event time is a sign of life,
        and so is one too far in the future.
        """
        moment, rows = self._moment(arrived_at), self._rows_of(name)
        rows.observe(event_time, moment)
        self._heard(name, rows, moment)
        return self.judge(event_time)

    def observe_batch(self, name: str, event_times: Any, arrived_at: datetime | None = None) -> Mask:
        """Take a column of rows of an input into account, as `Generator.observe_batch` takes it.

        Return which of them are late. Raises PackageMissing without NumPy, InvalidArgument for other columns.
        """
        moment, rows = self._moment(arrived_at), self._rows_of(name)
        rows.observe_batch(event_times, moment)
        self._heard(name, rows, moment)
        return self.judge_batch(event_times)

    def assign(self, name: str, at: datetime | None = None) -> None:
        """Let an input count from now on. One that was there before goes on from its high-water mark."""
        if name not in self._inputs:
            moment = self._moment(at)
            known = self._released.pop(name) if name in self._released else Input(None, moment)
            known.heard_at = moment
            self._inputs[name] = known

    def release(self, name: str) -> None:
        """Let an input count no more, since it is read elsewhere; its high-water mark is kept.

        While rows of it may still go into the same table through somebody else, only a tracker that knows of all parts
        may assert anything. Raises UnknownInput.
        """
        self._released[name] = self._known(name)
        del self._inputs[name]

    def report(self, name: str, watermark: datetime | None, at: datetime | None = None) -> bool:
        """Take an input's watermark at a moment, else now, as a sign of life also if it is the same or None.

        Returns whether it counts: one behind the high-water mark, as when rows are read again, and one too far in the
        future are only counted. Raises UnknownInput for an input that was not assigned.
        """
        one, moment = self._known(name), self._moment(at)
        said = None if watermark is None or placed(watermark) is None else utc(watermark)
        one.heard_at = max(one.heard_at, moment)
        if watermark == INFINITY:
            return one.reports.check(INFINITY)
        if said is None:
            return False
        if self._max_ahead is not None and said - moment > self._max_ahead:
            one.ahead += 1
            return False
        return one.reports.check(said)

    def candidate(self, at: datetime | None = None) -> datetime | None:
        """Return what `emit` would put in force at a moment, else now; for a transaction that may still fail."""
        return self._asserted.outcome(least(self._inputs, self._states(self._moment(at))))

    def emit(self, at: datetime | None = None) -> datetime | None:
        """Put the least watermark of the active inputs in force; return what is in force then, None for nothing yet."""
        moment = self._moment(at)
        counting = self._states(moment)
        for name, state in counting.items():
            self._inputs[name].excluded += state is InputState.OUTLIER
        return self._asserted.put(least(self._inputs, counting), moment)

    def resume(self, watermark: datetime | None) -> None:
        """Go on from the watermark that the database has, unless the one in force is further; None has no effect."""
        known = None if watermark is None else utc(watermark)
        if known is not None and (self.watermark is None or known > self.watermark):
            self._asserted.put(microseconds(known), self._moment(None))

    def copy(self) -> Tracker:
        """Return a tracker in the same state, on the same clock, that goes its own way from here."""
        return deepcopy(self, {id(self._clock): self._clock})

    def take_over(self, other: Tracker) -> None:
        """Put the tracker into the state of a copy of it, which must not be used any more."""
        self.__dict__.update(other.__dict__)

    def judge(self, event_time: datetime | None) -> bool:
        """Count a row of any input and return whether it is late: below the watermark in force."""
        return self._asserted.judge(placed(event_time))

    def judge_batch(self, event_times: Any) -> Mask:
        """Count a column of rows, as `Generator.observe_batch` takes it; return which of them are late."""
        return self._asserted.judge_batch(*column(event_times))

    def marks(self) -> dict[str, datetime]:
        """Return the high-water mark of every input that has one, released ones included; to be kept for a restart."""
        every = {**self._released, **self._inputs}
        return {name: one.reports.watermark for name, one in every.items() if one.reports.watermark is not None}

    def status(self, at: datetime | None = None) -> TrackerStatus:
        """Return every input and how it counts at a moment, else now."""
        counting = self._states(self._moment(at))
        inputs = tuple(self._inputs[name].status(name, state) for name, state in counting.items())
        active = [one for one in inputs if one.state is InputState.ACTIVE]
        last = min(active, key=lambda one: one.watermark or _NOTHING, default=None)
        return TrackerStatus(self.watermark, inputs, last.name if last else None)

    def metrics(self, at: datetime | None = None) -> Metrics:
        """Return what is known about the watermark at a moment, else now; regressions and `ahead` are the inputs'."""
        moment = self._moment(at)
        inputs = self.status(moment).inputs
        idle = sum(one.state is InputState.IDLE for one in inputs)
        return self._asserted.metrics(
            moment,
            idle_share=idle / len(inputs) if inputs else 0.0,
            regressions=sum(one.regressions for one in inputs),
            ahead=sum(one.ahead for one in inputs) + sum(rows.ahead for rows in self._rows.values()),
        )

    def _moment(self, at: datetime | None) -> datetime:
        return utc(at or self._clock())

    def _states(self, at: datetime) -> dict[str, InputState]:
        return states(self._inputs, at, self._idle_timeout, self.excludes_outliers)

    def _rows_of(self, name: str) -> Generator:
        if name not in self._rows:
            self._rows[name] = newest(self._lateness, max_ahead=self._max_ahead, clock=self._clock)
        return self._rows[name]

    def _heard(self, name: str, rows: Generator, at: datetime) -> None:
        self.assign(name, at)
        self.report(name, rows.candidate(at), at)

    def _known(self, name: str) -> Input:
        if name not in self._inputs:
            raise UnknownInput(f"The tracker has no input {name!r}.")
        return self._inputs[name]
