"""Frozen values for refreshes under way; the fields are the columns of the SQL function."""

from dataclasses import dataclass
from datetime import datetime

from pytrickle.readable import Readable


@dataclass(frozen=True, slots=True, repr=False)
class RunningRow(Readable):
    """One stream table that is being refreshed, as ``pgtrickle.running()`` reports it."""

    stream_table: str
    since: datetime
    sessions: int
