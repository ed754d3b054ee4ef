"""How freshness and the limits of alerts look on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from pytrickle.catalog.freshness_reports import AlertLimitsRow, FreshnessRow
from pytrickle.cli.show.columns import Columns, columns
from pytrickle.cli.values import length

_NONE = "-"


def freshness(rows: Sequence[FreshnessRow]) -> Columns:
    """Draw how far stream tables are behind their sources, and why."""
    table = columns(
        *("stream table", "state", "behind", "cause", "culprit", "p95", "reason"),
        sentences=("reason",),
        spare=("p95", "culprit"),
    )
    for row in rows:
        behind = _NONE if row.status == "fresh" else length(row.lag)
        named = (row.cause or _NONE, row.culprit or _NONE)
        table.add_row(row.stream_table, row.status, behind, *named, _length(row.p95), row.reason)
    return table


def alert_limits(rows: Sequence[AlertLimitsRow]) -> Columns:
    """Draw the limits beyond which an alert is raised."""
    table = columns("of", "lag", "late share", "rate", "idle share")
    for row in rows:
        of = row.source or (f"group {row.group_name}" if row.group_name else "all others")
        table.add_row(of, _length(row.lag), *map(_number, (row.late_share, row.rate, row.idle_share)))
    return table


def _length(value: timedelta | None) -> str:
    return _NONE if value is None else length(value)


def _number(value: float | None) -> str:
    return _NONE if value is None else f"{value:g}"
