"""How watermarks that were taken back look on a screen."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType

from pytrickle.catalog.withdrawn_watermarks import WithdrawnWatermark
from pytrickle.cli.show.columns import columns
from pytrickle.cli.values import moment, through


def withdrawn(rows: Sequence[WithdrawnWatermark]) -> RenderableType:
    """Draw the watermarks that were taken back, newest first."""
    if not rows:
        return "No watermark was taken back."
    table = columns(
        *("source", "watermark", "said at", "said by", "lowered to", "taken back at", "taken back by"),
        spare=("said by", "said at", "taken back by"),
    )
    for row in rows:
        table.add_row(
            row.source,
            through(row.watermark, row.batch),
            moment(row.advanced_at),
            row.advanced_by or "-",
            through(row.lowered_to, row.lowered_to_batch),
            moment(row.withdrawn_at),
            row.withdrawn_by,
        )
    return table
