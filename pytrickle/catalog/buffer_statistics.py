"""The planner's statistics of change buffers, renewed where they do not know of many changes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg

from pytrickle.catalog.definition import ChangeRange
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.cut import Cut
from pytrickle.database import filled, settle

WORTH_ANALYZING = 1_000
# With more changes than this in all buffers together, a buffer with the lesser number is analyzed, too: of one that it
# does not know PostgreSQL expects a single row, and reads all the other changes again for each of its rows.
MANY = 4_000
WORTH_ANALYZING_BESIDE_MANY = 100
# Statistics are good enough while no more than this part of the changes is new to them.
TOLERATED = 0.1
# So fine at most are they, which looks at 300 rows for each: that tells enough to order joins, in a fifth of the time
# that PostgreSQL's default of 100 takes.
FINE = 20
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

    def renew_read(
        self, connection: psycopg.Connection, table: StreamTable, ranges: Mapping[int, ChangeRange], snapshot: Cut
    ) -> None:
        """Analyze the buffers of which a stream table is about to read many changes."""
        together = sum(change_range.delta_rows for change_range in ranges.values())
        least = WORTH_ANALYZING_BESIDE_MANY if together > MANY else WORTH_ANALYZING
        for dependency in table.dependencies:
            if dependency.buffer and dependency.relid in ranges:
                delta_rows = ranges[dependency.relid].delta_rows
                if delta_rows >= least:
                    self.renew(connection, dependency.buffer, delta_rows, snapshot)

    def renew(self, connection: psycopg.Connection, buffer: str, delta_rows: int, snapshot: Cut) -> None:
        """Analyze a buffer of which `delta_rows` changes are about to be read, unless most of them are known."""
        known = self.known.get(buffer)
        if known and (known.cut == snapshot or _new(connection, buffer, known.cut) <= TOLERATED * delta_rows):
            return
        if known and known.resembles(delta_rows):
            _analyze(connection, f"{buffer} (pgt_xid)")
            self.known[buffer] = Sample(snapshot, known.rows, known.repeated + 1)
            return
        _analyze(connection, buffer)
        self.known[buffer] = Sample(snapshot, delta_rows)


def _analyze(connection: psycopg.Connection, what: str) -> None:
    """Analyze a buffer, or some of its columns, as finely as it pays here but no finer than the session would."""
    target = f"least({FINE}, current_setting('default_statistics_target')::integer)::text"
    setting = f"SELECT set_config('default_statistics_target', {target}, true)"
    settle(connection, (setting, f"ANALYZE (SKIP_LOCKED) {what}"))


def _new(connection: psycopg.Connection, buffer: str, known: Cut) -> int:
    new = filled("SELECT count(*) FROM {buffer} WHERE {beyond}", buffer=buffer, beyond=known.beyond())
    row = connection.execute(new).fetchone()
    return int(row[0]) if row else 0
