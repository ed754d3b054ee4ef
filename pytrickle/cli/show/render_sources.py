"""How sources, their gates and their alerts look on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table

from pytrickle.catalog.reports import AlertRow, BootstrapRow, SourceGateRow
from pytrickle.cli.show.columns import columns
from pytrickle.cli.values import moment, through

_NONE = "-"


def gates(rows: Sequence[SourceGateRow]) -> Table:
    """Draw the sources under a gate."""
    table = columns("source", "gated since", "by", "reason", "holds")
    for row in rows:
        held = ", ".join(row.stream_tables) or _NONE
        table.add_row(row.source, _second(row.gated_at), row.gated_by, row.reason or _NONE, held)
    return table


def alerts(rows: Sequence[AlertRow]) -> Table:
    """Draw incidents, open or ended."""
    table = columns("kind", "subject", "group", "since", "ended", "sentence")
    for row in rows:
        ended = _NONE if row.closed_at is None else _second(row.closed_at)
        table.add_row(row.kind, row.subject, row.group_name or _NONE, _second(row.since), ended, row.sentence)
    return table


def bootstrap(rows: Sequence[BootstrapRow]) -> Table:
    """Draw every source with each stream table made of it."""
    table = columns("source", "gate", "watermark", "stream table", "filled", "waits for")
    for row in rows:
        gate = f"shut by {row.gated_by}" if row.gated else "opened" if row.ungated_at else _NONE
        watermark = through(row.watermark, row.batch) or "never advanced"
        filled = _NONE if row.filled is None else "yes" if row.filled else "no"
        table.add_row(row.source, gate, watermark, row.stream_table or _NONE, filled, row.waits_for or _NONE)
    return table


def _second(value: datetime) -> str:
    return moment(value.replace(microsecond=0))
