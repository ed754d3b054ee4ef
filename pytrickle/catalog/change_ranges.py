"""How many changes are buffered: between two frontiers of a source, or any at all."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import psycopg
from psycopg import sql

from pytrickle.catalog.definition import MOST_NETTED, Came, ChangeRange, Definition
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.cut import Cut
from pytrickle.database import PATIENCE, filled, may_time_commits, pipelined, settle, trusted
from pytrickle.errors import RefreshConflict

# A change buffer may be dropped and made anew, or rewritten, by somebody who held its lock when it was to be read. Of
# what it holds now an older snapshot shows nothing. Nor does that show the row in pg_class that goes with it now.
PRESENT = "EXISTS (SELECT FROM pg_class WHERE oid = {name}::regclass AND relfilenode = pg_relation_filenode(oid))"
REWRITTEN = "The change buffer of a source was made anew, or rewritten, meanwhile."
# Commits have times only where track_commit_timestamp is on, and those of transactions since it is.
COMMITTED = """CASE WHEN (SELECT current_setting('track_commit_timestamp') = 'on')
    THEN pg_xact_commit_timestamp(pgt_xid::xid) END"""
# What PostgreSQL evaluates for each change: a large refresh waits for it.
COUNTED = """
SELECT CAST({relid} AS bigint), count(*) {delta}, {future},
    pg_relation_size({name}::regclass) / current_setting('block_size')::integer,
    min({came}) {delta}, max({came}) {delta}, {by_commit}, {idle}, {present}
FROM (SELECT {between} AS pgt_b, {committed} AS pgt_c, pgt_at FROM {buffer} WHERE {where}) AS pgt_waiting
"""
TIMED = {"came": "coalesce(pgt_c, pgt_at)", "by_commit": "bool_and(pgt_c IS NOT NULL)", "committed": COMMITTED}
UNTIMED = {"came": "pgt_at", "by_commit": "false", "committed": "NULL"}
DELTA, BEYOND = "FILTER (WHERE pgt_b)", "count(*) FILTER (WHERE NOT pgt_b)"
# A CASE evaluates the query within it only where it comes to that. A column may have been renamed since its name was
# read: without the name of the buffer before it, the name could then mean something of the query around this one.
IDLE = """CASE WHEN count(*) FILTER (WHERE pgt_b) BETWEEN 1 AND {most} THEN NOT EXISTS (
    SELECT FROM {buffer} AS pgt_read WHERE {where} AND {between}
    GROUP BY CAST(ROW({columns}) AS text) HAVING sum(pgt_weight) <> 0
) END"""
# So the text of a row has all of every value, whatever the defaults of the role are.
LOSSLESS = """SELECT set_config('extra_float_digits', '1', true), set_config('bytea_output', 'hex', true),
    set_config('DateStyle', 'ISO', true), set_config('IntervalStyle', 'postgres', true)"""
EMPTY = "SELECT {number} WHERE NOT EXISTS (SELECT FROM {buffer}) AND {present}"
# A plan over thousands of buffers would take longer to make than one over few of them, and be void when one changes.
AT_ONCE = 200
# The texts that count changes, of so many stream tables: writing one takes longer than sending it.
KEPT_TEXTS = 1_000
# A change buffer, its source, whether there is an old and a new cut, and the columns that are read of it.
Asked = tuple[str, int, bool, bool, tuple[str, ...] | None]
UNREADABLE = (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable)
READABLE = "SELECT b FROM unnest(%s::text[]) AS b WHERE has_table_privilege(to_regclass(b)::oid, 'SELECT') ORDER BY b"


def ranges(
    connection: psycopg.Connection,
    table: StreamTable,
    targets: Mapping[int, Cut | None],
    definition: Definition | None = None,
) -> dict[int, ChangeRange]:
    """Count, for every source, the buffered changes between its frontier and its target, and beyond the target.

    See also which of them come to nothing for a reader with this definition; settings for that stay in the transaction.
    """
    uncounted, read = uncounted_ranges(table, targets), partly_read(definition)
    with pipelined(connection):
        if read:
            connection.execute(LOSSLESS)
        asked = ask_counts(connection, table, uncounted, read)
    return counted(uncounted, asked, read)


def partly_read(definition: Definition | None) -> dict[int, tuple[str, ...]]:
    """Return the columns that a definition reads of sources of which it does not read all.

    Nothing is returned where it reads a single source, with which changes that cancel each other are not joined.
    """
    sources = definition.sources if definition else ()
    return {s.relid: s.used for s in sources if len(sources) > 1 and s.captured and len(s.used) < len(s.columns)}


def uncounted_ranges(table: StreamTable, targets: Mapping[int, Cut | None]) -> dict[int, ChangeRange]:
    """Return for every source its frontier and its target."""
    return {d.relid: ChangeRange(d.relid, d.frontier, targets.get(d.relid)) for d in table.dependencies}


def ask_counts(
    connection: psycopg.Connection,
    table: StreamTable,
    uncounted: Mapping[int, ChangeRange],
    read: Mapping[int, tuple[str, ...]],
) -> psycopg.Cursor | None:
    """Ask for the number of changes in each range; None where nothing is captured. See `counted`.

    Of few changes also ask whether they cancel each other in the columns that are `read`, by the text of their rows, as
    the session's settings make it.
    """
    asked = [(d.buffer, uncounted[d.relid]) for d in table.dependencies if d.buffer]
    if not asked:
        return None
    given: dict[str, str | None] = {}
    for _, each in asked:
        given |= each.given()
    parts = tuple((b, each.relid, bool(each.old), bool(each.new), read.get(each.relid)) for b, each in asked)
    text = _counts(parts, may_time_commits(connection))
    return connection.execute(trusted(text), given, prepare=True)


def counted(
    uncounted: Mapping[int, ChangeRange], asked: psycopg.Cursor | None, read: Mapping[int, tuple[str, ...]]
) -> dict[int, ChangeRange]:
    """Return the ranges with the numbers that were asked for, of sources of which these columns are read.

    Raise RefreshConflict where a change buffer was made anew, or rewritten, since the snapshot.
    """
    result = dict(uncounted)
    for relid, delta, future, pages, oldest, newest, by_commit, idle, present in asked or ():
        if not present:
            raise RefreshConflict(REWRITTEN, "Nothing needs to be done.")
        change_range, came = result[relid], Came(oldest, newest, by_commit) if oldest else None
        idle_in = read[relid] if idle else None
        result[relid] = ChangeRange(relid, change_range.old, change_range.new, delta, future, pages, came, idle_in)
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
    named = [(buffer, PRESENT.format(name=sql.Literal(buffer).as_string())) for buffer in buffers]
    checks = [EMPTY.format(number=i, buffer=buffer, present=present) for i, (buffer, present) in enumerate(named)]
    texts = [" UNION ALL ".join(checks[first : first + AT_ONCE]) for first in range(0, len(checks), AT_ONCE)]
    if not texts:
        return frozenset()
    try:
        with pipelined(connection):
            # A savepoint keeps the shared snapshot usable. A transaction block of the client would wait three times.
            connection.execute("SAVEPOINT pgt_empty")
            connection.execute("SET LOCAL lock_timeout = '10ms'")
            asked = [connection.execute(trusted(text), prepare=True) for text in texts]
            connection.execute(filled("SET LOCAL lock_timeout = {patience}", patience=sql.Literal(PATIENCE)))
            connection.execute("RELEASE SAVEPOINT pgt_empty")
    except psycopg.Error:
        settle(connection, ("ROLLBACK TO SAVEPOINT pgt_empty", "RELEASE SAVEPOINT pgt_empty"))
        raise
    return frozenset(buffers[i] for cursor in asked for (i,) in cursor)


def _empty_unless_locked(connection: psycopg.Connection, buffer: str) -> frozenset[str]:
    """Return a buffer if it is empty, and none where an open transaction extends or drops it, or has just done so."""
    try:
        return _empty_ones(connection, [buffer])
    except (*UNREADABLE, psycopg.errors.LockNotAvailable):
        return frozenset()


@lru_cache(KEPT_TEXTS)
def _counts(asked: tuple[Asked, ...], timed: bool) -> str:
    return " UNION ALL ".join(_count(each, timed).as_string() for each in asked)


def _count(asked: Asked, timed: bool) -> sql.Composed:
    buffer, relid, has_old, has_new, read = asked
    cuts = ChangeRange(relid, None, None)
    past = cuts.given_old.beyond() if has_old else None
    where = past or (cuts.given_new.beyond() if has_new else "false")
    between = "false" if past is None else cuts.given_new.covered() if has_new else "true"
    parts = {"between": between, "where": where}
    parted = {"delta": "", "future": "0"} if between == "true" else {"delta": DELTA, "future": BEYOND}
    clock = TIMED if timed else UNTIMED
    idle = "NULL::boolean" if past is None or read is None else _idle(buffer, parts, read)
    name = sql.Literal(buffer)
    literals = {"relid": sql.Literal(relid), "name": name, "present": filled(PRESENT, name=name)}
    return filled(COUNTED, **literals, buffer=buffer, idle=idle, **clock, **parted, **parts)


def _idle(buffer: str, parts: Mapping[str, str], read: tuple[str, ...]) -> str:
    # A percent sign would begin a parameter.
    columns = ", ".join('pgt_read."' + name.replace('"', '""').replace("%", "%%") + '"' for name in read)
    return IDLE.format(buffer=buffer, most=MOST_NETTED, columns=columns, **parts)
