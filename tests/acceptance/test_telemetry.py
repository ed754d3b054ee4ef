"""What a collector of OpenTelemetry receives: spans of ticks, refreshes and phases, and the metrics of a scrape."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from pytrickle.cli.metrics import Catalog, seen_by
from pytrickle.cli.observer import Wanted, observed
from pytrickle.cli.service import Service
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.receivers import Receiver, receiving


def spans(receiver: Receiver) -> list[Span]:
    requests = (ExportTraceServiceRequest.FromString(body) for body in receiver.at("/v1/traces"))
    return [span for one in requests for r in one.resource_spans for s in r.scope_spans for span in s.spans]


def metrics(receiver: Receiver) -> dict[str, Metric]:
    requests = (ExportMetricsServiceRequest.FromString(body) for body in receiver.at("/v1/metrics"))
    found = (metric for one in requests for r in one.resource_metrics for s in r.scope_metrics for metric in s.metrics)
    return {metric.name: metric for metric in found}


def attributes(span: Span) -> dict[str, object]:
    return {pair.key: value(pair.value) for pair in span.attributes}


def stem(name: str) -> str:
    return name.removesuffix("_seconds").removesuffix("_bytes").replace("_", ".", 1)


def value(told: AnyValue) -> object:
    kind = told.WhichOneof("value")
    return [value(one) for one in told.array_value.values] if kind == "array_value" else getattr(told, kind or "")


def test_a_collector_gets_spans_and_metrics_without_sql_or_values(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("CREATE TABLE orders (id int, note text)")
    db.execute("CREATE TABLE lines (id int, note text)")
    with receiving() as receiver, local_client(db.dsn) as (client, _):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        client.create_stream_table("counts", "SELECT count(*) FROM orders WHERE note <> 'classified'")
        client.create_stream_table("numbers", "SELECT id, note::int AS n FROM lines")
        client.tick()
        db.execute("INSERT INTO orders VALUES (1, 'a')")
        db.execute("INSERT INTO lines VALUES (1, 'classified')")
        with observed(client, Service(None), Wanted(otel=True)) as observer:
            observer.lead(True)
            results = {result.stream_table: result for result in client.tick(observer.result)}
            scraped = [metric.name for metric in Catalog(lambda: seen_by(client)).collect() if metric.samples]
        client.tick()
    assert "classified" in (results["public.numbers"].error or "")
    assert not any(b"classified" in body or b"SELECT" in body for _, body in receiver.bodies)

    found = {span.name: span for span in spans(receiver)}
    tick, counts, numbers = found["tick"], found["refresh public.counts"], found["refresh public.numbers"]
    assert sum(span.name == "tick" for span in spans(receiver)) == 1, "ticks beside the block make none"
    assert counts.parent_span_id == numbers.parent_span_id == tick.span_id, "also those that lanes of their own refresh"
    phases = {span.name for span in spans(receiver) if span.parent_span_id == counts.span_id}
    assert {"count changes", "plan"} < phases and any("write" in name for name in phases)
    told = attributes(counts)
    assert told["db.system.name"] == "postgresql" and told["db.operation.name"] == "refresh"
    assert told["db.collection.name"] == "public.counts" and told["pytrickle.action"] == ["DIFFERENTIAL"]
    assert told["server.port"] and told["db.namespace"] and counts.kind == Span.SPAN_KIND_CLIENT
    assert (told["pytrickle.rows_inserted"], told["pytrickle.rows_deleted"]) == (1, 1)
    assert numbers.status.code == Status.STATUS_CODE_ERROR and not numbers.status.message and not numbers.events
    assert attributes(numbers)["error.type"] == attributes(numbers)["db.response.status_code"] == "22P02"

    assert_measures(metrics(receiver), scraped)


def assert_measures(measured: dict[str, Any], scraped: list[str]) -> None:
    took = measured["pytrickle.refresh_duration"]
    assert took.unit == "s" and [point.count for point in took.histogram.data_points] == [1]
    assert measured["pytrickle.refresh_failures"].sum.data_points[0].as_int == 1
    assert measured["pytrickle.leader"].gauge.data_points[0].as_int == 1
    stale = measured["pytrickle.stream_table_staleness"]
    assert stale.unit == "s" and {attribute.key for p in stale.gauge.data_points for attribute in p.attributes} == {
        "stream_table"
    }
    assert {stem(name) for name in scraped} <= measured.keys(), "each metric of a scrape, but for its unit"
