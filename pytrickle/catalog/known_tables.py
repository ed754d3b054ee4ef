"""Stream tables as the last tick read them: of those whose rows in the catalog are the same nothing is read again."""

from dataclasses import dataclass, field
from datetime import timedelta

import psycopg

from pytrickle.catalog.stream_table import StreamTable, stream_tables

# Rows carry the transaction that wrote them. NULL stands for what may differ although no row does: the clock decides
# about a schedule, a tier and a pause after a failure, and watermarks about what is made of a source that they concern.
ALTERED = """
WITH drain AS MATERIALIZED (
    SELECT coalesce(max(concat(d.xmin)), '') AS stamp FROM pgtrickle.pgt_drain AS d
), dependencies AS MATERIALIZED (
    SELECT d.pgt_id, sum(hashtextextended(concat_ws(' ', d.source_relid::oid, d.xmin, t.buffer), 0)) AS stamp
    FROM pgtrickle.pgt_dependencies AS d LEFT JOIN pgtrickle.pgt_change_tracking AS t USING (source_relid)
    GROUP BY d.pgt_id
), now AS MATERIALIZED (
    SELECT s.pgt_id, CASE WHEN j.pgt_id IS NULL AND s.schedule = 'calculated' AND s.tier = 'hot'
            AND s.retry_at IS NULL
        THEN concat(s.xmin, '/', c.xmin, '/', n.xmin, '/', d.stamp, '/', drain.stamp) END AS stamp
    FROM pgtrickle.pgt_stream_tables AS s CROSS JOIN drain
        LEFT JOIN (pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace) ON c.oid = s.pgt_relid
        LEFT JOIN dependencies AS d USING (pgt_id)
        LEFT JOIN unnest(pgtrickle_private.judged_tables()) AS j (pgt_id) USING (pgt_id)
)
SELECT pgt_id, now.stamp, now.pgt_id IS NULL
FROM now FULL JOIN unnest(%(numbers)s::text::bigint[], %(stamps)s::text::text[]) AS known (pgt_id, stamp) USING (pgt_id)
WHERE now.stamp IS NULL OR known.stamp IS DISTINCT FROM now.stamp
"""


@dataclass(slots=True)
class KnownTables:
    """The stream tables that one connection's refresher knows, each with a stamp of its rows in the catalog.

    `given` has numbers and stamps as the texts of arrays, which are written only when one of them changes.

    Another connection may lead to a server that was set back, which would count its transactions anew.
    """

    of: psycopg.Connection | None = None
    stamps: dict[int, str | None] = field(default_factory=dict)
    given: dict[str, str] = field(default_factory=dict)
    tables: tuple[StreamTable, ...] = ()

    def read(
        self,
        of: psycopg.Connection,
        connection: psycopg.Connection,
        poll_interval: timedelta,
        statement_timeout: timedelta | None,
    ) -> tuple[StreamTable, ...]:
        """Return all stream tables as `stream_tables` does by a `connection`, for the refresher on the connection `of`.

        The tuple is the same one where nothing was altered.
        """
        if of is not self.of:
            self.of, self.tables = of, ()
            self._keep({})
        altered = connection.execute(ALTERED, self.given, prepare=True).fetchall()
        if altered:
            stamps = {pgt_id: stamp for pgt_id, stamp, gone in altered if not gone}
            found = stream_tables(connection, list(stamps), poll_interval, statement_timeout) if stamps else ()
            tables = {table.pgt_id: table for table in (*self.tables, *found)}
            left = tables.keys() - {pgt_id for pgt_id, _, gone in altered if gone}
            self.tables = tuple(tables[pgt_id] for pgt_id in sorted(left))
            self._keep({pgt_id: stamp for pgt_id, stamp in (self.stamps | stamps).items() if pgt_id in left})
        return self.tables

    def _keep(self, stamps: dict[int, str | None]) -> None:
        self.stamps = stamps
        # A stamp has digits, slashes and signs alone, so nothing in it needs to be quoted.
        stamp_texts = ("NULL" if stamp is None else stamp for stamp in stamps.values())
        self.given = {"numbers": f"{{{','.join(map(str, stamps))}}}", "stamps": f"{{{','.join(stamp_texts)}}}"}
