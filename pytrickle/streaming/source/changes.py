"""The changes of a source or stream table between two versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from pytrickle.database import connect, filled, translate_errors
from pytrickle.errors import NotRetained
from pytrickle.progress import sql_type
from pytrickle.streaming.source.batches import record_batches, schema
from pytrickle.streaming.source.columns import COMMIT, Column, Relation, relation
from pytrickle.streaming.source.conditions import Condition, where

_CHANGES = """
SELECT {commit}, {columns} FROM pgtrickle.changes_of_versions(
    NULL::{relation}, {since}, {until}, {deduplication}, {updates}) AS c{where}"""
_AT = "SELECT pgtrickle_private.version_at(%s::oid::regclass, ROW(%s::timestamptz, %s::bigint)::pgtrickle.progress)"
_NEWEST = "SELECT pgtrickle_private.newest_version(%s::oid::regclass)"


@dataclass(frozen=True, slots=True)
class Between:
    """After one version and up to another; `net` is what the changes come to, `updates` are told by the key."""

    since: int
    until: int
    net: bool = False
    updates: bool = False


def read_changes(
    dsn: str, name: str, since: datetime | int, until: datetime | int | None, options: dict[str, bool]
) -> pa.Table:
    """Return the changes from what a relation was as of one watermark to what it is as of another, or of its newest.

    Raises NotRetained where they are no longer kept, NotFresh where the relation is not complete that far.
    """
    with connect(dsn, role="reader") as connection:
        found = relation(connection, name)
        first = version_at(connection, found, since)
        last = newest_version(connection, found) if until is None else version_at(connection, found, until)
        wanted = Between(first, last, **options)
        batches = list(change_batches(connection, found, wanted, found.columns))
    return pa.Table.from_batches(batches, schema((*COMMIT, *found.columns)))


def change_batches(
    connection: psycopg.Connection,
    found: Relation,
    wanted: Between,
    columns: Sequence[Column],
    conditions: Sequence[Condition] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the changes whose rows meet all conditions, in an order in which those of one row follow each other."""
    query = filled(
        _CHANGES,
        commit=sql.SQL(", ").join(column.written(sql.Identifier("c", column.name)) for column in COMMIT),
        columns=sql.SQL(", ").join(column.written(_changed(column.name)) for column in columns),
        where=where(condition.written(_changed(condition.column.name)) for condition in conditions),
        relation=found.identifier,
        since=sql.Literal(wanted.since),
        until=sql.Literal(wanted.until),
        deduplication=sql.Literal("net" if wanted.net else "none"),
        updates=sql.Literal(wanted.updates),
    )
    return record_batches(connection, query, (*COMMIT, *columns))


def _changed(name: str) -> sql.Composed:
    return sql.SQL("(c.changed).{}").format(sql.Identifier(name))


def version_at(connection: psycopg.Connection, found: Relation, watermark: datetime | int) -> int:
    """Return the version at the newest watermark that is not after this one, an event time or a batch number."""
    by_batch = sql_type(watermark) == "bigint"
    return int(_value(connection, _AT, found.relid, *((None, watermark) if by_batch else (watermark, None))))


def newest_version(connection: psycopg.Connection, found: Relation) -> int:
    """Return the newest version; raise NotRetained if there is none."""
    version = _value(connection, _NEWEST, found.relid)
    if version is None:
        hint = "Create a feed of it, and advance its watermark or refresh it."
        raise NotRetained(f"{found.name} has no version yet.", hint)
    return int(version)


def _value(connection: psycopg.Connection, query: str, *parameters: object) -> Any:
    with translate_errors():
        ((value,),) = connection.execute(query.encode(), parameters).fetchall()
    return value
