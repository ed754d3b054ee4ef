"""How a stream table with frozen rows is compared: it lacks what the ledger has of it, and nothing else."""

import psycopg
from psycopg import sql

from pytrickle.catalog.definition import Definition
from pytrickle.catalog.stream_table import StreamTable
from pytrickle.database import filled

# What an earlier query had frozen is not what the query of today would answer.
COMPARED = """
SELECT * FROM ({query}) AS q WHERE (q.{event_time} OPERATOR(pg_catalog.<) {earlier}) IS NOT TRUE
UNION ALL
SELECT {items} FROM pgtrickle.pgt_late_changes AS l
    CROSS JOIN LATERAL pg_catalog.jsonb_populate_record(NULL::{table}, l.change) AS p
    CROSS JOIN pg_catalog.generate_series(1, {copies})
WHERE l.pgt_id OPERATOR(pg_catalog.=) {pgt_id}
    AND (l.window_end OPERATOR(pg_catalog.<) {earlier}) IS NOT TRUE
"""
COPIES = "l.weight OPERATOR(pg_catalog.*) {sign}"
# A JSON text would be read as a JSON value as it stands.
PARSED = "CAST(l.change OPERATOR(pg_catalog.->>) {name} AS {type_name})"
JSON = frozenset({"json", "jsonb"})
RECORDED = """
SELECT count(*) FROM pgtrickle.pgt_late_changes AS l
WHERE l.pgt_id OPERATOR(pg_catalog.=) %s AND (l.window_end OPERATOR(pg_catalog.<) %s) IS NOT TRUE
"""


def with_ledger(
    table: StreamTable, definition: Definition, query: sql.SQL | sql.Composed | str, came: bool
) -> sql.Composed:
    """Add to rows what the ledger has: the rows that `came` to frozen ones, or those that went.

    The rows of the stream table and those that came are the rows of its query and those that went.
    """
    return filled(
        COMPARED,
        query=query,
        event_time=sql.Identifier(table.frozen_by or ""),
        earlier=filled("CAST({at} AS pg_catalog.timestamptz)", at=sql.Literal(table.earlier_query_through)),
        items=sql.SQL(", ").join(_item(name, type_name) for name, type_name in definition.columns),
        table=sql.Identifier(definition.schema, definition.name),
        copies=filled(COPIES, sign=sql.Literal(1 if came else -1)),
        pgt_id=sql.Literal(table.pgt_id),
    )


def recorded(connection: psycopg.Connection, table: StreamTable) -> int:
    """Count what the ledger has for the rows that are compared."""
    row = connection.execute(RECORDED, (table.pgt_id, table.earlier_query_through)).fetchone()
    return int(row[0]) if row else 0


def _item(name: str, type_name: str) -> sql.Composed:
    if type_name in JSON:
        return filled(PARSED, name=sql.Literal(name), type_name=f"pg_catalog.{type_name}")
    return filled("p.{name}", name=sql.Identifier(name))
