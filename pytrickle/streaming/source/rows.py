"""The rows of a relation as of a version, or at one moment that several partitions share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from pytrickle.database import filled, translate_errors
from pytrickle.streaming.source.batches import record_batches
from pytrickle.streaming.source.columns import Column, Relation
from pytrickle.streaming.source.conditions import Condition, where

_AS_OF = "SELECT {columns} FROM pgtrickle.as_of_version(NULL::{relation}, {version}, {parts}, {part}) AS r{where}"
_NOW = "SELECT {columns} FROM {relation} AS r{where}"
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_CHECK = "SELECT pgtrickle_private.check_not_rewritten(%s::oid::regclass)"


@dataclass(frozen=True, slots=True)
class Part:
    """One of several parts of a relation; `pages` are those of the part, the last of which has no end."""

    number: int
    parts: int
    version: int | None
    snapshot: str | None
    pages: tuple[int, int | None] | None


def parts(found: Relation, wanted: int, version: int | None, snapshot: str | None) -> tuple[Part, ...]:
    """Split a relation: as of a version by the text of its rows, else by their places, where they have any."""
    if version is not None:
        return tuple(Part(number, wanted, version, None, None) for number in range(wanted))
    if snapshot is None or found.pages is None or wanted == 1:
        return (Part(0, 1, None, snapshot, None),)
    each = found.pages // wanted + 1
    edges = [(number * each, (number + 1) * each) for number in range(wanted)]
    return tuple(
        Part(number, wanted, None, snapshot, (first, None if number == wanted - 1 else end))
        for number, (first, end) in enumerate(edges)
    )


def row_batches(
    connection: psycopg.Connection,
    found: Relation,
    columns: Sequence[Column],
    part: Part,
    conditions: Sequence[Condition] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part that meet all conditions.

    Raises InvalidArgument where the snapshot that the part belongs to is gone.
    """
    with translate_errors():
        connection.execute(_BEGIN)
        if part.snapshot is not None:
            connection.execute(filled("SET TRANSACTION SNAPSHOT {name}", name=sql.Literal(part.snapshot)))
    yield from record_batches(connection, _query(found, columns, part, conditions), columns)
    with translate_errors():
        # The relation is locked since it was read. What emptied it before has emptied it for this snapshot too.
        connection.execute(_CHECK, (found.relid,))
        connection.execute("COMMIT")


def _query(found: Relation, columns: Sequence[Column], part: Part, conditions: Sequence[Condition]) -> sql.Composed:
    items = sql.SQL(", ").join(column.written(sql.Identifier("r", column.name)) for column in columns)
    wanted = [condition.written(sql.Identifier("r", condition.column.name)) for condition in conditions]
    if part.version is None:
        return filled(_NOW, columns=items, relation=found.identifier, where=where([*_places(part), *wanted]))
    return filled(
        _AS_OF,
        columns=items,
        relation=found.identifier,
        version=sql.Literal(part.version),
        parts=sql.Literal(part.parts),
        part=sql.Literal(part.number),
        where=where(wanted),
    )


def _places(part: Part) -> Iterator[sql.Composable]:
    if part.pages is not None:
        first, end = part.pages
        yield filled("r.ctid >= {first}::tid", first=sql.Literal(f"({first},0)"))
        if end is not None:
            yield filled("r.ctid < {end}::tid", end=sql.Literal(f"({end},0)"))
