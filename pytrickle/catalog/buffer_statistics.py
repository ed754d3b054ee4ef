"""The planner's statistics of change buffers, renewed where they do not know of many changes."""

from dataclasses import dataclass, field

import psycopg

from pytrickle.cut import Cut
from pytrickle.database import filled

WORTH_ANALYZING = 1_000
# With more changes than this in all buffers together, a buffer with the lesser number is analyzed, too: of one that it
# does not know PostgreSQL expects a single row, and reads all the other changes again for each of its rows.
MANY = 4_000
WORTH_ANALYZING_BESIDE_MANY = 100
# Statistics are good enough while no more than this part of the changes is new to them.
TOLERATED = 0.1
# Changes that are about as many as those before are taken to be like them for so many times.
ALIKE = 10


@dataclass(frozen=True, slots=True)
class Sample:
    """Up to which cut a buffer was analyzed; of how many changes all columns were, and how often not all since."""

    cut: Cut
    rows: int
    repeated: int = 0

    def resembles(self, delta_rows: int) -> bool:
        """Whether what is known of the columns may be taken to hold for so many other changes."""
        return self.repeated < ALIKE and self.rows <= 2 * delta_rows <= 4 * self.rows


@dataclass(slots=True)
class BufferStatistics:
    """Remembers up to which cut each change buffer was analyzed by this process.

    By the statistics of an earlier state PostgreSQL expects few changes, and would join them row by row. One ANALYZE
    serves all stream tables that read the same changes. How many changes there are is known from the transactions
    alone, which takes a tenth of the time that all columns take.
    """

    known: dict[str, Sample] = field(default_factory=dict)

    def renew(self, connection: psycopg.Connection, buffer: str, delta_rows: int, snapshot: Cut) -> None:
        """Analyze a buffer of which `delta_rows` changes are about to be read, unless most of them are known."""
        known = self.known.get(buffer)
        if known and (known.cut == snapshot or _new(connection, buffer, known.cut) <= TOLERATED * delta_rows):
            return
        if known and known.resembles(delta_rows):
            connection.execute(filled("ANALYZE (SKIP_LOCKED) {buffer} (pgt_xid)", buffer=buffer))
            self.known[buffer] = Sample(snapshot, known.rows, known.repeated + 1)
            return
        connection.execute(filled("ANALYZE (SKIP_LOCKED) {buffer}", buffer=buffer))
        self.known[buffer] = Sample(snapshot, delta_rows)


def _new(connection: psycopg.Connection, buffer: str, known: Cut) -> int:
    new = filled("SELECT count(*) FROM {buffer} WHERE {beyond}", buffer=buffer, beyond=known.beyond())
    row = connection.execute(new).fetchone()
    return int(row[0]) if row else 0
