"""The planner's statistics of the hidden tables that refreshes keep, renewed where they are of another size by now."""

import psycopg

from pytrickle.database import filled

# What has fewer pages is read as fast without statistics.
SMALL = 16
# A table that grows little by little is left to autovacuum, which lags behind one that is filled or grows at once.
OUTGROWN = """
SELECT c.oid::regclass::text
FROM pgtrickle_private.kept_beside(%(pgt_id)s) AS beside JOIN pg_class AS c ON c.oid = beside
    CROSS JOIN LATERAL (SELECT pg_relation_size(c.oid) / current_setting('block_size')::integer) AS now (pages)
WHERE greatest(pages, c.relpages) >= %(small)s
    AND (c.reltuples < 0 OR greatest(pages, c.relpages) >= 2 * least(pages, c.relpages))
"""


def renew_kept(connection: psycopg.Connection, pgt_id: int) -> None:
    """Analyze the aggregate state and the body of a stream table if they have doubled or halved since that was done.

    PostgreSQL otherwise takes a state that has just been filled for a table of a few pages.
    """
    found = connection.execute(OUTGROWN, {"pgt_id": pgt_id, "small": SMALL}, prepare=True).fetchall()
    for (name,) in found:
        connection.execute(filled("ANALYZE (SKIP_LOCKED) {name}", name=name))
