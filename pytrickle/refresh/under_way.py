"""Showing in pg_stat_activity that a stream table is being refreshed: so SQL can tell a refresh from a queue."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg

from pytrickle.database import translate_errors

# Milliseconds since 1970 by the server's clock; pgtrickle_private.refreshes_under_way() reads the name.
NAMED = """
SELECT set_config('application_name', format('pytrickle/refresh %%s %%s', %s::bigint,
    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint), false)
"""
AGAIN = "SELECT set_config('application_name', %s, false)"


@contextmanager
def under_way(connection: psycopg.Connection, pgt_id: int) -> Iterator[None]:
    """Name the session after the stream table for the length of the block, which must not be in a transaction yet."""
    before = connection.info.parameter_status("application_name") or ""
    with translate_errors():
        connection.execute(NAMED, (pgt_id,))
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            connection.execute(AGAIN, (before,))
