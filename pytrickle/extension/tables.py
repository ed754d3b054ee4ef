"""The catalog of the extension pg_trickle, table by table, as a live server has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from pytrickle.database import translate_errors
from pytrickle.errors import CatalogError

Row = Mapping[str, str | None]

NAMES = (
    "pgt_stream_tables",
    "pgt_dependencies",
    "pgt_watermark_groups",
    "pgt_watermarks",
    "pgt_source_gates",
    "pgt_refresh_groups",
    "pgt_subscriptions",
)
OURS = "view_relid"
"""A column of pgt_stream_tables that pytrickle's own catalog has, and the extension's has not."""

_COLUMNS = """
SELECT a.attname FROM pg_attribute AS a
WHERE a.attrelid = to_regclass(format('pgtrickle.%%I', %s::text)) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
_RELATIONS = """
SELECT c.oid, format('%%I.%%I', n.nspname, c.relname)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.oid = ANY (%s::oid[])
"""
_SHAPES = """
SELECT a.attrelid, a.attname, format_type(a.atttypid, a.atttypmod)
FROM pg_attribute AS a
WHERE a.attrelid = ANY (%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_SETTINGS = """
SELECT name, setting FROM pg_settings
WHERE name LIKE 'pg\\_trickle.%' AND setting IS DISTINCT FROM boot_val ORDER BY name
"""


@dataclass(frozen=True, slots=True)
class CatalogTables:
    """The rows of the extension's catalog as text, and what a live server or a dump says about their OIDs.

    `relations` names relations as ``schema.table``, quoted where they must be; `shapes` are columns and their types.
    `dropped` are relations that the catalog still speaks of.
    """

    rows: Mapping[str, Sequence[Row]]
    relations: Mapping[int, str] = field(default_factory=dict)
    shapes: Mapping[int, Sequence[tuple[str, str]]] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    dropped: frozenset[int] = frozenset()


def live_tables(connection: psycopg.Connection) -> CatalogTables:
    """Read the extension's catalog; raises CatalogError where there is none."""
    with translate_errors(), connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        rows = {name: _rows(connection, name) for name in NAMES}
        oids = oids_in(rows)
        named: dict[int, str] = dict(connection.execute(_RELATIONS, (oids,)).fetchall())
        shapes: dict[int, list[tuple[str, str]]] = {}
        for oid, column, written in connection.execute(_SHAPES, (oids,)):
            shapes.setdefault(oid, []).append((column, written))
        settings: dict[str, str] = dict(connection.execute(_SETTINGS).fetchall())
    return CatalogTables(rows, named, shapes, settings, frozenset(oids) - frozenset(named))


def oids_in(rows: Mapping[str, Sequence[Row]]) -> list[int]:
    """Return every OID of a relation that the catalog's rows speak of, in order."""
    texts = [text for table in rows.values() for row in table for name, text in row.items() if _is_relation(name)]
    return sorted({oid for text in texts if text is not None for oid in oid_list(text)})


def oid_list(text: str) -> list[int]:
    """Read an OID, or an array of them.

    >>> oid_list("16385"), oid_list("{16385,16390}"), oid_list("{}")
    ([16385], [16385, 16390], [])
    """
    return [int(item) for item in text.strip("{}").split(",") if item]


def _is_relation(column: str) -> bool:
    return column.endswith(("relid", "relids", "member_oids"))


def _rows(connection: psycopg.Connection, table: str) -> list[Row]:
    columns = [name for (name,) in connection.execute(_COLUMNS, (table,))]
    if table == NAMES[0]:
        refuse_another_catalog(columns)
    if not columns:
        return []
    statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(
        sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier("pgtrickle", table)
    )
    with connection.cursor().copy(statement) as copy:
        return [dict(zip(columns, row, strict=True)) for row in copy.rows()]


def refuse_another_catalog(columns: Sequence[str]) -> None:
    """Raise CatalogError unless these are the columns of the extension's pgt_stream_tables."""
    if not columns:
        raise CatalogError(
            "There is no catalog of the extension pg_trickle.",
            "Name the database that has the extension by --dsn, or a dump of it by --dump.",
        )
    if OURS in columns:
        raise CatalogError(
            "This catalog is pytrickle's own, not that of the extension pg_trickle.",
            "Name the database that has the extension by --dsn, or a dump of it by --dump.",
        )
