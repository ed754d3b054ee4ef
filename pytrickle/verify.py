"""Verification: a stream table against its defining query at the table's own frontier."""

from dataclasses import dataclass, replace

import psycopg

from pytrickle.apply.top import body_table
from pytrickle.catalog import refresh as catalog
from pytrickle.catalog.probe import server_probe
from pytrickle.catalog.refresh import StreamTable
from pytrickle.catalog.session import session_statements
from pytrickle.db import exported_snapshot, translate_errors
from pytrickle.plan.carrier import as_text
from pytrickle.plan.dialect import quote
from pytrickle.plan.full import query_at
from pytrickle.plan.placement import PLANNER, SEQUENTIAL


@dataclass(frozen=True, slots=True)
class VerifyResult:
    """How a stream table compares: rows `missing` from it and `unexpected` in it, as multisets."""

    stream_table: str
    matches: bool
    missing: int
    unexpected: int


def verify(dsn: str, connection: psycopg.Connection, pgt_id: int) -> VerifyResult:
    """Compare a stream table with its defining query, read at the table's own frontier in one snapshot.

    `connection` answers the planner's questions; a table that was never loaded is compared with no rows.
    """
    with exported_snapshot(dsn) as snapshot, translate_errors():
        reading = snapshot.connection
        table = catalog.stream_table(reading, pgt_id)
        definition = catalog.definition(reading, pgt_id)
        frontiers = {dependency.relid: dependency.frontier for dependency in table.dependencies}
        unread = replace(table, dependencies=tuple(replace(d, frontier=None) for d in table.dependencies))
        windows = catalog.windows(reading, unread, frontiers)
        with server_probe(connection) as probe:
            expected = query_at(definition, windows, probe)
            plain = probe.hashable(tuple(type_name for _, type_name in definition.columns))
        for statement in session_statements(table) + PLANNER + SEQUENTIAL:
            reading.execute(statement.encode())
        if not table.populated:
            expected = f"SELECT * FROM ({expected}) AS q WHERE false"
        stored = f"SELECT * FROM {quote(definition.schema)}.{quote(definition.name)}"
        if table.window_end is not None:
            expected, stored = (_without_late(query, table) for query in (expected, _with_open(table, stored)))
        missing, unexpected = _compare(reading, expected, stored, plain)
    return VerifyResult(table.name, not (missing or unexpected), missing, unexpected)


def _with_open(table: StreamTable, stored: str) -> str:
    """Add the rows of open windows, which output mode append does not show yet."""
    return f"{stored} UNION ALL SELECT * FROM {body_table(table.pgt_id)}" if table.populated else stored


def _without_late(query: str, table: StreamTable) -> str:
    """Leave out the closed windows that something came too late for: it was not applied."""
    late = f"SELECT FROM pgtrickle.pgt_late_changes AS l WHERE l.pgt_id = {table.pgt_id} AND l.window_end = q.{{}}"
    return f"SELECT * FROM ({query}) AS q WHERE NOT EXISTS ({late.format(quote(table.window_end or ''))})"


def _compare(connection: psycopg.Connection, expected: str, stored: str, plain: tuple[bool, ...]) -> tuple[int, int]:
    aliases = ", ".join(f"c{i}" for i in range(len(plain)))
    items = ", ".join(f"c{i}" if comparable else as_text(f"c{i}", True) for i, comparable in enumerate(plain))
    want, have = (f"SELECT {items} FROM ({query}) AS q({aliases})" for query in (expected, stored))
    query = (
        f"SELECT (SELECT count(*) FROM ({want} EXCEPT ALL {have}) AS m), "
        f"(SELECT count(*) FROM ({have} EXCEPT ALL {want}) AS u)"
    )
    row = connection.execute(query.encode()).fetchone()
    return (row[0], row[1]) if row else (0, 0)
