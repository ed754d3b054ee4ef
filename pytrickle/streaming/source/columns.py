"""The columns of a relation: how PostgreSQL writes them, and what Arrow makes of that without loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
import pyarrow as pa
from psycopg import sql

from pytrickle.database import USERS_PATH, translate_errors
from pytrickle.errors import InvalidArgument, QueryRefused

_NAMED = "SELECT pg_catalog.to_regclass(%s)::pg_catalog.oid::pg_catalog.int8"
_RELATION = """
SELECT c.oid::bigint, n.nspname, c.relname,
    CASE WHEN c.relkind = 'r' AND NOT c.relhassubclass THEN pg_relation_size(c.oid) / 8192 END
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = %s AND c.relkind IN ('r', 'p')
"""
_COLUMNS = """
SELECT a.attname, CASE WHEN b.typnamespace = 'pg_catalog'::regnamespace THEN b.typname END,
    CASE t.typtype WHEN 'd' THEN t.typtypmod ELSE a.atttypmod END,
    pg_catalog.current_setting('server_encoding') = 'UTF8'
        AND COALESCE((SELECT c.collisdeterministic FROM pg_collation AS c WHERE c.oid = a.attcollation), true)
FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
    JOIN pg_type AS b ON b.oid = CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_PLAIN = {
    "bool": pa.bool_(),
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bytea": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
# Numbers that Arrow takes as they are: days and microseconds since 1970. PostgreSQL refuses to convert infinity.
_WRITTEN = {
    "date": "({0} - '1970-01-01'::date)",
    "timestamp": "(extract(epoch FROM {0}) * 1000000)::bigint",
    "timestamptz": "(extract(epoch FROM {0}) * 1000000)::bigint",
    "bytea": "encode({0}, 'hex')",
    # The last watermark of a source that is exhausted.
    "watermark": "(extract(epoch FROM NULLIF({0}, 'infinity')) * 1000000)::bigint",
}
_LARGEST_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Column:
    """A column, its type in Arrow, and the type of PostgreSQL's own that decides how it is written.

    `bytewise` says that two texts are equal in PostgreSQL where their bytes in UTF-8 are, and only there.
    """

    name: str
    arrow: pa.DataType
    kind: str | None
    bytewise: bool = False

    def written(self, value: sql.Composable) -> sql.Composed:
        """Write a value of the column so that it is read back without loss."""
        return sql.SQL(_WRITTEN.get(self.kind or "", "{0}")).format(value)


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or stream table; `pages` where its rows can be told apart by their place."""

    relid: int
    schema: str
    name: str
    pages: int | None
    columns: tuple[Column, ...]

    @property
    def identifier(self) -> sql.Identifier:
        """Its qualified name."""
        return sql.Identifier(self.schema, self.name)

    def chosen(self, names: Sequence[str]) -> tuple[Column, ...]:
        """Return some of the columns, in the order asked for; raise InvalidArgument for one that is not there."""
        known = {column.name: column for column in self.columns}
        if missing := [name for name in names if name not in known]:
            raise InvalidArgument(f"{self.name} has no column {missing[0]!r}.", f"It has {', '.join(known)}.")
        return tuple(known[name] for name in names)


COMMIT = (
    Column("_change_type", pa.string(), "text"),
    Column("_commit_version", pa.int64(), "int8"),
    Column("_commit_timestamp", pa.timestamp("us", "UTC"), "watermark"),
)
"""What stands before the columns of a relation in its changes."""


def relation(connection: psycopg.Connection, name: str) -> Relation:
    """Find a relation by its name, as whoever is connected finds it; raise InvalidArgument where there is none."""
    try:
        with translate_errors(), connection.transaction():
            connection.execute(USERS_PATH)
            row = connection.execute(_NAMED, (name,)).fetchone()
    except QueryRefused as error:
        hint = 'As orders, shop.orders or "Shop"."Orders", in quotes where the name has capitals, dots or blanks.'
        raise InvalidArgument(f"{name!r} is no name of a table: {error}", hint) from None
    with translate_errors():
        found = connection.execute(_RELATION, (row and row[0],)).fetchone()
        if found is None:
            problem = f"{name!r} is no table." if row and row[0] else f"There is no table {name!r}."
            raise InvalidArgument(problem, "Name a table or stream table, with its schema.")
        columns = tuple(_typed(*each) for each in connection.execute(_COLUMNS, (found[0],)))
    relid, schema, own, pages = found
    return Relation(relid, schema, own, pages, columns)


def _typed(name: str, kind: str | None, modifier: int, bytewise: bool) -> Column:
    arrow = _decimal(modifier) if kind == "numeric" else _PLAIN.get(kind or "", pa.string())
    return Column(name, arrow, kind, bytewise)


def _decimal(modifier: int) -> pa.DataType:
    """Return the type of a numeric of declared precision and scale; any other is written as text, without loss."""
    precision, scale = (modifier - 4) >> 16 & 0xFFFF, (modifier - 4) & 0x7FF
    fits = modifier >= 4 and precision <= _LARGEST_PRECISION and scale <= precision
    return pa.decimal128(precision, scale) if fits else pa.string()
