"""What the SQL tests ask of a database: contents of change buffers, relations at a cut, refusals."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from tests.conftest import Database

Rows = list[tuple[Any, ...]]


def buffer_of(db: Database, source: str) -> str:
    """Name of the change buffer of ``source``."""
    name = db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = %s::regclass", source)
    assert isinstance(name, str)
    return name


def logged(db: Database, source: str, columns: str) -> Rows:
    """Captured changes as (weight, columns ...), consolidated: what nets to zero is left out."""
    return db.execute(
        f"SELECT sum(pgt_weight)::int, {columns} FROM {buffer_of(db, source)} "
        f"GROUP BY {columns} HAVING sum(pgt_weight) <> 0 ORDER BY {columns}, 1"
    )


def remember(db: Database, source: str) -> None:
    """Keep the present contents of ``source`` for ``assert_replays``."""
    db.execute(f"CREATE TABLE remembered AS SELECT * FROM {source}")


def assert_replays(db: Database, source: str, columns: str) -> None:
    """The remembered rows plus the captured changes are the present rows, as multisets."""
    difference = db.execute(
        f"SELECT sum(w), {columns} FROM ("
        f"  SELECT 1 AS w, {columns} FROM remembered"
        f"  UNION ALL SELECT pgt_weight, {columns} FROM {buffer_of(db, source)}"
        f"  UNION ALL SELECT -1, {columns} FROM {source}) AS z GROUP BY {columns} HAVING sum(w) <> 0"
    )
    assert difference == []


def at_cut(db: Database, source: str, columns: str, watermark: str) -> Rows:
    """Rows of ``source`` at the cut of a watermark: the present rows less the changes beyond the cut."""
    return db.execute(
        f"SELECT {columns} FROM ("
        f"  SELECT 1 AS w, {columns} FROM {source} UNION ALL"
        f"  SELECT -b.pgt_weight, {columns} FROM {buffer_of(db, source)} AS b, pgtrickle.pgt_watermark_history AS h"
        f"  WHERE h.source_relid = %s::regclass AND h.watermark = %s AND NOT pgtrickle.covers(h.cut, b.pgt_xid, b.pgt_pos)"
        f") AS z GROUP BY {columns} HAVING sum(w) <> 0 ORDER BY {columns}",
        source,
        watermark,
    )


@contextmanager
def refused(sqlstate: str, hint: str = "", constraint: str | None = None) -> Iterator[None]:
    """The block must raise this SQLSTATE with a hint that contains ``hint``."""
    with pytest.raises(psycopg.Error) as raised:
        yield
    assert raised.value.sqlstate == sqlstate, raised.value
    assert raised.value.diag.message_hint, "an error without a hint"
    assert hint in raised.value.diag.message_hint
    if constraint is not None:
        assert raised.value.diag.constraint_name == constraint


def catalog_state(db: Database) -> Rows:
    """Everything a refused call must leave as it was: catalog rows, relations and triggers."""
    return [
        row
        for query in (
            "SELECT t::text FROM pgtrickle.pgt_stream_tables AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_dependencies AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_change_tracking AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_watermarks AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_watermark_history AS t ORDER BY 1",
            "SELECT t::text FROM pgtrickle.pgt_watermark_groups AS t ORDER BY 1",
            "SELECT oid::regclass::text FROM pg_class WHERE relnamespace::regnamespace::text !~ '^pg_' ORDER BY 1",
            "SELECT tgrelid::regclass::text, tgname::text FROM pg_trigger WHERE NOT tgisinternal ORDER BY 1, 2",
        )
        for row in db.execute(query)
    ]
