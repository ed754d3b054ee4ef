"""Frozen values for watermarks that were taken back; the fields are the columns of the SQL function."""

from dataclasses import dataclass
from datetime import datetime

from pytrickle.readable import Readable


@dataclass(frozen=True, slots=True, repr=False)
class WithdrawnWatermark(Readable):
    """One watermark that was taken back, as ``pgtrickle.withdrawn_watermarks()`` reports it.

    `source` is a stream table where that had a feed and claimed such a watermark; then `advanced_by` is None. `version`
    is the one that readers of its changes knew.
    """

    source: str
    watermark: datetime | None
    batch: int | None
    version: int | None
    advanced_at: datetime
    advanced_by: str | None
    lowered_to: datetime | None
    lowered_to_batch: int | None
    withdrawn_at: datetime
    withdrawn_by: str
