"""OpenTelemetry: a span for each tick, refresh and phase of a refresh, by the stable conventions for databases.

No span holds SQL, a message of an error, or a value of a row: of an error it tells the class or SQLSTATE.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, TracerProvider, get_tracer

from pytrickle.errors import PytrickleError
from pytrickle.tracing import Attributes, Note, traced_by

NAME = "pytrickle"


@contextmanager
def tracing(provider: TracerProvider | None = None) -> Iterator[None]:
    """Make spans of the ticks and refreshes within the block, by a provider of your own or the process's."""
    with traced_by(_Spans(get_tracer(NAME, tracer_provider=provider))):
        yield


@dataclass(frozen=True, slots=True)
class _Spans:
    """Spans of OpenTelemetry, each below the one that is open; one that speaks to the database is a client's."""

    tracer: Tracer

    @contextmanager
    def span(self, name: str, attributes: Attributes) -> Iterator[Note]:
        """Hold a span for the length of the block, and mark it where that fails."""
        kind = SpanKind.CLIENT if "db.system.name" in attributes else SpanKind.INTERNAL
        with self.tracer.start_as_current_span(
            name, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield lambda further: span.set_attributes(further)
            except Exception as error:
                _mark(span, error)
                raise


def _mark(span: Span, error: Exception) -> None:
    """Say what kind of error ended the span: its sentence may quote a value of a row."""
    found = error.__cause__ if isinstance(error.__cause__, PytrickleError) else error
    sqlstate = getattr(found, "sqlstate", None)
    span.set_status(StatusCode.ERROR)
    span.set_attribute("error.type", sqlstate or type(found).__name__)
    if sqlstate:
        span.set_attribute("db.response.status_code", sqlstate)
