"""Frozen values for late data and the pace of watermarks; the fields are the columns of the SQL functions."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from pytrickle.readable import Readable


@dataclass(frozen=True, slots=True, repr=False)
class EventTimeRow(Readable):
    """The declared event time of one source, as ``pgtrickle.event_times()`` reports it.

    `problem` says why late rows may slip by; it is None while all is well.
    """

    source: str
    column_name: str
    time_zone: str | None
    too_late: timedelta | None
    declared_at: datetime
    declared_by: str
    problem: str | None


@dataclass(frozen=True, slots=True, repr=False)
class LateRow(Readable):
    """One entry of the late ledger, as ``pgtrickle.late_rows()`` reports it.

    `status` is ``loaded`` (the row is in the source), ``kept_out`` (it waits in the ledger), ``replayed`` or
    ``discarded``. `row_data` has every value as PostgreSQL writes it as text. `lag` is None where the event time or
    the watermark it missed is infinite.
    """

    late_id: int
    source: str
    event_time: datetime
    watermark: datetime
    lag: timedelta | None
    row_data: Mapping[str, str | None]
    arrived_at: datetime
    arrived_by: str
    status: str
    settled_at: datetime | None
    settled_by: str | None


@dataclass(frozen=True, slots=True, repr=False)
class WatermarkMetrics(Readable):
    """The watermark of one source as numbers, as ``pgtrickle.watermark_metrics()`` reports them.

    `rate` is event time gained per time passed. `idle_share` is that of the sources of its groups, None without one.
    `late_rows` and `late_ratio` are None where no event time is declared.
    """

    source: str
    watermark: datetime | None
    lag: timedelta | None
    group_lag: timedelta | None
    idle: bool | None
    idle_share: float | None
    advances: int
    rate: float | None
    last_interval: timedelta | None
    median_interval: timedelta | None
    since_advance: timedelta | None
    late_rows: int | None
    late_waiting: int
    late_ratio: float | None
