"""Frozen values for what the catalog's functions report; the fields are the columns of the SQL functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pytrickle.catalog.feed_reports import FeedRow
from pytrickle.catalog.freshness_reports import FreshnessRow
from pytrickle.catalog.trouble_reports import AlertRow, ProblemRow
from pytrickle.readable import Readable


@dataclass(frozen=True, slots=True, repr=False)
class WatermarkRow(Readable):
    """One source that ever advanced, as ``pgtrickle.watermarks()`` reports it.

    It goes by event time, a `watermark`, or by batch numbers, a `batch`; the other is None. `advanced_at` is when it
    last moved, `last_seen_at` when its loader last called. A watermark of ``infinity`` (an exhausted source) is
    ``datetime.max`` in UTC. `lsn` is None where the platform hides it,
    `event_time` where no column is declared to be it.
    """

    source: str
    watermark: datetime | None
    advanced_at: datetime
    last_seen_at: datetime
    advanced_by: str
    lsn: str | None
    batch: int | None = None
    event_time: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class HistoryEntry(Readable):
    """One advance of a source's watermark, as ``pgtrickle.watermark_history(source)`` reports it."""

    watermark: datetime | None
    advanced_at: datetime
    advanced_by: str
    lsn: str | None
    batch: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class WatermarkGroupRow(Readable):
    """One watermark group: sources whose watermarks must agree within the tolerance, and limits on their silence.

    It goes by event time and has a `tolerance`, or by batch numbers and has a `batch_tolerance`; the other is None.
    """

    group_name: str
    sources: tuple[str, ...]
    tolerance: timedelta | None
    created_at: datetime
    stale_after: timedelta | None = None
    on_stale: str = "warn"
    idle_after: timedelta | None = None
    batch_tolerance: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class RefreshGroupRow(Readable):
    """One refresh group, as ``pgtrickle.refresh_groups()`` reports it."""

    group_name: str
    members: tuple[str, ...]
    isolation: str
    created_at: datetime


@dataclass(frozen=True, slots=True, repr=False)
class WatermarkStatusRow(Readable):
    """Where one watermark group stands now.

    `aligned` is what the gate decides: while some source never advanced, the group holds nothing back and is aligned,
    unless a stream table must wait for it. `waiting_for` names the source the group waits for and
    `reason` says it in one sentence. The sources in `idle` are left out of the comparison. `effective_watermark` is the
    last at which the group let a stream table through, `agreed_watermark` the newest that holding back can show now.
    Of a group that goes by batch numbers the fields named for batches are filled, and those of event time are None.
    """

    group_name: str
    min_watermark: datetime | None
    max_watermark: datetime | None
    lag: timedelta | None
    tolerance: timedelta | None
    aligned: bool
    effective_watermark: datetime | None
    waiting_for: str | None
    reason: str | None
    idle: tuple[str, ...] = ()
    min_batch: int | None = None
    max_batch: int | None = None
    batch_lag: int | None = None
    batch_tolerance: int | None = None
    effective_batch: int | None = None
    agreed_watermark: datetime | None = None
    agreed_batch: int | None = None
    sources_with_watermark: int = 0
    sources_total: int = 0

    @property
    def state(self) -> str:
        """How it stands in one word: waiting for a source that never advanced, aligned, or apart."""
        if self.sources_with_watermark < self.sources_total:
            return "waiting"
        return "aligned" if self.aligned else "apart"


@dataclass(frozen=True, slots=True, repr=False)
class SourceGateRow(Readable):
    """One source under a gate, as ``pgtrickle.source_gates()`` reports it, with the stream tables that wait for it."""

    source: str
    gated_at: datetime
    gated_by: str
    reason: str | None
    stream_tables: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class BootstrapRow(Readable):
    """One source and one stream table made of it, as ``pgtrickle.bootstrap_status()`` reports them.

    `watermark` and `batch` are None while the source never advanced; the fields from `stream_table` on are None where
    no stream table is made of the source. `waits_for` is None once the stream table is filled and may be refreshed.
    """

    source: str
    gated: bool
    gated_at: datetime | None
    gated_by: str | None
    ungated_at: datetime | None
    watermark: datetime | None
    last_seen_at: datetime | None
    stream_table: str | None
    filled: bool | None
    decision: str | None
    waits_for: str | None
    batch: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class StreamTableStatus(Readable):
    """One stream table as ``pgtrickle.pgt_status()`` reports it.

    `stream_table` is the qualified name, `watermark_gating` the mode in force (``auto`` is resolved), `decision`
    what the next tick may do (``run``, ``gated`` or ``waiting``) and `reason` why, in one sentence. `next_due_at` is
    the next moment of a cron schedule, `retry_at` the earliest next attempt after a failure, `fuse_blown_at` since
    when a delta is held by the fuse. `effective_schedule` says in words when it is refreshed, its tier and what it
    follows included; `due` whether the next tick takes it up. `planner_defect` names what pytrickle failed on where it
    refreshes the table in another way because of that: its log has the traceback. `engine` says who is to compute it,
    `last_engine` who did. Rows from before `frozen_before` never change again; `late_changes` counts what the ledger
    has that came too late for them, or for closed windows.
    """

    pgt_id: int
    stream_table: str
    status: str
    refresh_mode: str
    schedule: str
    watermark_gating: str
    decision: str
    reason: str | None
    effective_watermark: datetime | None
    data_timestamp: datetime | None
    last_refresh_at: datetime | None
    staleness: timedelta | None
    last_action: str | None
    last_error: str | None
    tier: str
    paused: bool
    next_due_at: datetime | None
    consecutive_failures: int
    retry_at: datetime | None
    fuse_blown_at: datetime | None
    effective_schedule: str
    due: bool
    effective_batch: int | None = None
    planner_defect: str | None = None
    engine: str = "auto"
    last_engine: str | None = None
    frozen_before: datetime | None = None
    late_changes: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class HistoryRow(Readable):
    """One attempted refresh, as ``pgtrickle.refresh_history()`` reports it, newest first.

    `commit_to_visible` is how long after it came the oldest change was visible; by its commit where `change_clock` is
    ``commit``, else by the time when it was captured, before that. `phases` has milliseconds, `amplification` the rows
    written per row of the delta.
    """

    refresh_id: int
    stream_table: str
    action: str
    status: str
    initiated_by: str
    reason: str | None
    started_at: datetime
    finished_at: datetime | None
    delta_rows: int | None
    rows_inserted: int | None
    rows_deleted: int | None
    effective_watermark: datetime | None
    data_timestamp: datetime | None
    error: str | None
    effective_batch: int | None = None
    engine: str | None = None
    commit_to_visible: timedelta | None = None
    change_clock: str | None = None
    oldest_change_at: datetime | None = None
    newest_change_at: datetime | None = None
    phases: Mapping[str, float] | None = None
    staged_bytes: int | None = None
    amplification: float | None = None


@dataclass(frozen=True, slots=True, repr=False)
class DependencyRow(Readable):
    """One edge of the dependency tree: a stream table and what it reads, with the depth below the table."""

    stream_table: str
    source: str
    source_type: str
    depth: int


@dataclass(frozen=True, slots=True, repr=False)
class BufferRow(Readable):
    """The change buffer of one source: about how many rows wait in it, and its size in bytes."""

    source_table: str
    pending_rows: int
    buffer_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class Status(Readable):
    """Everything the status screen shows, read in one snapshot taken at `as_of`; `alerts` are the open incidents."""

    stream_tables: tuple[StreamTableStatus, ...]
    groups: tuple[WatermarkStatusRow, ...]
    watermarks: tuple[WatermarkRow, ...]
    as_of: datetime
    gates: tuple[SourceGateRow, ...] = ()
    alerts: tuple[AlertRow, ...] = ()
    feeds: tuple[FeedRow, ...] = ()
    problems: tuple[ProblemRow, ...] = ()
    freshness: tuple[FreshnessRow, ...] = ()

    @property
    def planner_defects(self) -> int:
        """How many stream tables have queries on which the planner fails."""
        return sum(row.planner_defect is not None for row in self.stream_tables)


@dataclass(frozen=True, slots=True, repr=False)
class DagRow(Readable):
    """One source or stream table, as ``pgtrickle.dag()`` reports it.

    `tree` is its name indented below what it reads, `reads` all that it reads directly. `watermark` and `batch` are the
    effective ones of a stream table; `last_action` and `last_duration` tell of its last refresh that was not skipped.
    """

    tree: str
    relation: str
    kind: str
    reads: tuple[str, ...]
    watermark_groups: tuple[str, ...]
    watermark: datetime | None
    status: str | None
    last_action: str | None
    last_duration: timedelta | None
    batch: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Dag(Readable):
    """The graph of sources and stream tables, with the state of each table and group, in one snapshot at `as_of`."""

    relations: tuple[DagRow, ...]
    stream_tables: tuple[StreamTableStatus, ...]
    groups: tuple[WatermarkStatusRow, ...]
    refresh_groups: tuple[RefreshGroupRow, ...]
    as_of: datetime
