"""Verification: a stream table against its defining query at the table's own frontier."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import psycopg
from psycopg import sql

from pytrickle.apply.rewritten import check_not_rewritten
from pytrickle.catalog import change_ranges
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.catalog.server_probe import server_probe
from pytrickle.catalog.session_settings import session_statements
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import SAFE_PATH, exported_snapshot, filled, settle, translate_errors, trusted
from pytrickle.errors import ConnectionLost, InsufficientPrivilege, PytrickleError, RefreshConflict
from pytrickle.inspect.frozen_rows import recorded, with_ledger
from pytrickle.inspect.missed import what_was_missed
from pytrickle.plan.analysis import analyse
from pytrickle.plan.at_cut import path_of, query_at
from pytrickle.plan.placement import PLANNER, SEQUENTIAL
from pytrickle.plan.postgres.stored_rows import body_table
from pytrickle.plan.postgres.text import as_text
from pytrickle.plan.query.meaning import understood
from pytrickle.plan.query.open_order import open_columns
from pytrickle.plan.settled import leaves_order_open, settled_query
from pytrickle.readable import Readable, Rows
from pytrickle.refresh.values import AFTER_FAILURE

# Leaves out of closed windows what came too late for them, and those that an earlier query emitted.
COMPARABLE = """
SELECT * FROM ({query}) AS q
WHERE NOT EXISTS (
        SELECT FROM pgtrickle.pgt_late_changes AS l
        WHERE l.pgt_id OPERATOR(pg_catalog.=) {pgt_id} AND l.window_end OPERATOR(pg_catalog.=) q.{window_end}
            AND pg_catalog.to_jsonb(q) OPERATOR(pg_catalog.@>) l.change)
    AND (q.{window_end} OPERATOR(pg_catalog.<=) {earlier}) IS NOT TRUE
"""
COMPARED = "SELECT {items} FROM ({query}) AS {named}"
COUNTED = """
SELECT (SELECT count(*) FROM ({want} EXCEPT ALL {have}) AS m), (SELECT count(*) FROM ({have} EXCEPT ALL {want}) AS u)
"""
ELEMENTS = """
CASE WHEN {column} IS NOT NULL
    THEN ARRAY(SELECT pg_catalog.format('%L', e) FROM pg_catalog.unnest({column}) AS e ORDER BY 1) END
"""
CHARACTERS = """
(
    SELECT pg_catalog.string_agg(e, '' ORDER BY e COLLATE pg_catalog."C")
    FROM pg_catalog.regexp_split_to_table({text}, '') AS e
)
"""
# The hidden table of open windows in the snapshot, and the one that its name leads to now.
OPEN = """
SELECT (SELECT c.oid FROM pg_class AS c WHERE c.relnamespace = 'pgtrickle_state'::regnamespace AND c.relname = %s),
    to_regclass(%s)::oid
"""
Text = str | sql.Composed
COLLECTED = frozenset({"text", "bytea", "json", "jsonb", "xml"})


@dataclass(frozen=True, slots=True, repr=False)
class VerifyResult(Readable):
    """How a stream table compares: rows `missing` from it and `unexpected` in it, as multisets.

    It was not compared if `pending` says why it is to be computed anew, for its own frontier can no longer be read, or
    if `error` says what went wrong. Where rows are frozen, the stream table lacks `withheld` changes of them by design:
    it was compared with its query but for those, which the ledger of late changes has. With `ties` it shows other rows,
    or other values, than PostgreSQL gave just now, but those that it always chooses among rows that tie.
    """

    stream_table: str
    matches: bool
    missing: int
    unexpected: int
    pending: str | None = None
    error: str | None = None
    withheld: int = 0
    ties: bool = False


def verify_each(names: Iterable[str], verify_one: Callable[[str], VerifyResult]) -> Rows[VerifyResult]:
    """Verify stream tables one by one; where one cannot be compared, it says why, and the others still are.

    Raises InsufficientPrivilege to a role that may compare none of them.
    """
    denied: list[InsufficientPrivilege] = []

    def verified_or_why_not(name: str) -> VerifyResult:
        try:
            return verify_one(name)
        except ConnectionLost:
            raise
        except PytrickleError as error:
            if isinstance(error, InsufficientPrivilege):
                denied.append(error)
            return VerifyResult(name, False, 0, 0, error=str(error))

    results = Rows(map(verified_or_why_not, names))
    if denied and len(denied) == len(results):
        raise denied[0]
    return results


def verify(dsn: str, connection: psycopg.Connection, pgt_id: int) -> VerifyResult:
    """Compare a stream table with its defining query, read at the table's own frontier in one snapshot.

    `connection` answers the planner's questions; a table that was never loaded is compared with no rows. What
    aggregates without ORDER BY collect is compared without its order: arrays by their elements, texts and JSON by their
    characters, so that 'ab,c' passes for 'a,bc'. Where rows are frozen, what the ledger of late changes has is added.
    Where rows tie in an order, PostgreSQL may answer otherwise each time, so what differs is compared with what the
    stream table chooses of them.
    """
    with exported_snapshot(dsn) as snapshot, translate_errors():
        snapshot_connection = snapshot.connection
        table = catalog.stream_table(snapshot_connection, pgt_id)
        relids = (dependency.relid for dependency in table.dependencies)
        if pending := _pending(table) or (table.populated and what_was_missed(snapshot_connection, relids)):
            return VerifyResult(table.name, False, 0, 0, pending)
        definition = catalog.definition(snapshot_connection, pgt_id)
        frontiers = {dependency.relid: dependency.frontier for dependency in table.dependencies}
        unread = replace(table, dependencies=tuple(replace(d, frontier=None) for d in table.dependencies))
        ranges = change_ranges.ranges(snapshot_connection, unread, frontiers)
        with server_probe(connection) as probe:
            definition = understood(definition, probe)
            expected = query_at(definition, ranges, probe)
            plain = probe.hashable(tuple(type_name for _, type_name in definition.columns))
        settle(snapshot_connection, session_statements(table) + PLANNER + SEQUENTIAL + path_of(definition, expected))
        items = _comparable_values(definition, plain)
        want, have = _sides(snapshot_connection, table, definition, expected)
        missing, unexpected = _compare(snapshot_connection, want, have, items)
        ties = False
        if (missing or unexpected) and (settled := _settled(table, definition, ranges, connection)):
            settle(snapshot_connection, (f"SET LOCAL search_path = {SAFE_PATH}",))
            ties = _compare(snapshot_connection, settled, have, items) == (0, 0)
        check_not_rewritten(snapshot_connection, pgt_id, elsewhere=False)
        if table.window_end is not None:
            # What was read by its name is locked since.
            _has_open(snapshot_connection, table)
        withheld = recorded(snapshot_connection, table) if table.frozen_by is not None else 0
    if ties:
        return VerifyResult(table.name, True, 0, 0, ties=True)
    return VerifyResult(table.name, not (missing or unexpected), missing, unexpected, withheld=withheld)


def _sides(
    snapshot_connection: psycopg.Connection, table: StreamTable, definition: Definition, expected: str
) -> tuple[Text, Text]:
    """Write the rows that are wanted and those that are there, both without what is not to be compared."""
    want: Text = expected if table.populated else filled("SELECT * FROM ({query}) AS q WHERE false", query=expected)
    have: Text = filled("SELECT * FROM {table}", table=sql.Identifier(definition.schema, definition.name))
    if table.window_end is not None:
        want, have = _comparable(table, want), _comparable(table, _with_open(snapshot_connection, table, have))
    if table.frozen_by is not None:
        want, have = with_ledger(table, definition, want, False), with_ledger(table, definition, have, True)
    return want, have


def _settled(
    table: StreamTable, definition: Definition, ranges: dict[int, ChangeRange], connection: psycopg.Connection
) -> str | None:
    """Write what the stream table chooses of rows that tie; None where it has no choice, or not by itself."""
    if not table.populated or table.refresh_mode == "FULL" or table.window_end or table.frozen_by:
        return None
    with server_probe(connection) as probe:
        shape = analyse(definition, probe)
    return settled_query(shape, ranges) if leaves_order_open(shape) else None


def _pending(table: StreamTable) -> str | None:
    """Say why what a stream table shows cannot be computed again: its changes or its query of then are lost.

    After a failure they are not lost, even if it failed because its rows were not those of its last refresh.
    """
    reason = table.reinitialize_reason
    if not table.populated or reason is None:
        return None
    return None if reason.startswith(AFTER_FAILURE) or reason == table.last_error else reason


def _with_open(snapshot_connection: psycopg.Connection, table: StreamTable, stored: Text) -> Text:
    """Add the rows of open windows, which output mode append does not show yet; none before its query is computed."""
    if not _has_open(snapshot_connection, table):
        return stored
    return filled("{stored} UNION ALL SELECT * FROM {body}", stored=stored, body=body_table(table.pgt_id))


def _has_open(snapshot_connection: psycopg.Connection, table: StreamTable) -> bool:
    """Whether the snapshot shows a table of open windows; raise RefreshConflict where its name leads to no such one."""
    name = body_table(table.pgt_id)
    row = snapshot_connection.execute(OPEN, (name.partition(".")[2], name)).fetchone()
    then, now = row or (None, None)
    if then is not None and then != now:
        raise RefreshConflict(f"{table.name} was altered or computed anew while it was compared.", "Compare it again.")
    return then is not None


def _comparable(table: StreamTable, query: Text) -> sql.Composed:
    """Leave out what the stream table neither shows nor ever will."""
    return filled(
        COMPARABLE,
        query=query,
        pgt_id=sql.Literal(table.pgt_id),
        window_end=sql.Identifier(table.window_end or ""),
        earlier=sql.Literal(table.earlier_query_through),
    )


def _comparable_values(definition: Definition, plain: tuple[bool, ...]) -> tuple[sql.Composable, ...]:
    """Write the columns of a query, of which some are `plain`: their equal values are one and the same."""
    found = open_columns(definition)
    return tuple(
        _comparable_value(f"c{i}", comparable, type_name if i in found else None)
        for i, (comparable, (_, type_name)) in enumerate(zip(plain, definition.columns, strict=True))
    )


def _comparable_value(column: str, comparable: bool, open_type: str | None) -> sql.Composable:
    """Write a column so that equal values are the same, also those whose elements may come in any order."""
    if open_type is None or not (open_type in COLLECTED or open_type.endswith("[]")):
        return trusted(column if comparable else as_text(column, True))
    if open_type.endswith("[]"):
        return filled(ELEMENTS, column=column)
    return filled(CHARACTERS, text=as_text(column, True))


def _compare(
    connection: psycopg.Connection, expected: Text, stored: Text, items: tuple[sql.Composable, ...]
) -> tuple[int, int]:
    aliases = ", ".join(f"c{i}" for i in range(len(items)))
    named = f"q({aliases})" if items else "q"
    listed = sql.SQL(", ").join(items or (sql.SQL("true"),))
    want, have = (filled(COMPARED, items=listed, query=query, named=named) for query in (expected, stored))
    row = connection.execute(filled(COUNTED, want=want, have=have)).fetchone()
    return (row[0], row[1]) if row else (0, 0)
