"""How sources, their gates and their alerts look on a screen."""

from __future__ import annotations

from collections.abc import Sequence

from pytrickle.catalog.reports import BootstrapRow, SourceGateRow
from pytrickle.catalog.trouble_reports import AlertRow, ProblemRow, SourceLimitsRow
from pytrickle.cli.remedies import on_the_command_line
from pytrickle.cli.show.columns import Columns, columns
from pytrickle.cli.values import length, moment, through

_NONE = "-"


def gates(rows: Sequence[SourceGateRow]) -> Columns:
    """Draw the sources under a gate."""
    table = columns("source", "gated since", "by", "reason", "holds", sentences=("reason", "holds"), spare=("by",))
    for row in rows:
        held = ", ".join(row.stream_tables) or _NONE
        table.add_row(row.source, moment(row.gated_at), row.gated_by, row.reason or _NONE, held)
    return table


def alerts(rows: Sequence[AlertRow]) -> Columns:
    """Draw incidents, open or ended."""
    table = columns(
        *("kind", "subject", "group", "since", "ended", "sentence"), sentences=("sentence",), spare=("group", "ended")
    )
    for row in rows:
        ended = _NONE if row.closed_at is None else moment(row.closed_at)
        table.add_row(row.kind, row.subject, row.group_name or _NONE, moment(row.since), ended, row.sentence)
    return table


def limits(rows: Sequence[SourceLimitsRow]) -> Columns:
    """Draw the limits on the silence of a source, its own first."""
    table = columns("of", "stale after", "then", "idle after")
    for row in rows:
        of = "the source" if row.group_name is None else f"group {row.group_name}"
        stale, idle = (_NONE if limit is None else length(limit) for limit in (row.stale_after, row.idle_after))
        table.add_row(of, stale, _NONE if row.stale_after is None else row.on_stale, idle)
    return table


def bootstrap(rows: Sequence[BootstrapRow]) -> Columns:
    """Draw every source with each stream table made of it."""
    table = columns(
        *("source", "gate", "watermark", "stream table", "filled", "waits for"),
        sentences=("waits for",),
        spare=("filled", "watermark"),
    )
    for row in rows:
        gate = f"shut by {row.gated_by}" if row.gated else "opened" if row.ungated_at else _NONE
        watermark = through(row.watermark, row.batch) or "never advanced"
        filled = _NONE if row.filled is None else "yes" if row.filled else "no"
        table.add_row(row.source, gate, watermark, row.stream_table or _NONE, filled, row.waits_for or _NONE)
    return table


def problems(rows: Sequence[ProblemRow]) -> Columns:
    """Draw what is wrong with stream tables, and what to do about it."""
    table = columns("stream table", "problem", "remedy", sentences=("problem", "remedy"))
    for row in rows:
        table.add_row(row.stream_table, row.problem, on_the_command_line(row.remedy or _NONE))
    return table
