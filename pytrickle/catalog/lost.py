"""What a stream table lost without which it can never be refreshed again, as an error that names it."""

import psycopg

from pytrickle.errors import CatalogError, UnknownStreamTable

LOST = """
SELECT pgtrickle_private.lasting_problem(t), format('%%I.%%I', t.pgt_schema, t.pgt_name)
FROM pgtrickle.pgt_stream_tables AS t WHERE t.pgt_id = %s
"""


def lost(connection: psycopg.Connection, pgt_id: int) -> CatalogError:
    """Return the error that says what a stream table lost, or that it is gone itself."""
    row = connection.execute(LOST, (pgt_id,)).fetchone()
    if row is None:
        return UnknownStreamTable("The stream table was dropped meanwhile.")
    problem, name = row[0] or "a view that it reads was dropped", row[1]
    hint = "SELECT * FROM pgtrickle.problems() says what to do."
    return CatalogError(f"{name} cannot be refreshed any more: {problem}.", hint)
