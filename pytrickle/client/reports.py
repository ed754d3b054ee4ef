"""What can be read of the catalog without a refresher: status, watermarks, histories, the graph."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import psycopg

from pytrickle.catalog import feed_reports, freshness_reports, late_reports, read_reports, reports, trouble_reports
from pytrickle.catalog import install as migrate
from pytrickle.catalog.running_reports import RunningRow
from pytrickle.catalog.withdrawn_watermarks import WithdrawnWatermark
from pytrickle.config import Settings
from pytrickle.database import Single, connection_string, translate_errors
from pytrickle.errors import InvalidArgument

if TYPE_CHECKING:
    from pytrickle.database import Address
    from pytrickle.watermarks.advice.advise import Advice, Loss

Rows = TypeVar("Rows")


class Lender(Protocol):
    """Lends connections that are in no transaction, and rolls back what was begun on them."""

    def borrow(self) -> AbstractContextManager[psycopg.Connection]:
        """Lend a connection for the length of a block."""

    def close(self) -> None:
        """Close all connections."""


def open_reports(dsn: Address | None = None) -> Reports:
    """Open what only reads the catalog, in one thread; raises what `pytrickle.connect` does."""
    reports = Reports(Single(Settings.from_environment(connection_string(dsn)).dsn))
    try:
        with translate_errors(), reports._lender.borrow() as connection:
            migrate.verify(connection)
    except BaseException:
        reports.close()
        raise
    return reports


class Reports:
    """Reads the catalog of one database."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._is_closed = False

    def close(self) -> None:
        """Close the connections; the client is of no use any more."""
        self._is_closed = True
        self._lender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _ensure_open(self) -> None:
        if self._is_closed:
            raise InvalidArgument("This client is closed.", "Open another one with pytrickle.connect().")

    def status(self) -> reports.Status:
        """Return groups, watermarks and stream tables, read in one snapshot."""
        return self._read(read_reports.status)

    def stream_tables(self) -> tuple[reports.StreamTableStatus, ...]:
        """Return the status of every stream table."""
        return self._read(read_reports.stream_tables)

    def watermarks(self) -> tuple[reports.WatermarkRow, ...]:
        """Return the newest watermark of every source."""
        return self._read(read_reports.watermarks)

    def watermark_history(self, source: str) -> tuple[reports.HistoryEntry, ...]:
        """Return every advance of one source, newest first."""
        return self._read(lambda connection: read_reports.watermark_history(connection, source))

    def withdrawn_watermarks(self) -> tuple[WithdrawnWatermark, ...]:
        """Return the watermarks that were taken back, newest first: who had said them, and who took them back."""
        return self._read(read_reports.withdrawn_watermarks)

    def advise(self, name: str, loss: Loss | None = None) -> Advice:
        """Recommend the tolerance of a watermark group, or how long to wait for a source, from their histories.

        Where both have the name the group is meant; a source can be given with its schema. Raises TooFewObservations.
        """
        # Whoever asks for no advice need not wait for what gives it.
        from pytrickle.watermarks.advice.advise import Subject, advise, check_sample
        from pytrickle.watermarks.advice.history import spreads, waits

        history = self._read(lambda connection: read_reports.group_history(connection, name))
        if history is None:
            return check_sample(advise(name, Subject.WAIT, waits(name, self.watermark_history(name)), loss))
        return check_sample(advise(name, Subject.TOLERANCE, spreads(name, history), loss))

    def watermark_groups(self) -> tuple[reports.WatermarkGroupRow, ...]:
        """Return every watermark group."""
        return self._read(read_reports.watermark_groups)

    def watermark_status(self, group: str | None = None) -> tuple[reports.WatermarkStatusRow, ...]:
        """Return where every watermark group stands, or one; raise UnknownWatermarkGroup where that does not exist."""
        return self._read(lambda connection: read_reports.watermark_status(connection, group))

    def feeds(self) -> tuple[feed_reports.FeedRow, ...]:
        """Return every feed, with how far it was read and how far it could be."""
        return self._read(read_reports.feeds)

    def source_gates(self) -> tuple[reports.SourceGateRow, ...]:
        """Return the sources under a gate."""
        return self._read(read_reports.source_gates)

    def bootstrap_gate_status(self) -> tuple[reports.BootstrapRow, ...]:
        """Return every source with each stream table made of it, and what that waits for."""
        return self._read(read_reports.bootstrap_status)

    def event_times(self) -> tuple[late_reports.EventTimeRow, ...]:
        """Return the declared event times, each with what keeps late rows from being noted, if anything does."""
        return self._read(read_reports.event_times)

    def late_rows(
        self, source: str | None = None, status: str | None = None, limit: int = 20
    ) -> tuple[late_reports.LateRow, ...]:
        """Return the newest late rows: of one source or of all that may be read, in one status or in any."""
        return self._read(lambda connection: read_reports.late_rows(connection, source, status, limit))

    def watermark_metrics(self) -> tuple[late_reports.WatermarkMetrics, ...]:
        """Return the watermark of every source as numbers: lag, pace, idleness, late rows."""
        return self._read(read_reports.watermark_metrics)

    def change_buffers(self) -> tuple[reports.BufferRow, ...]:
        """Return the size of the change buffer of every captured source."""
        return self._read(read_reports.change_buffers)

    def problems(self) -> tuple[trouble_reports.ProblemRow, ...]:
        """Return what keeps stream tables from being refreshed, or has them computed anew by the next tick."""
        return self._read(read_reports.problems)

    def alerts(self, limit: int = 20) -> tuple[trouble_reports.AlertRow, ...]:
        """Return the open incidents, then the newest of those that ended."""
        return self._read(lambda connection: read_reports.alerts(connection, limit))

    def alert_limits(self) -> tuple[freshness_reports.AlertLimitsRow, ...]:
        """Return the limits beyond which an alert is raised."""
        return self._read(read_reports.alert_limits)

    def source_limits(self, source: str) -> tuple[trouble_reports.SourceLimitsRow, ...]:
        """Return the limits on the silence of a source: its own, without a group_name, then those of its groups."""
        return self._read(lambda connection: read_reports.source_limits(connection, source))

    def freshness(self) -> tuple[freshness_reports.FreshnessRow, ...]:
        """Return how far every stream table is behind its sources, and why."""
        return self._read(read_reports.freshness)

    def history(self, name: str | None = None, limit: int = 20) -> tuple[reports.HistoryRow, ...]:
        """Return the newest refreshes of one stream table, or of all."""
        return self._read(lambda connection: read_reports.history(connection, name, limit))

    def running(self) -> tuple[RunningRow, ...]:
        """Return the stream tables that are being refreshed now, by this process or another."""
        return self._read(read_reports.running)

    def dependencies(self) -> tuple[reports.DependencyRow, ...]:
        """Return what every stream table reads, directly and through others."""
        return self._read(read_reports.dependencies)

    def dag(self) -> reports.Dag:
        """Return the graph of sources and stream tables with their states, read in one snapshot."""
        return self._read(read_reports.dag)

    def refresh_groups(self) -> tuple[reports.RefreshGroupRow, ...]:
        """Return every refresh group."""
        return self._read(read_reports.refresh_groups)

    def _read(self, read: Callable[[psycopg.Connection], Rows]) -> Rows:
        self._ensure_open()
        with translate_errors(), self._lender.borrow() as connection:
            return read(connection)
