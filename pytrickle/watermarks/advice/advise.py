"""Which delay to choose: what each would cost in lateness, and in completeness."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from math import sqrt

from pytrickle.errors import InvalidArgument, TooFewObservations
from pytrickle.readable import counted
from pytrickle.watermarks.advice.distribution import Bar, Distribution

PERCENTILES = (50, 75, 90, 95, 99, 99.5, 99.9)
# Below this, the greatest of them all is exceeded by one in eight of what comes, for all one knows.
LEAST = 20
# The quantile of the normal distribution for 95 % on one side.
_SURE = 1.6449
_CHOICES = (("conservative", 99.9), ("balanced", 99), ("aggressive", 95))


class Subject(StrEnum):
    """What was measured, and so what the recommended durations are for."""

    LATENESS = "lateness"
    """How long after their event time rows arrive: for the lateness of a generator."""
    WAIT = "wait"
    """How long after an event time a source is declared complete through it: for how long to wait for a source."""
    TOLERANCE = "tolerance"
    """How far the watermarks of a group are apart: for the tolerance of the group."""


@dataclass(frozen=True, slots=True)
class Loss:
    """What delays cost: L(d) = alpha · (1 - completeness(d)) + beta · d, with d in seconds."""

    alpha: float
    beta: float

    def __post_init__(self) -> None:
        if self.alpha < 0 or self.beta < 0:
            raise InvalidArgument("The weights of a loss must not be negative.", "Give zero or more.")

    def of(self, late_share: float, delay: timedelta) -> float:
        """Return what a delay costs that leaves a share of the rows late."""
        return self.alpha * late_share + self.beta * delay.total_seconds()


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A delay, the share that is expected to exceed it, and what it costs, None where no loss was given.

    `late_at_most` is what that share does not exceed with 95 % confidence, if what comes is like what was measured.
    """

    name: str
    delay: timedelta
    late_share: float
    loss: float | None
    late_at_most: float


@dataclass(frozen=True, slots=True)
class Advice:
    """What was measured of something, and the delays to choose from; `cheapest` is the one of the least loss, if given.

    `percentiles` are pairs (percent, duration). `observations` is how many measurements they rest on.
    """

    name: str
    subject: Subject
    observations: int
    percentiles: tuple[tuple[float, timedelta], ...]
    recommendations: tuple[Recommendation, ...]
    cheapest: Recommendation | None
    bars: tuple[Bar, ...]


def upper_bound(share: float, observations: int) -> float:
    """Return what a share does not exceed with 95 % confidence, by Wilson's score interval (one-sided).

    >>> round(upper_bound(0.0, 20), 3), round(upper_bound(0.0, 1000), 4)
    (0.119, 0.0027)
    """
    spread = _SURE**2 / observations
    middle = share + spread / 2
    return min(
        1.0, (middle + _SURE * sqrt(share * (1 - share) / observations + spread / (4 * observations))) / (1 + spread)
    )


def check_sample(advice: Advice) -> Advice:
    """Return the advice, or raise TooFewObservations where it would rest on too few measurements to be any."""
    if advice.observations < LEAST:
        raise TooFewObservations(
            f"{advice.name} has {counted(advice.observations, 'measurement')}, and fewer than {LEAST} say nothing."
        )
    return advice


def advise(name: str, subject: Subject, found: Distribution, loss: Loss | None = None) -> Advice:
    """Return the delays to choose from: p99.9 conservative, p99 balanced, p95 aggressive; never less than zero."""
    return Advice(
        name,
        subject,
        found.observations,
        tuple((percent, found.percentile(percent)) for percent in PERCENTILES),
        tuple(_recommend(choice, found.percentile(percent), found, loss) for choice, percent in _CHOICES),
        _cheapest(found, loss) if loss else None,
        found.bars(),
    )


def _recommend(name: str, delay: timedelta, found: Distribution, loss: Loss | None) -> Recommendation:
    delay = max(delay, timedelta(0))
    late_share = found.share_above(delay)
    at_most = upper_bound(late_share, found.observations)
    return Recommendation(name, delay, late_share, loss.of(late_share, delay) if loss else None, at_most)


def _cheapest(found: Distribution, loss: Loss) -> Recommendation:
    """Return the delay of the least loss, the shorter of two: between two observed ones only the latency grows."""
    delays = sorted({timedelta(0), *(timedelta(microseconds=one) for one in found.lengths if one > 0)})
    best = min(delays, key=lambda delay: loss.of(found.share_above(delay), delay))
    return _recommend("cheapest", best, found, loss)
