"""What the span of a refresh tells, by OpenTelemetry's conventions for databases: no SQL, no values of rows."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

import psycopg

from pytrickle.catalog.stream_table import StreamTable
from pytrickle.refresh.member import Done
from pytrickle.tracing import Attributes, Note, span

SYSTEM = "db.system.name"


def refresh_span(connection: psycopg.Connection, tables: Sequence[StreamTable]) -> AbstractContextManager[Note]:
    """Hold the span in which a unit is refreshed."""
    name = f"refresh {tables[0].name}" if len(tables) == 1 else "refresh together"
    return span(name, lambda: _target(connection, tables))


def outcome(done: Iterable[Done]) -> Attributes:
    """Tell what was done: for a unit, of all its stream tables together."""
    results = [result for result, _ in done]
    engines = tuple(sorted({result.engine for result in results if result.engine}))
    return {
        "pytrickle.action": tuple(sorted({result.action for result in results})),
        "pytrickle.engine": engines,
        "pytrickle.rows_inserted": sum(result.rows_inserted for result in results),
        "pytrickle.rows_deleted": sum(result.rows_deleted for result in results),
    }


def _target(connection: psycopg.Connection, tables: Sequence[StreamTable]) -> Attributes:
    info = connection.info
    one = {"db.collection.name": tables[0].name} if len(tables) == 1 else {}
    return {
        SYSTEM: "postgresql",
        "db.namespace": info.dbname,
        "db.operation.name": "refresh",
        "server.address": info.host or "localhost",
        "server.port": info.port,
        "pytrickle.stream_tables": tuple(table.name for table in tables),
        **one,
    }
