"""How feeds look on a screen."""

from __future__ import annotations

from collections.abc import Sequence

from pytrickle.catalog.feed_reports import FeedRow
from pytrickle.cli.show.columns import Columns, columns
from pytrickle.cli.values import moment, through

_NONE = "-"


def feeds(rows: Sequence[FeedRow]) -> Columns:
    """Draw who follows which table, and how far each is behind."""
    table = columns("feed", "follows", "read through", "newest", "behind", "waiting since", "state")
    for row in rows:
        waiting = _NONE if row.waiting_since is None else moment(row.waiting_since.replace(microsecond=0))
        state = f"cut off: {row.cut_off_reason}" if row.cut_off_reason else "ok"
        read = through(row.read_watermark, row.read_batch) or _version(row.read_version)
        newest = through(row.newest_watermark, row.newest_batch) or _version(row.newest_version)
        table.add_row(row.feed, row.relation, read, newest, str(row.versions_behind), waiting, state)
    return table


def _version(number: int | None) -> str:
    return _NONE if number is None else f"version {number}"
