"""What an idle source that is ahead shows follows from the watermarks, not from who else keeps its changes."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.acceptance.conftest import Shop, clock, status
from tests.repeats import first

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
BOTH = "SELECT 'order' AS kind, id FROM orders UNION ALL SELECT 'line', order_id FROM order_lines"


@pytest.mark.parametrize("retention", [None, timedelta(days=1)], ids=["trimmed", "retained"])
def test_it_is_not_read_further_because_its_earlier_changes_were_cleaned_up(
    local_shop: Shop, retention: timedelta | None
) -> None:
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.pt.create_stream_table("held", BOTH, watermark_gating="hold_back", watermark_retention=retention)
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 1))
    shop.tick()
    shop.load("orders", "12:03:30", (2, 1, 10))
    shop.load("order_lines", "12:02", (2, 1, 1))
    shop.pt.mark_idle("orders")
    shop.pt.mark_idle("order_lines")
    shop.tick()
    shop.load("order_lines", "12:02:30", (3, 1, 1))
    results = shop.tick()
    assert (len(shop.rows("held")), clock(status(shop, "held").effective_watermark)) == (4, "12:02")
    assert "until a watermark of public.orders covers what it shows" in status(shop, "held").reason
    assert results["held"].action == "NO_DATA"
    shop.load("order_lines", "12:03:30")
    shop.tick()
    assert (len(shop.rows("held")), clock(status(shop, "held").effective_watermark)) == (5, "12:03")
    shop.assert_verified()


# Worlds with the same watermarks that differ in who else keeps the changes of their sources, and for how long.
WORLDS: dict[str, dict[str, Any]] = {
    "alone": {},
    "retained": {"watermark_retention": timedelta(days=1)},
    "beside one that stands still": {"watermark_gating": "hold_back", "schedule": "1 day"},
    "beside one that is current": {"watermark_gating": "none"},
}
SIDES = "SELECT 'a' AS side, id FROM {w}.a UNION ALL SELECT 'b', id FROM {w}.b UNION ALL SELECT 'c', id FROM {w}.c"


def build(shop: Shop, tolerance: str) -> tuple[str, ...]:
    worlds = tuple(f"w{number}" for number in range(len(WORLDS)))
    for world, (kind, options) in zip(worlds, WORLDS.items(), strict=True):
        shop.db.execute(f"CREATE SCHEMA {world}")
        for source in "abc":
            shop.db.execute(f"CREATE TABLE {world}.{source} (id int)")
        shop.pt.create_watermark_group(world, [f"{world}.{source}" for source in "abc"], tolerance)
        own = options if kind == "retained" else {}
        shop.pt.create_stream_table(f"{world}.held", SIDES.format(w=world), watermark_gating="hold_back", **own)
        if kind.startswith("beside"):
            shop.pt.create_stream_table(f"{world}.other", SIDES.format(w=world), **options)
    return worlds


def happen(shop: Shop, worlds: tuple[str, ...], chance: random.Random, reached: dict[str, int]) -> None:
    """Let the same happen in all worlds: a load, a source that falls silent or is done, a clean-up in some."""
    source, step = chance.choice("abc"), chance.randint(1, 4)
    deed = chance.choice(
        ("load", "load", "load", "load", "idle", "clean", "done" if chance.random() < 0.05 else "load")
    )
    if reached[source] >= 10_000:
        return
    if deed in {"load", "done"}:
        reached[source] = 10_000 if deed == "done" else reached[source] + step
    number = chance.randrange(10**6)
    for world in worlds:
        name = f"{world}.{source}"
        if deed == "idle":
            shop.pt.mark_idle(name)
        elif deed == "clean":
            cleaned = "SELECT pgtrickle_private.clean_change_buffer(%s::regclass)"
            shop.db.execute(cleaned, name) if chance.random() < 0.5 else None
        else:
            moment = "infinity" if deed == "done" else START + timedelta(minutes=reached[source])
            with shop.db.connect() as loader, loader.transaction():
                loader.execute(f"INSERT INTO {name} VALUES ({number})".encode())
                loader.execute("SELECT pgtrickle.advance_watermark(%s, %s::timestamptz)", (name, moment))
                loader.execute(f"INSERT INTO {name} VALUES ({number + 10**6})".encode())


def shown(shop: Shop, table: str) -> tuple[Any, ...]:
    """Return how far a stream table is complete, whether it is filled, and its rows."""
    query = "SELECT effective_watermark, status FROM pgtrickle.pgt_stream_tables WHERE pgt_relid = %s::regclass"
    return (*shop.db.execute(query, table)[0], sorted(shop.db.execute(f"TABLE {table}")))


@pytest.mark.parametrize("seed", first(0, range(3), then=1))
def test_the_same_watermarks_select_the_same_rows_whoever_else_keeps_the_changes(local_shop: Shop, seed: int) -> None:
    shop, chance = local_shop, random.Random(seed)
    worlds = build(shop, chance.choice(("0", "1 minute", "3 minutes")))
    reached = dict.fromkeys("abc", 0)
    for source in "abc":
        for world in worlds:
            shop.pt.advance_watermark(f"{world}.{source}", START)
    for _ in range(14):
        for _ in range(chance.randint(1, 4)):
            happen(shop, worlds, chance, reached)
        late = chance.random() < 0.4
        for world in worlds if late else ():
            shop.pt.create_stream_table(f"{world}.late", SIDES.format(w=world), watermark_gating="hold_back")
        results = shop.pt.tick()
        assert not [result.error for result in results if result.error]
        first, *others = (shown(shop, f"{world}.held") for world in worlds)
        assert all(other == first for other in others), [shop.pt.explain(f"{world}.held").text for world in worlds]
        filled = {repr(found) for w in worlds if late and (found := shown(shop, f"{w}.late"))[1] == "ACTIVE"}
        assert len(filled) <= 1, "one that cannot be read where the watermarks say waits"
        for world in worlds if late else ():
            shop.pt.drop_stream_table(f"{world}.late")
    shop.assert_verified()
