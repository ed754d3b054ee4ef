"""The rows of a relation as of a version, or at one moment that several partitions share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from pytrickle.database import filled, translate_errors
from pytrickle.errors import NotRetained
from pytrickle.streaming.source.batches import record_batches
from pytrickle.streaming.source.columns import Column, Relation
from pytrickle.streaming.source.conditions import Condition, where
from pytrickle.streaming.source.holder import Held

_AS_OF = "SELECT {columns} FROM pgtrickle.as_of_version(NULL::{relation}, {version}, {parts}, {part}) AS r{where}"
_NOW = "SELECT {columns} FROM {relation} AS r{where}"
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# What PostgreSQL says of a snapshot that ended, before version 16, since then, and while it ends.
_GONE = (
    psycopg.errors.InvalidParameterValue,
    psycopg.errors.UndefinedObject,
    psycopg.errors.ObjectNotInPrerequisiteState,
)
_CHECK = "SELECT pgtrickle_private.check_not_rewritten(%s::oid::regclass)"

PAGES_OF_A_PART = 4096
"""How large a part is at least where nobody says how many to read: below that a task is not worth its start."""
MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class Part:
    """One of several parts of a relation; `pages` are those of the part, the last of which has no end.

    `held` is the snapshot that is held for the parts, where it is ours to hold.
    """

    number: int
    parts: int
    version: int | None = None
    snapshot: str | None = None
    held: Held | None = None
    pages: tuple[int, int | None] | None = None


def parts_of_version(wanted: int | None, version: int) -> tuple[Part, ...]:
    """Split a relation as of a version by the text of its rows; without a number wanted, into one part."""
    return tuple(Part(number, wanted or 1, version) for number in range(wanted or 1))


def number_of_parts(found: Relation, wanted: int | None) -> int:
    """Return how many parts a relation is read in now: as many as wanted, else by its size; one without places."""
    if found.pages is None:
        return 1
    return wanted or max(1, min(MOST_PARTS, found.pages // PAGES_OF_A_PART))


def parts_of_snapshot(found: Relation, number: int, snapshot: str | None, held: Held | None) -> tuple[Part, ...]:
    """Split a relation in a snapshot by the places of its rows."""
    if number == 1:
        return (Part(0, 1, snapshot=snapshot),)
    each = (found.pages or 0) // number + 1
    ends = [*((place + 1) * each for place in range(number - 1)), None]
    return tuple(Part(n, number, None, snapshot, held, (n * each, end)) for n, end in enumerate(ends))


def row_batches(
    connection: psycopg.Connection,
    found: Relation,
    columns: Sequence[Column],
    part: Part,
    conditions: Sequence[Condition] = (),
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part that meet all conditions.

    Raises NotRetained where the snapshot that was held for the part is gone.
    """
    if part.held:
        part.held.begun(connection, part.number)
    with translate_errors():
        connection.execute(_BEGIN)
        _join(connection, part)
    yield from record_batches(connection, _query(found, columns, part, conditions), columns)
    with translate_errors():
        # The relation is locked since it was read. What emptied it before has emptied it for this snapshot too.
        connection.execute(_CHECK, (found.relid,))
        connection.execute("COMMIT")
    if part.held:
        part.held.read(connection, part.number)


def _join(connection: psycopg.Connection, part: Part) -> None:
    snapshot = part.held.snapshot if part.held else part.snapshot
    if snapshot is None:
        return
    try:
        connection.execute(filled("SET TRANSACTION SNAPSHOT {name}", name=sql.Literal(snapshot)))
    except _GONE:
        if part.held is None:
            raise
        hint = "Load the table again; with the option partitions set to 1 it is read whenever it is asked for."
        raise NotRetained("The snapshot that this read was planned in is no longer held.", hint) from None


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
