"""SQLMesh: a signal that holds a model's intervals back until a stream table or source is complete through them.

Needs nothing of pytrickle's but this module, and reads through the connection that SQLMesh has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import inf
from typing import Protocol

from sqlglot import exp

Interval = tuple[datetime, datetime]

# As seconds since 1970, for a driver may have no datetime for an exhausted source.
REACHED = """
SELECT EXTRACT(epoch FROM
    CASE WHEN t.pgt_id IS NULL THEN pgtrickle.watermark_of({name}::text) ELSE t.effective_watermark END)::float8
FROM (SELECT to_regclass({name}) AS relid) AS named
LEFT JOIN pgtrickle.stream_tables_info AS t ON t.pgt_relid = relid
"""


class Adapter(Protocol):
    """What SQLMesh asks a database through: the `engine_adapter` of a context."""

    def fetchone(self, query: str) -> tuple[float | None] | None:
        """Return the only row of a query."""


def complete_intervals(batch: Sequence[Interval], adapter: Adapter, name: str) -> list[Interval]:
    """Return the intervals that end no later than a stream table or source is complete; call it in a signal.

    What nobody has told a watermark of is complete through nothing.
    """
    row = adapter.fetchone(REACHED.format(name=exp.Literal.string(name).sql(dialect="postgres")))
    reached = row[0] if row and row[0] is not None else -inf
    return [(start, end) for start, end in batch if end.timestamp() <= reached]
