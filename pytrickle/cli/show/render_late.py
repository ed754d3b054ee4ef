"""How late data and the metrics of watermarks look on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from rich.text import Text

from pytrickle.catalog.late_reports import EventTimeRow, LateRow, WatermarkMetrics
from pytrickle.cli.show.columns import Columns, columns
from pytrickle.cli.values import length, moment

_NONE = "-"


def event_times(rows: Sequence[EventTimeRow]) -> Columns:
    """Draw the declared event times."""
    drawn = columns("source", "event time", "too late after", "problem", sentences=("problem",))
    for row in rows:
        column = row.column_name if row.time_zone is None else f"{row.column_name} in {row.time_zone}"
        drawn.add_row(row.source, column, _length(row.too_late), row.problem or _NONE)
    return drawn


def late_rows(rows: Sequence[LateRow]) -> Columns:
    """Draw entries of the late ledger."""
    drawn = columns(
        *("id", "source", "event time", "missed", "late by", "status", "row"),
        sentences=("row",),
        spare=("missed", "late by"),
    )
    for row in rows:
        values = ", ".join(f"{name}={value}" for name, value in row.row_data.items() if value is not None)
        times = (moment(row.event_time), moment(row.watermark), _length(row.lag))
        # What the row holds is shown as PostgreSQL writes it.
        drawn.add_row(str(row.late_id), row.source, *times, row.status, Text(values))
    return drawn


def metrics(rows: Sequence[WatermarkMetrics]) -> Columns:
    """Draw watermarks as numbers; what is not known is a dash."""
    drawn = columns(
        *("source", "watermark", "lag", "in groups", "rate", "every", "since", "idle", "late", "waiting"),
        spare=("in groups", "rate", "every", "waiting", "idle", "since"),
    )
    for row in rows:
        drawn.add_row(
            row.source,
            "never advanced" if row.watermark is None else moment(row.watermark),
            _length(row.lag),
            _length(row.group_lag),
            _NONE if row.rate is None else f"{row.rate:.3g}",
            _length(row.median_interval),
            _length(row.since_advance),
            _idle(row),
            _late(row),
            str(row.late_waiting),
        )
    return drawn


def _idle(row: WatermarkMetrics) -> str:
    if row.idle_share is None:
        return _NONE
    return f"{'yes' if row.idle else 'no'}, {row.idle_share:.0%} of its groups"


def _late(row: WatermarkMetrics) -> str:
    if row.late_rows is None:
        return _NONE
    return str(row.late_rows) if row.late_ratio is None else f"{row.late_rows}, {row.late_ratio:.2%}"


def _length(value: timedelta | None) -> str:
    return _NONE if value is None else length(value)
