"""The inputs of a tracker: what each reported, and how it counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from pytrickle.watermarks.generators.outliers import outliers
from pytrickle.watermarks.generators.validator import Validator
from pytrickle.watermarks.instant import FOREVER, INFINITY, microseconds


class InputState(StrEnum):
    """How an input counts: only those that are active take part in the least."""

    ACTIVE = "active"
    IDLE = "idle"
    OUTLIER = "outlier"
    EXHAUSTED = "exhausted"


@dataclass(frozen=True, slots=True)
class InputStatus:
    """One input at one moment.

    `regressions` counts reports behind an earlier one, `ahead` reports too far in the future to be believed, `excluded`
    emissions that left it out as an outlier.
    """

    name: str
    state: InputState
    watermark: datetime | None
    heard_at: datetime
    regressions: int
    ahead: int
    excluded: int


class Input:
    """One input: its high-water mark, and when it was last heard of."""

    def __init__(self, mark: datetime | None, heard_at: datetime) -> None:
        self.reports = Validator(mark)
        self.heard_at = heard_at
        self.ahead = 0
        self.excluded = 0

    @property
    def mark(self) -> int | None:
        """Return the high-water mark, None for none."""
        return None if self.reports.watermark is None else microseconds(self.reports.watermark)

    def status(self, name: str, state: InputState) -> InputStatus:
        """Return what there is to tell."""
        reports = self.reports
        return InputStatus(
            name, state, reports.watermark, self.heard_at, reports.regressions, self.ahead, self.excluded
        )


def states(
    inputs: Mapping[str, Input], at: datetime, idle_timeout: timedelta | None, exclude_outliers: bool
) -> dict[str, InputState]:
    """Return how each input counts at a moment."""
    found = {name: _alone(one, at, idle_timeout) for name, one in inputs.items()}
    if exclude_outliers:
        marks = {name: inputs[name].mark for name, state in found.items() if state is InputState.ACTIVE}
        known = {name: mark for name, mark in marks.items() if mark is not None}
        found |= dict.fromkeys(outliers(known), InputState.OUTLIER)
    return found


def least(inputs: Mapping[str, Input], counting: Mapping[str, InputState]) -> int | None:
    """Return the least high-water mark of the active inputs; None if one has none, or none is active.

    Exhausted inputs hold nobody up, and idle ones are not waited for; but only if *all* are exhausted the end is
    reached, since an idle one may wake up.
    """
    if inputs and all(state is InputState.EXHAUSTED for state in counting.values()):
        return FOREVER
    marks = [inputs[name].mark for name, state in counting.items() if state is InputState.ACTIVE]
    known = [mark for mark in marks if mark is not None]
    return min(known) if known and len(known) == len(marks) else None


def _alone(one: Input, at: datetime, idle_timeout: timedelta | None) -> InputState:
    if one.reports.watermark == INFINITY:
        return InputState.EXHAUSTED
    silent = idle_timeout is not None and at - one.heard_at > idle_timeout
    return InputState.IDLE if silent else InputState.ACTIVE
