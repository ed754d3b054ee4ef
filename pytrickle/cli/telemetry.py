"""What `run --otel` sends by OpenTelemetry's protocol: spans, and the metrics that Prometheus reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from prometheus_client.core import Metric

from pytrickle.cli.metrics import SECONDS, Catalog, Seen
from pytrickle.integrations.opentelemetry import NAME, tracing

if TYPE_CHECKING:
    from pytrickle.refresh.values import RefreshResult

UNITS = {"_seconds": "s", "_bytes": "By"}
# One read of the catalog serves all instruments of one collection.
FRESH = 1.0


@dataclass(frozen=True, slots=True)
class Measures:
    """What is to be told of results, and of who leads."""

    count: Callable[[RefreshResult], None]
    lead: Callable[[bool], None]


@contextmanager
def exporting(read: Callable[[], Seen]) -> Iterator[Measures]:
    """Send spans and metrics for the length of the block, to where the variables OTEL_EXPORTER_OTLP_* say."""
    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": NAME})
    spans = TracerProvider(resource=resource)
    spans.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        with measuring(read, resource) as measures, tracing(spans):
            yield measures
    finally:
        spans.shutdown()


@contextmanager
def measuring(read: Callable[[], Seen], resource: Resource) -> Iterator[Measures]:
    """Send the state of the catalog and what the refresher does now and then, and at the end of the block."""
    provider = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource)
    meter = provider.get_meter(NAME)
    leader = meter.create_gauge("pytrickle.leader", "", "1 while this process refreshes, 0 while it stands by.")
    _observe_catalog(meter, _Recent(Catalog(read)))
    try:
        yield Measures(_counting(meter), lambda leads: leader.set(int(leads)))
    finally:
        provider.shutdown()


@dataclass(slots=True)
class _Recent:
    """What the catalog said at most a moment ago, by the name of the metric."""

    catalog: Catalog
    read_at: float = float("-inf")
    found: dict[str, Metric] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def observe(self, name: str) -> Iterable[Observation]:
        """Return the values of one metric, with their labels."""
        with self.lock:
            if monotonic() - self.read_at > FRESH:
                self.found = {metric.name: metric for metric in self.catalog.collect()}
                self.read_at = monotonic()
            metric = self.found.get(name)
        return [Observation(sample.value, sample.labels) for sample in metric.samples] if metric else []


def _observe_catalog(meter: Meter, recent: _Recent) -> None:
    for metric in Catalog.described():
        suffix = next((ending for ending in UNITS if metric.name.endswith(ending)), "")

        def observe(_: CallbackOptions, name: str = metric.name) -> Iterable[Observation]:
            return recent.observe(name)

        name = metric.name.removesuffix(suffix).replace("_", ".", 1)
        meter.create_observable_gauge(name, [observe], UNITS.get(suffix, ""), metric.documentation)


def _counting(meter: Meter) -> Callable[[RefreshResult], None]:
    took = meter.create_histogram(
        "pytrickle.refresh_duration", "s", "How long refreshes took.", explicit_bucket_boundaries_advisory=SECONDS
    )
    rows = meter.create_counter("pytrickle.refresh_rows", "{row}", "Rows written into stream tables, or deleted.")
    failures = meter.create_counter("pytrickle.refresh_failures", "{refresh}", "Refreshes that failed.")

    def count(result: RefreshResult) -> None:
        of = {"stream_table": result.stream_table}
        if result.action == "FAILED":
            failures.add(1, of)
        elif result.action not in ("NO_DATA", "SKIP"):
            labels = {**of, "action": result.action, "engine": result.engine or "none"}
            took.record(result.duration.total_seconds(), labels)
            rows.add(result.rows_inserted, {**of, "change": "inserted"})
            rows.add(result.rows_deleted, {**of, "change": "deleted"})

    return count
