"""The watermark that the database has of a source, from which a load goes on."""

from __future__ import annotations

import json
from datetime import datetime

from pytrickle.watermarks.instant import INFINITY
from pytrickle.watermarks.loading.connections import Session

# JSON has moments in one form, whatever the DateStyle of the session.
_WATERMARK = (
    "SELECT COALESCE(CAST(pg_catalog.to_json(pgtrickle.watermark_of(CAST(%s AS pg_catalog.regclass)))"
    " AS pg_catalog.text), 'null')"
)


def watermark_of(own: Session, source: str) -> datetime | None:
    """Return the watermark of a source in its database; None for none, and for one that goes by batch numbers."""
    return in_force(own.value(_WATERMARK, (source,)))


def in_force(answer: str) -> datetime | None:
    """Return the moment that PostgreSQL wrote as JSON.

    >>> print(in_force('"2026-03-02T12:00:00+00:00"'), in_force("null"), in_force('"infinity"') == INFINITY)
    2026-03-02 12:00:00+00:00 None True
    """
    written = json.loads(answer)
    if written is None:
        return None
    return INFINITY if written == "infinity" else datetime.fromisoformat(written)
