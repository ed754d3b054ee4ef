"""The laws of frozen rows, over random histories: what is frozen stays, and the ledger has exactly what it misses."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.acceptance.conftest import Shop
from tests.acceptance.events import BIN, moment
from tests.acceptance.test_frozen_rows import HOURLY, PLAIN
from tests.repeats import first

JOINED = """SELECT c.at AS "at %s {0}", c.id, v.id AS "view's", v.page
FROM clicks c LEFT JOIN views v ON v.page = c.page"""
LONGEST = f"SELECT {BIN.format('at')} AS ends, max(id) AS newest, min(id) AS oldest FROM clicks GROUP BY 1"
BELOW = "SELECT ends, sum(clicks) AS clicks, array_agg(page ORDER BY page) AS pages FROM hourly GROUP BY ends"
LATEST = "SELECT page, max(at) AS at, count(*) AS clicks FROM clicks GROUP BY page"
# The queries of stream tables, each with the column that says how old a row is, and with options.
TABLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": (PLAIN, "at", {}),
    "hourly": (HOURLY, "ends", {"window_end": "ends"}),
    "longest": (LONGEST, "ends", {"window_end": "ends", "watermark_gating": "gate"}),
    "latest": (LATEST, "at", {"window_end": "at"}),
    "joined": (JOINED, '"at %s {0}"', {}),
    "below": (BELOW, "ends", {"window_end": "ends"}),
    "held": (PLAIN, "at", {"watermark_gating": "hold_back"}),
}
Rows = Counter[tuple[tuple[str, str | None], ...]]

LAST = 7


def rows(shop: Shop, query: str) -> Rows:
    """Return rows as texts by their columns, each as often as it is there."""
    with shop.db.connect() as connection:
        cursor = connection.execute(f"SELECT * FROM ({query}) AS q LIMIT 0".encode())
        names = [column.name for column in cursor.description or ()]
        texts = ", ".join(f'q."{name}"::text' for name in names)
        found = connection.execute(f"SELECT {texts} FROM ({query}) AS q".encode()).fetchall()
    return Counter(tuple(sorted(zip(names, row, strict=True))) for row in found)


def ledger(shop: Shop, name: str) -> Rows:
    net: Rows = Counter()
    for weight, change in shop.db.execute("SELECT weight, change FROM pgtrickle.late_changes(%s, 100000)", name):
        net[tuple(sorted(change.items()))] += weight
    return net


def limit_of(shop: Shop, name: str) -> str:
    return str(shop.db.value("SELECT coalesce(frozen_before, '-infinity')::text FROM pgtrickle.pgt_status()"
                             " WHERE pgt_status.stream_table = %s", f"public.{name}"))  # fmt: skip


def change(shop: Shop, chance: Random, number: int, clock: int) -> None:
    """Change the sources: rows of now, and often old ones."""
    for i in range(chance.randrange(4)):
        seconds = clock - chance.choice((-20, 0, 60, 200, 900))
        values = (number * 10 + i, moment(seconds), chance.randrange(3), chance.choice(("1", "1.0", "2", "-3")))
        shop.db.execute("INSERT INTO clicks VALUES (%s, %s, %s, %s)", *values)
    some = f"abs(hashint4(id + {chance.randrange(100)})) % 3 = 0"
    statements = (
        f"UPDATE clicks SET took = took + 1 WHERE {some}",
        f"UPDATE clicks SET at = at + interval '{chance.choice((-700, 400))} seconds' WHERE {some}",
        f"DELETE FROM clicks WHERE {some}",
        f"INSERT INTO views VALUES ({number}, '{moment(clock)}', {chance.randrange(3)})",
        f"UPDATE views SET page = {chance.randrange(3)} WHERE {some}",
    )
    shop.db.execute(chance.choice(statements))
    if number == LAST:
        shop.db.execute("INSERT INTO clicks VALUES (1000, %s, 0, '1')", moment(clock - 900))


def recompute(shop: Shop, number: int) -> None:
    """Have much computed anew now and then: all rows go, changes may have been missed, or the mode says so."""
    if number % 5 == 4:
        shop.db.execute("TRUNCATE clicks")
    if number % 3 == 2:
        shop.db.execute("SELECT pgtrickle.repair_capture('clicks')")
    shop.pt.alter_stream_table("plain", refresh_mode=("AUTO", "AUTO", "FULL")[number % 3])


def assert_laws(shop: Shop, name: str, limit: str, frozen: Rows) -> None:
    """Check that frozen rows are as they were, the others those of the query, and that the ledger has what is missing.

    A stream table that is held back is compared with its query by `verify` alone, which knows its cut.
    """
    query, at, options = TABLES[name]
    assert rows(shop, f"SELECT * FROM {name} WHERE {at} < '{limit}'") == frozen, f"{name} changed what was frozen"
    if options.get("watermark_gating") == "hold_back":
        return
    young = f"WHERE ({at} < '{limit}') IS NOT TRUE"
    expected = rows(shop, f"SELECT * FROM ({query}) AS q {young}")
    assert rows(shop, f"SELECT * FROM {name} {young}") == expected, f"{name} is not its query"
    total = rows(shop, f"SELECT * FROM {name}")
    total.update(ledger(shop, name))
    assert +total == rows(shop, query) and not -total, f"{name} and its ledger are not its query"


@pytest.mark.parametrize("seed", first(1, range(40), then=1))
def test_rows_and_the_ledger_add_up_to_what_the_query_answers(events: Shop, seed: int) -> None:
    chance = Random(seed)
    events.db.execute("SELECT pgtrickle.set_event_time('clicks', 'at')")
    for name, (query, _, options) in TABLES.items():
        events.pt.create_stream_table(name, query, frozen_after="300 seconds", **options)
    events.pt.create_refresh_group("together", ["longest", "latest"])
    clock = 0
    for number in range(LAST + 1):
        change(events, chance, number, clock)
        recompute(events, number)
        if chance.random() < 0.7:
            clock += chance.randrange(400)
            for source in ("clicks", "views"):
                events.pt.advance_watermark(source, moment(clock))
        limits = {name: limit_of(events, name) for name in TABLES}
        frozen = {
            name: rows(events, f"SELECT * FROM {name} WHERE {at} < '{limits[name]}'")
            for name, (_, at, _) in TABLES.items()
        }
        events.tick()
        for name in TABLES:
            assert_laws(events, name, limits[name], frozen[name])
    events.assert_verified()
    recorded = {row.stream_table for row in events.pt.stream_tables() if row.late_changes}
    assert {"public.plain", "public.hourly"} <= recorded, "nothing came too late"
