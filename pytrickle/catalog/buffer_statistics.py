"""The planner's statistics of change buffers, renewed where they do not know of many changes."""

from dataclasses import dataclass, field

import psycopg

from pytrickle.cut import Cut
from pytrickle.database import filled

WORTH_ANALYZING = 1_000
# Statistics are good enough while no more than this part of the changes is new to them.
TOLERATED = 0.1


@dataclass(slots=True)
class BufferStatistics:
    """Remembers up to which cut each change buffer was analyzed by this process.

    By the statistics of an earlier state PostgreSQL expects few changes, and would join them row by row. One ANALYZE
    serves all stream tables that read the same changes.
    """

    connection: psycopg.Connection
    analyzed: dict[str, Cut] = field(default_factory=dict)

    def renew(self, buffer: str, delta_rows: int, snapshot: Cut) -> None:
        """Analyze a buffer of which `delta_rows` changes are about to be read, unless most of them are known."""
        if delta_rows < WORTH_ANALYZING:
            return
        known = self.analyzed.get(buffer)
        if known is not None and self._new(buffer, known) <= TOLERATED * delta_rows:
            return
        self.connection.execute(filled("ANALYZE (SKIP_LOCKED) {buffer}", buffer=buffer))
        self.analyzed[buffer] = snapshot

    def _new(self, buffer: str, known: Cut) -> int:
        new = filled("SELECT count(*) FROM {buffer} WHERE {beyond}", buffer=buffer, beyond=known.beyond())
        row = self.connection.execute(new).fetchone()
        return int(row[0]) if row else 0
