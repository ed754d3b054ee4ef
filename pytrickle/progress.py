"""How far a stream table is complete: through an event time, through the batch of a number, or one of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from pytrickle.errors import InvalidArgument

Moment = TypeVar("Moment", datetime, int)


@dataclass(frozen=True, slots=True)
class Progress:
    """An effective watermark of each kind; None where no watermark group of that kind says anything.

    >>> Progress(batch=3).exceeds(Progress(datetime(2026, 1, 1), 2)), Progress(batch=3).exceeds(Progress(batch=3))
    (True, False)
    """

    watermark: datetime | None = None
    batch: int | None = None

    def exceeds(self, other: Progress) -> bool:
        """Whether it is farther than the other in one of the kinds."""
        return self.joined(other) != other

    def joined(self, other: Progress) -> Progress:
        """Return the farther of the two in each kind.

        >>> Progress(batch=3).joined(Progress(datetime(2026, 1, 1), 2))
        Progress(watermark=datetime.datetime(2026, 1, 1, 0, 0), batch=3)
        """
        if self == other:
            return self
        watermarks: Iterable[datetime] = filter(None, (self.watermark, other.watermark))
        batches = (batch for batch in (self.batch, other.batch) if batch is not None)
        return Progress(max(watermarks, default=None), max(batches, default=None))


def sql_type(watermark: datetime | int | str | None) -> str:
    """Return the SQL type that says of which kind a watermark is; raise InvalidArgument for what is none of either.

    A moment needs an offset, for a watermark is not moved back: no zone is guessed. Text is an event time, such as
    'infinity'.

    >>> sql_type(42), sql_type("2026-01-01 12:00+00")
    ('bigint', 'timestamp with time zone')
    """
    if isinstance(watermark, bool) or not isinstance(watermark, datetime | int | str | None):
        raise InvalidArgument(
            f"{watermark!r} is no watermark.", "Give a datetime with a UTC offset, or a batch number."
        )
    if isinstance(watermark, int):
        return "bigint"
    moment = _read(watermark) if isinstance(watermark, str) else watermark
    if moment and moment.utcoffset() is None:
        raise InvalidArgument(f"{watermark} has no UTC offset.", "Give it one, such as tzinfo=datetime.UTC.")
    return "timestamp with time zone"


def _read(text: str) -> datetime | None:
    """Read a moment as ISO 8601 writes it; None where that is left to PostgreSQL."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None
