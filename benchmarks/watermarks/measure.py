"""Feeds the same rows to every generator, in every form, and times it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.clock import Timing, stopwatch
from pytrickle import watermarks
from pytrickle.watermarks import Generator

ARRIVAL = datetime(2026, 3, 2, 12, tzinfo=UTC)
GENERATORS: dict[str, Callable[[], Generator]] = {
    "`event_time`": watermarks.event_time,
    "`heartbeat`": watermarks.heartbeat,
    "`bounded_file`": watermarks.bounded_file,
    "`quantile`": watermarks.quantile,
    "`adaptive`": watermarks.adaptive,
    "`punctuated`, `cdc`": watermarks.punctuated,
    "`processing_time`": watermarks.processing_time,
}
SIZES = (100, 1_000, 10_000, 100_000)
EMIT_EVERY = 100_000
SINGLE_SHARE = 10


@dataclass(frozen=True, slots=True)
class Form:
    """A way to hand rows over: a name, what prepares them outside of the time measured, and what is measured."""

    name: str
    rows: int
    prepare: Callable[[Any], Any]
    take: Callable[[Generator, Any], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """The seconds that one generator needed for so many rows in one form."""

    generator: str
    form: Form
    timing: Timing

    @property
    def rate(self) -> float:
        """Return rows per second, by the median."""
        return self.form.rows / self.timing.median


def forms(rows: int) -> tuple[Form, ...]:
    """Return the forms that are measured: single rows, of which fewer do, and columns of several sizes and kinds."""
    return (
        Form("single rows", rows // SINGLE_SHARE, _moments, _one_by_one),
        *(Form(f"NumPy, {size:,}", rows, _split(size), _columns) for size in SIZES),
        Form(f"NumPy in ns, {EMIT_EVERY:,}", rows, _nanoseconds, _columns),
        Form(f"Arrow, {EMIT_EVERY:,}", rows, _arrow, _columns),
    )


def event_times(rows: int) -> Any:
    """Return event times of the hour before the arrival, ever later but for a skew that is seconds, seldom minutes."""
    values = np.random.default_rng(7)
    progress = np.linspace(-3_600, 0, rows) - values.lognormal(0, 1.4, rows)
    return np.datetime64(ARRIVAL.replace(tzinfo=None), "us") + (progress * 1e6).astype("timedelta64[us]")


def measure(name: str, form: Form, column: Any, repetitions: int) -> Measured:
    """Time one generator in one form, after one repetition that warmed up; each begins with a new generator."""
    prepared = form.prepare(column)
    seconds = [stopwatch(form.take, GENERATORS[name](), prepared) for _ in range(repetitions + 1)]
    return Measured(name, form, Timing(tuple(seconds[1:])))


def emission(name: str, column: Any, repetitions: int) -> Timing:
    """Time one emission by a generator that has seen all rows."""
    generator = GENERATORS[name]()
    generator.observe_batch(column, ARRIVAL)
    return Timing(tuple(stopwatch(generator.emit, ARRIVAL) for _ in range(repetitions + 1))[1:])


def _one_by_one(generator: Generator, rows: list[datetime]) -> None:
    observe = generator.observe
    for number, row in enumerate(rows):
        observe(row, ARRIVAL)
        if number % EMIT_EVERY == 0:
            generator.emit(ARRIVAL)


def _columns(generator: Generator, columns: list[Any]) -> None:
    emit_every = max(1, EMIT_EVERY // len(columns[0]))
    for number, column in enumerate(columns):
        generator.observe_batch(column, ARRIVAL)
        if number % emit_every == 0:
            generator.emit(ARRIVAL)


def _moments(column: Any) -> list[datetime]:
    return [moment.replace(tzinfo=UTC) for moment in column[: len(column) // SINGLE_SHARE].tolist()]


def _split(size: int) -> Callable[[Any], list[Any]]:
    return lambda column: [column[start : start + size] for start in range(0, len(column), size)]


def _nanoseconds(column: Any) -> list[Any]:
    return _split(EMIT_EVERY)(column.astype("datetime64[ns]"))


def _arrow(column: Any) -> list[Any]:
    return [pa.array(part).cast(pa.timestamp("us", tz="UTC")) for part in _split(EMIT_EVERY)(column)]
