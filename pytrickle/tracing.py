"""Spans around ticks, refreshes and their phases, for whoever traces them; without a tracer there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar

Value = str | int | float | bool | tuple[str, ...]
Attributes = Mapping[str, Value]
Note = Callable[[Attributes], object]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Tracer(Protocol):
    """Makes spans of what it is told: OpenTelemetry, or what a test puts in its place."""

    def span(self, name: str, attributes: Attributes) -> AbstractContextManager[Note]:
        """Hold a span for the length of the block; yield what takes further attributes."""


# It goes with the context, as spans do: who traces one client of a process does not trace another one's thread.
_TRACER: ContextVar[Tracer | None] = ContextVar("pytrickle_tracer", default=None)


@contextmanager
def traced_by(tracer: Tracer) -> Iterator[None]:
    """Trace what this thread does within the block, and the threads that it has refresh for it."""
    token = _TRACER.set(tracer)
    try:
        yield
    finally:
        _TRACER.reset(token)


def span(name: str, attributes: Callable[[], Attributes] = dict) -> AbstractContextManager[Note]:
    """Hold a span for the length of the block; the attributes are asked for only where there is a tracer."""
    tracer = _TRACER.get()
    return tracer.span(name, attributes()) if tracer else nullcontext(_ignore)


def phase(name: str) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Hold a span of that name around each call of a function.

    >>> @phase("plan")
    ... def plan(rows):
    ...     return rows
    >>> plan(3)
    3
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @wraps(function)
        def traced(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            if _TRACER.get() is None:
                return function(*arguments, **named)
            with span(name):
                return function(*arguments, **named)

        return traced

    return decorate


def _ignore(attributes: Attributes) -> None:
    """Take attributes that nobody asked for."""
