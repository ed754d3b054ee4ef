"""Sources that were truncated, rewritten or renamed while they were read, so that what was read is not theirs."""

import psycopg

from pytrickle.errors import RefreshConflict

REWRITTEN = "SELECT pgtrickle_private.rewritten_source(%(pgt_id)s, %(elsewhere)s)"


def check_not_rewritten(connection: psycopg.Connection, pgt_id: int, elsewhere: bool) -> None:
    """Raise RefreshConflict where a source was rewritten, or lost its name, since the snapshot of a connection.

    `elsewhere` says whether others, such as Spark's executors, have read in that snapshot.
    """
    row = connection.execute(REWRITTEN, {"pgt_id": pgt_id, "elsewhere": elsewhere}, prepare=True).fetchone()
    refuse_rewritten(row[0] if row else None)


def refuse_rewritten(source: str | None) -> None:
    """Raise RefreshConflict if a source is named."""
    if source is not None:
        raise RefreshConflict(
            f"{source} was truncated, rewritten, renamed or partitioned otherwise while it was read,"
            " so that its rows are not of one moment.",
            "The next tick reads it again by itself; what you asked for yourself you can ask for again.",
        )
