"""Rest after a tick without work: while nothing at all is committed, the next one would find nothing either."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

import psycopg

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import translate_errors
from pytrickle.progress import Progress
from pytrickle.refresh.values import RefreshResult
from pytrickle.schedule.pass_ import Pass
from pytrickle.schedule.requests import COUNTED

# Whoever changes a row, in whatever table of any database of the server, thereby changes the snapshot. Who begins to
# wait for a refresh commits nothing, but counts the sequence on.
MOMENT = f"SELECT pg_current_snapshot()::text, {COUNTED}"
LONGEST = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class Moment:
    """What has been committed, and how often somebody began to wait for a refresh."""

    snapshot: str
    calls: int


@dataclass(frozen=True, slots=True)
class Rest:
    """What a tick came to that had nothing to do, at which moment it looked, and until when that is believed."""

    moment: Moment
    results: tuple[RefreshResult, ...]
    until: float

    def lasts(self, now: Moment) -> bool:
        """Whether a tick would come to the same now."""
        return now == self.moment and monotonic() < self.until


def moment(connection: psycopg.Connection) -> Moment:
    """Look whether anything was committed."""
    with translate_errors():
        row = connection.execute(MOMENT, prepare=True).fetchone()
    return Moment(*row) if row else Moment("", 0)


def rest_after(run: Pass, moving: Iterable[StreamTable], results: tuple[RefreshResult, ...], calls: int) -> Rest | None:
    """Return the rest that may follow a pass; None unless only a commit can give any stream table something to do.

    That is so of all but the `moving` stream tables, those that did not stand still.
    """
    idle = all(result.action == "NO_DATA" for result in results)
    if not idle or not all(table.halted or _waits_for_commits(table, run) for table in moving):
        return None
    return Rest(Moment(run.seen.cut.snapshot, calls), results, monotonic() + LONGEST.total_seconds())


def _waits_for_commits(table: StreamTable, run: Pass) -> bool:
    """Whether all that a stream table reads is taken in, and no clock decides about it, as about a silent source."""
    taken_in = table.follows_its_buffers and all(each.buffer in run.seen.empty for each in table.dependencies)
    decision = table.decision
    judged = decision.gating != "none" or decision.effective != Progress()
    return taken_in and not (judged or table.timed or table.window_end or table.last_error)
