"""Sources that are read as of one watermark of their group are what a stream table that holds back shows at it."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pytrickle.database import connect
from pytrickle.errors import NotFresh
from pytrickle.streaming.source.columns import relation
from pytrickle.streaming.source.options import Options
from pytrickle.streaming.source.rows import parts_of_version, row_batches
from pytrickle.streaming.source.versions import version_read
from tests.acceptance.conftest import Shop
from tests.repeats import first

PAIRS = "SELECT a.id, a.amount, b.amount AS other FROM left_rows a JOIN right_rows b ON b.id = a.id"
SOURCES = ("left_rows", "right_rows")
EFFECTIVE = "SELECT effective_watermark FROM pgtrickle.pgt_stream_tables"


def moment(minute: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


def rows_as_of(shop: Shop, name: str, at: datetime) -> list[tuple[Any, ...]]:
    """Read a source as Spark's tasks do, in two parts."""
    given = {"dsn": shop.db.dsn, "table": name, "asOf": at.isoformat(), "group": "g"}
    found: list[tuple[Any, ...]] = []
    with connect(shop.db.dsn) as connection:
        source = relation(connection, name)
        version = version_read(connection, source, Options.of(given))
        assert version is not None
        for part in parts_of_version(2, version):
            for batch in row_batches(connection, source, source.columns, part):
                found += [tuple(row.values()) for row in batch.to_pylist()]
    return found


def joined(shop: Shop, at: datetime) -> Counter[tuple[Any, ...]]:
    left, right = (dict(rows_as_of(shop, name, at)) for name in SOURCES)
    return Counter((key, left[key], right[key]) for key in left.keys() & right.keys())


def write(shop: Shop, chance: random.Random) -> None:
    for name in SOURCES:
        key = chance.randrange(6)
        shop.db.execute(
            chance.choice((
                f"INSERT INTO {name} VALUES ({key}, 1) ON CONFLICT (id) DO UPDATE SET amount = {name}.amount + 1",
                f"DELETE FROM {name} WHERE id = {key}",
                f"UPDATE {name} SET amount = amount + 10",
            ))
        )  # fmt: skip


@pytest.mark.parametrize("seed", first(1, range(6), 2))
def test_sources_read_at_one_watermark_are_what_is_shown_there(local_shop: Shop, seed: int) -> None:
    """Each loader advances when it likes."""
    chance = random.Random(seed)
    for name in SOURCES:
        local_shop.db.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, amount int NOT NULL)")
        local_shop.db.execute("SELECT pgtrickle.create_feed(%s, %s)", name, name)
        local_shop.db.execute(f"INSERT INTO {name} SELECT n, n FROM generate_series(0, 4) AS n")
    local_shop.db.execute("SELECT pgtrickle.create_watermark_group('g', %s::text[])", list(SOURCES))
    local_shop.pt.create_stream_table("pairs", PAIRS, watermark_gating="hold_back")
    shown: dict[datetime, Counter[tuple[Any, ...]]] = {}
    for minute in range(16):
        for name in SOURCES:
            write(local_shop, chance)
            if minute == 0 or chance.random() < 0.6:
                local_shop.db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", name, moment(minute))
        write(local_shop, chance)
        local_shop.tick()
        shown[local_shop.db.value(EFFECTIVE)] = Counter(local_shop.db.execute("SELECT * FROM pairs"))
    assert len({repr(sorted(rows.items())) for rows in shown.values()}) > 2
    for at, rows in shown.items():
        assert joined(local_shop, at) == rows, at
    with pytest.raises(NotFresh):
        joined(local_shop, moment(99))
