"""The refreshes of the demo as they come: what each read, through which cut, and how long it took."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg

from pytrickle.refresh.values import RefreshResult

READ = """
SELECT (SELECT h.delta_rows FROM pgtrickle.pgt_refresh_history AS h
        WHERE h.pgt_id = t.pgt_id ORDER BY h.refresh_id DESC LIMIT 1),
    (SELECT max((d.frontier).lsn) FROM pgtrickle.pgt_dependencies AS d WHERE d.pgt_id = t.pgt_id)
FROM pgtrickle.pgt_stream_tables AS t WHERE t.pgt_relid = CAST(%s AS regclass)
"""


@dataclass(frozen=True, slots=True)
class Job:
    """One refresh: who computed it, the changed rows that it read, through which watermark and LSN, what it wrote."""

    stream_table: str
    action: str
    engine: str
    changes: int
    through: datetime | None
    lsn: str | None
    written: int
    duration: timedelta

    @property
    def report(self) -> str:
        """The name of the stream table without its schema."""
        return self.stream_table.rpartition(".")[2]

    @property
    def title(self) -> str:
        """Say what it was: a job of Spark's, or PostgreSQL's own work."""
        return f"{'Spark job' if self.engine == 'spark' else 'PostgreSQL'}, {self.action.lower()}"

    @property
    def milliseconds(self) -> int:
        """How long it took, from the snapshot to the commit."""
        return round(self.duration / timedelta(milliseconds=1))


def job_of(result: RefreshResult, connection: psycopg.Connection) -> Job:
    """Return a refresh that has just been committed, with what the catalog knows of it."""
    row = connection.execute(READ, (result.stream_table,)).fetchone()
    changes, lsn = row or (0, None)
    return Job(
        result.stream_table,
        result.action,
        result.engine or "postgres",
        changes or 0,
        result.effective_watermark,
        lsn,
        result.rows_inserted + result.rows_deleted,
        result.duration,
    )
