"""Whether the changes that lead back to an earlier moment may be incomplete, which the next tick sets right."""

from collections.abc import Iterable

import psycopg

# Where a database was restored, capture does not work before the next tick, whatever each table says.
MISSED = """
SELECT coalesce(pgtrickle_private.restored(), (
    SELECT format('changes of %%s may have been missed: %%s', t.source_name, p.problem)
    FROM pgtrickle.pgt_change_tracking AS t
        JOIN pg_class AS c ON c.oid = t.source_relid
        CROSS JOIN LATERAL pgtrickle.capture_problem(t.source_relid) AS p (problem)
    WHERE c.oid::bigint = ANY (%(relids)s) AND p.problem IS NOT NULL ORDER BY t.source_name LIMIT 1))
"""


def what_was_missed(snapshot_connection: psycopg.Connection, relids: Iterable[int]) -> str | None:
    """Return why not every change of these relations may have been captured since the last tick, or None."""
    row = snapshot_connection.execute(MISSED, {"relids": list(relids)}).fetchone()
    return row[0] if row else None
