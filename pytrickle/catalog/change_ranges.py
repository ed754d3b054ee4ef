"""How many changes are buffered: between two frontiers of a source, or any at all."""

from collections.abc import Iterable, Mapping

import psycopg
from psycopg import sql

from pytrickle.catalog.definition import Came, ChangeRange
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.cut import Cut
from pytrickle.database import PATIENCE, filled, pipelined, trusted

# Commits have times only where track_commit_timestamp is on, and those of transactions since it is.
COMMITTED = """CASE WHEN (SELECT current_setting('track_commit_timestamp') = 'on')
    THEN pg_xact_commit_timestamp(pgt_xid::xid) END"""
COUNTED = """
SELECT CAST({relid} AS bigint), count(*) FILTER (WHERE {between}), count(*) FILTER (WHERE {later}),
    pg_relation_size({name}::regclass) / current_setting('block_size')::integer,
    min(coalesce({committed}, pgt_at)) FILTER (WHERE {between}),
    max(coalesce({committed}, pgt_at)) FILTER (WHERE {between}), bool_and({committed} IS NOT NULL)
FROM {buffer} WHERE {where}
"""
EMPTY = "SELECT {number} WHERE NOT EXISTS (SELECT FROM {buffer})"
# A plan over thousands of buffers would take longer to make than one over few of them, and be void when one changes.
AT_ONCE = 200
UNREADABLE = (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable)
READABLE = "SELECT b FROM unnest(%s::text[]) AS b WHERE has_table_privilege(to_regclass(b)::oid, 'SELECT') ORDER BY b"


def ranges(
    connection: psycopg.Connection, table: StreamTable, targets: Mapping[int, Cut | None]
) -> dict[int, ChangeRange]:
    """Count, for every source, the buffered changes between its frontier and its target, and beyond the target."""
    uncounted = uncounted_ranges(table, targets)
    return counted(uncounted, ask_counts(connection, table, uncounted))


def uncounted_ranges(table: StreamTable, targets: Mapping[int, Cut | None]) -> dict[int, ChangeRange]:
    """Return for every source its frontier and its target."""
    return {d.relid: ChangeRange(d.relid, d.frontier, targets.get(d.relid)) for d in table.dependencies}


def ask_counts(
    connection: psycopg.Connection, table: StreamTable, uncounted: Mapping[int, ChangeRange]
) -> psycopg.Cursor | None:
    """Ask for the number of changes in each range; None where nothing is captured. See `counted`."""
    asked = [(d.buffer, uncounted[d.relid]) for d in table.dependencies if d.buffer]
    if not asked:
        return None
    given: dict[str, str | None] = {}
    for _, change_range in asked:
        given |= change_range.given()
    return connection.execute(sql.SQL(" UNION ALL ").join(_count(*each) for each in asked), given)


def counted(uncounted: Mapping[int, ChangeRange], asked: psycopg.Cursor | None) -> dict[int, ChangeRange]:
    """Return the ranges with the numbers that were asked for."""
    result = dict(uncounted)
    for relid, delta, future, pages, oldest, newest, by_commit in asked or ():
        change_range = result[relid]
        came = Came(oldest, newest, by_commit) if oldest else None
        result[relid] = ChangeRange(relid, change_range.old, change_range.new, delta, future, pages, came)
    return result


def empty_buffers(connection: psycopg.Connection, tables: Iterable[StreamTable]) -> frozenset[str]:
    """Return the change buffers among the sources of stream tables that hold no change at all, as far as it may see."""
    named = sorted({d.buffer for table in tables for d in table.dependencies if d.buffer})
    try:
        return _empty_ones(connection, named)
    except (*UNREADABLE, psycopg.errors.LockNotAvailable):
        buffers = [buffer for (buffer,) in connection.execute(READABLE, (named,))]
        found = (_empty_unless_locked(connection, buffer) for buffer in buffers)
        return frozenset().union(*found)


def _empty_ones(connection: psycopg.Connection, buffers: list[str]) -> frozenset[str]:
    checks = [EMPTY.format(number=i, buffer=buffer) for i, buffer in enumerate(buffers)]
    texts = [" UNION ALL ".join(checks[first : first + AT_ONCE]) for first in range(0, len(checks), AT_ONCE)]
    if not texts:
        return frozenset()
    # A savepoint keeps the shared snapshot usable.
    with pipelined(connection), connection.transaction():
        connection.execute("SET LOCAL lock_timeout = '10ms'")
        asked = [connection.execute(trusted(text)) for text in texts]
        connection.execute(filled("SET LOCAL lock_timeout = {patience}", patience=sql.Literal(PATIENCE)))
        return frozenset(buffers[i] for cursor in asked for (i,) in cursor)


def _empty_unless_locked(connection: psycopg.Connection, buffer: str) -> frozenset[str]:
    """Return a buffer if it is empty, and none while an open transaction extends or drops it: nobody can tell then."""
    try:
        return _empty_ones(connection, [buffer])
    except psycopg.errors.LockNotAvailable:
        return frozenset()


def _count(buffer: str, change_range: ChangeRange) -> sql.Composed:
    old, new = change_range.given_old if change_range.old else None, change_range.given_new
    past = old.beyond() if old else None
    later = f"NOT {new.covered()}" if change_range.new else "false"
    where = past or (new.beyond() if change_range.new else "false")
    parts = {"between": f"NOT ({later})" if past else "false", "later": later, "where": where, "committed": COMMITTED}
    name, relid = sql.Literal(buffer), sql.Literal(change_range.relid)
    return filled(COUNTED, relid=relid, name=name, buffer=buffer, **parts)
