"""Frozen values for feeds; the fields are the columns of the SQL function."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from pytrickle.readable import Readable


@dataclass(frozen=True, slots=True, repr=False)
class FeedRow(Readable):
    """One feed, as ``pgtrickle.feeds()`` reports it.

    `waiting_since` is when the oldest version was recorded that is still to be read. `cut_off_reason` says why nothing
    is kept for it any more, and is None while all is well.
    """

    feed: str
    relation: str
    owner: str
    read_version: int | None
    newest_version: int | None
    read_watermark: datetime | None
    read_batch: int | None
    newest_watermark: datetime | None
    newest_batch: int | None
    versions_behind: int
    waiting_since: datetime | None
    max_age: timedelta | None
    max_rows: int | None
    cut_off_reason: str | None
