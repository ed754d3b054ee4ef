"""Gaps in what was captured, as a snapshot shows them: who reads such a source must be computed anew first."""

import psycopg

from pytrickle.errors import PytrickleError, RefreshConflict

GAPS = """
SELECT d.pgt_id, pgtrickle_private.readable_text(min(d.source_name))
FROM pgtrickle.pgt_capture_gaps AS g JOIN pgtrickle.pgt_dependencies AS d USING (source_relid)
WHERE d.source_type <> 'UNCAPTURED'
GROUP BY d.pgt_id
"""


def ask_gaps(connection: psycopg.Connection) -> psycopg.Cursor:
    """Ask for the gaps that a snapshot shows; see `behind_gaps`."""
    return connection.execute(GAPS, prepare=True)


def behind_gaps(asked: psycopg.Cursor) -> dict[int, PytrickleError]:
    """Return why stream tables must not be refreshed in the snapshot that was asked, by their numbers.

    What came between the look at all capture and the snapshot is shown by it, but not all of it was captured.
    """
    hint = "The next tick computes the stream table anew."
    return {number: RefreshConflict(f"Changes of {source} were missed meanwhile.", hint) for number, source in asked}
