"""What the catalog says of a refresh that was just done: read in one statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from pytrickle.cut import Cut

FACTS = """
SELECT
    s.pgt_id, s.pgt_schema, s.pgt_name, current_database(), s.refresh_xid::text, s.last_sqlstate, clock_timestamp(),
    ARRAY(
        SELECT jsonb_build_object('name', a.attname, 'type', format_type(a.atttypid, a.atttypmod))
        FROM pg_attribute AS a
        WHERE a.attrelid = s.pgt_relid AND a.attnum > 0 AND NOT a.attisdropped
        ORDER BY a.attnum
    ),
    ARRAY(
        SELECT jsonb_build_object(
            'relid', d.source_relid::oid::bigint, 'schema', n.nspname, 'name', c.relname,
            'cut', to_jsonb(d.frontier), 'columns', d.columns_used,
            'version', t.refresh_xid::text,
            'watermark', COALESCE(to_json(t.effective_watermark) #>> '{}', w.watermark),
            'batch', COALESCE(t.effective_batch, w.batch))
        FROM pgtrickle.pgt_dependencies AS d
        JOIN pg_class AS c ON c.oid = d.source_relid
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        -- A stream table's version is the transaction that wrote it, where the reader has seen that.
        LEFT JOIN pgtrickle.pgt_stream_tables AS t
            ON t.pgt_relid = d.source_relid AND pgtrickle.covers(d.frontier, t.refresh_xid, 0)
        LEFT JOIN LATERAL (
            SELECT to_json(h.watermark) #>> '{}' AS watermark, h.batch
            FROM pgtrickle.pgt_watermark_history AS h
            WHERE h.source_relid = d.source_relid AND pgtrickle.cut_covers(d.frontier, h.cut)
            ORDER BY h.history_id DESC
            LIMIT 1
        ) AS w ON true
        WHERE d.pgt_id = s.pgt_id
        ORDER BY n.nspname, c.relname
    )
FROM pgtrickle.pgt_stream_tables AS s
WHERE format('%%I.%%I', s.pgt_schema, s.pgt_name) = %(name)s
"""


@dataclass(frozen=True, slots=True)
class Read:
    """A source as a refresh read it: its version, and the watermark that was in force at that cut."""

    relid: int
    name: str
    version: str | None
    watermark: str | None
    batch: int | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """A stream table after a refresh; names are those of OpenLineage, `database.schema.table`."""

    pgt_id: int
    name: str
    namespace: str
    version: str | None
    sqlstate: str | None
    at: datetime
    columns: tuple[tuple[str, str], ...]
    reads: tuple[Read, ...]


def facts(connection: psycopg.Connection, stream_table: str) -> Facts | None:
    """Read what is known of a stream table; None where it was dropped meanwhile."""
    row = connection.execute(FACTS, {"name": stream_table}).fetchone()
    if row is None:
        return None
    pgt_id, schema, name, database, version, sqlstate, at, columns, reads = row
    info = connection.info
    return Facts(
        pgt_id,
        f"{database}.{schema}.{name}",
        f"postgres://{info.host if info.host and not info.host.startswith('/') else 'localhost'}:{info.port}",
        version,
        sqlstate,
        at,
        tuple((column["name"], column["type"]) for column in columns),
        tuple(_read(database, source) for source in reads),
    )


def _read(database: str, source: dict[str, Any]) -> Read:
    return Read(
        source["relid"],
        f"{database}.{source['schema']}.{source['name']}",
        source["version"] or (version_of(Cut.from_json(source["cut"])) if source["cut"] else None),
        source["watermark"],
        source["batch"],
        tuple(source["columns"]),
    )


def version_of(cut: Cut) -> str:
    """Write a cut as the version of a dataset.

    >>> version_of(Cut("10:12:11", None, None, None)), version_of(Cut("10:12:11", "11", 7, "0/16B3748"))
    ('10:12:11', '10:12:11/11/7')
    """
    return cut.snapshot if cut.xid is None else f"{cut.snapshot}/{cut.xid}/{cut.pos}"
