"""What Prometheus reads: the state of stream tables, groups and sources, and the refreshes of this process."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pytrickle.catalog.late_reports import WatermarkMetrics
from pytrickle.catalog.reports import BufferRow, Status
from pytrickle.catalog.table_state import state_of
from pytrickle.errors import PytrickleError

if TYPE_CHECKING:
    from pytrickle.client.reports import Reports
    from pytrickle.refresh.values import RefreshResult

STATES = ("ok", "initializing", "gated", "waiting", "paused", "frozen", "error", "broken")
# From a refresh of few changes to a first load.
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
UP = "1 while the catalog can be read."
Value = float | timedelta | datetime | bool | None


@dataclass(frozen=True, slots=True)
class Seen:
    """What is read of the catalog for one scrape."""

    state: Status
    sources: Sequence[WatermarkMetrics]
    buffers: Sequence[BufferRow] = ()


def seen_by(reports: Reports) -> Seen:
    """Read all that is told of the catalog."""
    return Seen(reports.status(), reports.watermark_metrics(), reports.change_buffers())


class Catalog(Collector):
    """The state of the catalog, read anew at each scrape; of a database that does not answer, only that."""

    def __init__(self, read: Callable[[], Seen]) -> None:
        self._read = read

    @staticmethod
    def described() -> tuple[Metric, ...]:
        """Return the metrics that there are, by name and description, without values."""
        nothing = Seen(Status((), (), (), datetime.now(UTC)), ())
        return tuple(Catalog(lambda: nothing).collect())

    def collect(self) -> Iterable[Metric]:
        """Return what the catalog says now."""
        try:
            seen = self._read()
        except PytrickleError:
            yield _gauge("up", UP, (), [((), False)])
            return
        yield _gauge("up", UP, (), [((), True)])
        yield from _stream_tables(seen.state)
        yield from _groups(seen.state)
        yield from _sources(seen)
        yield from _buffers(seen.buffers)


class Refreshes:
    """What this process did, counted as it happens."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._took = Histogram(
            "pytrickle_refresh_duration_seconds",
            "How long refreshes took, from their snapshot to their commit.",
            ("stream_table", "action", "engine"),
            buckets=SECONDS,
            registry=registry,
        )
        rows = "Rows that refreshes wrote into stream tables or deleted from them."
        self._rows = Counter("pytrickle_refresh_rows", rows, ("stream_table", "change"), registry=registry)
        failures = "Refreshes that failed."
        self._failures = Counter("pytrickle_refresh_failures", failures, ("stream_table",), registry=registry)
        leader = "1 while this process refreshes, 0 while it stands by."
        self.leader = Gauge("pytrickle_leader", leader, registry=registry)

    def count(self, result: RefreshResult) -> None:
        """Count what came of a stream table."""
        if result.action == "FAILED":
            self._failures.labels(result.stream_table).inc()
        elif result.action not in ("NO_DATA", "SKIP"):
            seconds = result.duration.total_seconds()
            self._took.labels(result.stream_table, result.action, result.engine or "none").observe(seconds)
            self._rows.labels(result.stream_table, "inserted").inc(result.rows_inserted)
            self._rows.labels(result.stream_table, "deleted").inc(result.rows_deleted)


def _stream_tables(state: Status) -> Iterator[Metric]:
    rows = state.stream_tables
    broken = {problem.stream_table for problem in state.problems if problem.lasting}
    tables = [((row.stream_table,), row) for row in rows]
    yield from _freshness(state)
    yield _gauge(
        "stream_table_effective_watermark_timestamp_seconds",
        "Through which event time a stream table is complete.",
        ("stream_table",),
        ((name, row.effective_watermark) for name, row in tables),
    )
    yield _gauge(
        "stream_table_last_refresh_timestamp_seconds",
        "When a stream table was last refreshed.",
        ("stream_table",),
        ((name, row.last_refresh_at) for name, row in tables),
    )
    yield _gauge(
        "stream_table_consecutive_failures",
        "How often the refresh of a stream table failed since it last succeeded.",
        ("stream_table",),
        ((name, row.consecutive_failures) for name, row in tables),
    )
    named = {row.stream_table: "broken" if row.stream_table in broken else state_of(row) for row in rows}
    yield _gauge(
        "stream_table_state",
        "1 for the state in which a stream table is, 0 for the others.",
        ("stream_table", "state"),
        (((name, state), state == found) for name, found in named.items() for state in STATES),
    )


def _freshness(state: Status) -> Iterator[Metric]:
    filled = [row for row in state.freshness if row.status != "unfilled"]
    yield _gauge(
        "stream_table_staleness_seconds",
        "For how long a stream table lacks a change of its sources; 0 while it shows all; absent before a first load.",
        ("stream_table",),
        (((row.stream_table,), row.lag) for row in filled),
    )
    yield _gauge(
        "stream_table_lag_seconds",
        "What a stream table's staleness is made of; all causes together are the staleness.",
        ("stream_table", "cause"),
        (((row.stream_table, cause), spent) for row in filled for cause, spent in row.parts.items()),
    )
    yield _gauge(
        "stream_table_lag_culprit_info",
        "What most of a stream table's staleness is made of, and who is to blame; absent while it shows all.",
        ("stream_table", "cause", "culprit"),
        (((row.stream_table, row.cause, row.culprit), True) for row in filled if row.cause and row.culprit),
    )
    # "quantile" is the name of a label of summaries, which count all that there ever was.
    places = (("50", "p50"), ("95", "p95"), ("99", "p99"))
    yield _gauge(
        "stream_table_commit_to_visible_seconds",
        "How soon the oldest change was visible, at most, in so many per cent of the last 100 refreshes.",
        ("stream_table", "percentile"),
        (((row.stream_table, share), getattr(row, name)) for row in filled for share, name in places),
    )


def _groups(state: Status) -> Iterator[Metric]:
    groups = [((row.group_name,), row) for row in state.groups]
    yield _gauge(
        "watermark_group_lag_seconds",
        "How far the watermarks of a group are apart.",
        ("group",),
        ((name, row.lag) for name, row in groups),
    )
    yield _gauge(
        "watermark_group_aligned",
        "1 while the watermarks of a group agree within its tolerance.",
        ("group",),
        ((name, row.aligned) for name, row in groups),
    )
    gated = ("source",), (((row.source,), True) for row in state.gates)
    yield _gauge("source_gated", "1 while a source is gated; absent otherwise.", *gated)
    named = (((alert.kind, alert.subject, alert.group_name or ""), True) for alert in state.alerts)
    yield _gauge("alert_open", "1 for an open incident; absent otherwise.", ("kind", "subject", "group"), named)
    opened = [alert.kind for alert in state.alerts]
    kinds = (((kind,), opened.count(kind)) for kind in sorted(set(opened)))
    yield _gauge("alerts_open", "Open incidents of a kind; absent without one.", ("kind",), kinds)


def _sources(seen: Seen) -> Iterator[Metric]:
    sources = [((row.source,), row) for row in seen.sources]
    yield _gauge(
        "source_watermark_timestamp_seconds",
        "Through which event time a source is complete.",
        ("source",),
        ((name, row.watermark) for name, row in sources),
    )
    yield _gauge(
        "source_watermark_lag_seconds",
        "How far the watermark of a source is behind the clock.",
        ("source",),
        ((name, row.lag) for name, row in sources),
    )
    yield _gauge(
        "source_seconds_since_advance",
        "How long ago the watermark of a source last advanced.",
        ("source",),
        ((name, row.since_advance) for name, row in sources),
    )
    yield _gauge(
        "source_late_rows_waiting",
        "Late rows that were kept out of a source and wait in the ledger.",
        ("source",),
        ((name, row.late_waiting) for name, row in sources),
    )


def _buffers(rows: Sequence[BufferRow]) -> Iterator[Metric]:
    buffers = [((row.source_table,), row) for row in rows]
    yield _gauge(
        "change_buffer_bytes",
        "The size of the change buffer of a source.",
        ("source",),
        ((name, row.buffer_bytes) for name, row in buffers),
    )
    yield _gauge(
        "change_buffer_rows",
        "About how many changes of a source wait until all that reads it shows them.",
        ("source",),
        ((name, row.pending_rows) for name, row in buffers),
    )


def _gauge(
    name: str, text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], Value]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"pytrickle_{name}", text, labels=labels)
    for named, value in values:
        if (number := _number(value)) is not None:
            family.add_metric(named, number)
    return family


def _number(value: Value) -> float | None:
    match value:
        case None:
            return None
        case timedelta():
            return value.total_seconds()
        case datetime():
            return _epoch(value)
        case _:
            return float(value)


def _epoch(moment: datetime) -> float:
    """Return the seconds since 1970; an exhausted source is complete through all time."""
    match moment.replace(tzinfo=None):
        case datetime.max:
            return float("inf")
        case datetime.min:
            return float("-inf")
        case _:
            return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
