"""Every watermark generator, for the tests of what they do."""

from __future__ import annotations

from collections.abc import Callable

from pytrickle.watermarks import (
    Generator,
    adaptive,
    bounded_file,
    cdc,
    event_time,
    heartbeat,
    processing_time,
    punctuated,
    quantile,
)
from tests.unit.moments import NOON, noon

EVERY: list[Callable[..., Generator]] = [
    *(adaptive, bounded_file, cdc, event_time, heartbeat, processing_time, punctuated, quantile),
]
TAKING_MARKS = [cdc, heartbeat, punctuated]


def observe(generator: Generator, *after_noon: float) -> list[bool]:
    return [generator.observe(noon(one), NOON) for one in after_noon]
