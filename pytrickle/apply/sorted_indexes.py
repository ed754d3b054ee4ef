"""The indexes that sort whole values: left out where a value is too long for one, as a numeric of 6,000 digits is.

That of a key is for readers, that below a LIMIT saves a sort, and that of kept groups serves joins: no refresh needs
any of them.
"""

from collections.abc import Iterable
from contextlib import suppress

import psycopg

from pytrickle.apply.statements import run
from pytrickle.database import filled, trusted

# The index by which refreshes find rows is one of a hash, an expression, and has room for rows of any size.
OURS = """
SELECT c.oid::regclass::text FROM pgtrickle.pgt_stream_tables AS t
    JOIN pg_index AS i ON i.indrelid = t.pgt_relid OR i.indrelid IN (SELECT pgtrickle_private.kept_beside(t.pgt_id))
    JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE t.pgt_id = ANY (%(tables)s::bigint[]) AND i.indexprs IS NULL
    AND (i.indrelid <> t.pgt_relid OR c.relname = format('pgt_key_%%s', t.pgt_id))
    AND c.relname = coalesce(%(named)s, c.relname)
"""
DROP = "DROP INDEX {index}"


def create_sorted(connection: psycopg.Connection, index: str) -> None:
    """Create an index within a transaction, unless a row is too long for it."""
    with suppress(psycopg.errors.ProgramLimitExceeded), connection.transaction():
        run(connection, index)


def drop_too_short(connection: psycopg.Connection, error: BaseException | None, tables: Iterable[int]) -> bool:
    """Drop those indexes of some stream tables for which a row is too long, if that is what the error says.

    Return whether any was dropped. PostgreSQL does not name the index where a row is longer than a page.
    """
    if not isinstance(error, psycopg.errors.ProgramLimitExceeded):
        return False
    given = {"tables": list(tables), "named": error.diag.constraint_name}
    indexes = [index for (index,) in connection.execute(trusted(OURS), given)]
    with connection.transaction():
        for index in indexes:
            run(connection, filled(DROP, index=index))
    return bool(indexes)
