"""Why a stream table is stale: its lag, split among what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, text

from pytrickle.database import translate_errors

CAUSES = {
    "waiting_for_watermark": "watermark",
    "at_gate": "gate",
    "before_schedule": "schedule",
    "in_queue": "queue",
    "in_refresh": "refresh",
    "inherited": "inherited",
    "stopped": "stopped",
}
# A catalog that is not upgraded yet, or comes from pg_trickle, has a function of this name that tells no lag.
_KNOWN = text(
    "SELECT COALESCE(pg_catalog.pg_get_function_result(pg_catalog.to_regprocedure('pgtrickle.freshness()'))"
    " LIKE '%waiting_for_watermark%', false)"
    " AND pg_catalog.to_regprocedure('pgtrickle_private.readable_text(text)') IS NOT NULL"
)
_ALL = text(
    "SELECT pgtrickle_private.readable_text(stream_table), status, lag, pgtrickle_private.readable_text(reason),"
    f" {', '.join(CAUSES)} FROM pgtrickle.freshness()"
)


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far a stream table is behind its sources; the `parts` sum up to the lag. `status` says it in one word."""

    status: str
    lag: timedelta
    reason: str
    parts: Mapping[str, timedelta]


def freshness(connection: Connection) -> dict[str, Freshness]:
    """Return the freshness of all stream tables by name; of none where the catalog does not tell it."""
    with translate_errors():
        if not connection.execute(_KNOWN).scalar_one():
            return {}
        return {name: _freshness(*values) for name, *values in connection.execute(_ALL)}


def _freshness(status: str, lag: timedelta, reason: str, *spans: timedelta) -> Freshness:
    parts = zip(CAUSES.values(), spans, strict=True)
    return Freshness(status, lag, reason, {name: span for name, span in parts if span})
