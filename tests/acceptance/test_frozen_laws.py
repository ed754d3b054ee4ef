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

JOINED = "SELECT c.at, c.id, v.id AS view, v.page FROM clicks c LEFT JOIN views v ON v.page = c.page"
LONGEST = f"SELECT {BIN.format('at')} AS ends, max(id) AS newest, min(id) AS oldest FROM clicks GROUP BY 1"
BELOW = "SELECT ends, sum(clicks) AS clicks, array_agg(page ORDER BY page) AS pages FROM hourly GROUP BY ends"
LATEST = "SELECT page, max(at) AS at, count(*) AS clicks FROM clicks GROUP BY page"
# The queries of stream tables, each with the column that says how old a row is, and with options.
TABLES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "plain": (PLAIN, "at", {}),
    "hourly": (HOURLY, "ends", {"window_end": "ends"}),
    "longest": (LONGEST, "ends", {"window_end": "ends", "watermark_gating": "gate"}),
    "latest": (LATEST, "at", {"window_end": "at"}),
    "joined": (JOINED, "at", {}),
    "complete": (HOURLY, "ends", {"window_end": "ends", "output_mode": "complete"}),
    "below": (BELOW, "ends", {"window_end": "ends"}),
    "held": (PLAIN, "at", {"watermark_gating": "hold_back"}),
}
REPAIRS = ("clicks", "views")


def rows(shop: Shop, query: str) -> Counter[tuple[tuple[str, str | None], ...]]:
    """Return rows as texts by their columns, each as often as it is there."""
    with shop.db.connect() as connection:
        cursor = connection.execute(f"SELECT * FROM ({query}) AS q LIMIT 0".encode())
        names = [column.name for column in cursor.description or ()]
        texts = ", ".join(f'q."{name}"::text' for name in names)
        found = connection.execute(f"SELECT {texts} FROM ({query}) AS q".encode()).fetchall()
    return Counter(tuple(sorted(zip(names, row, strict=True))) for row in found)


def ledger(shop: Shop, name: str) -> Counter[tuple[tuple[str, str | None], ...]]:
    net: Counter[tuple[tuple[str, str | None], ...]] = Counter()
    for weight, change in shop.db.execute("SELECT weight, change FROM pgtrickle.late_changes(%s, 100000)", name):
        net[tuple(sorted(change.items()))] += weight
    return net


def limit_of(shop: Shop, name: str) -> str:
    return str(shop.db.value("SELECT coalesce(frozen_before, '-infinity')::text FROM pgtrickle.pgt_status()"
                             " WHERE pgt_status.stream_table = %s", f"public.{name}"))  # fmt: skip


def change(shop: Shop, chance: Random, number: int, clock: int) -> None:
    """Change the sources: mostly rows of now, often old ones, rarely everything."""
    for i in range(chance.randrange(4)):
        seconds = clock - chance.choice((-20, 0, 60, 200, 900))
        values = (number * 10 + i, moment(seconds), chance.randrange(3), chance.choice(("1", "1.0", "2", "-3")))
        shop.db.execute("INSERT INTO clicks VALUES (%s, %s, %s, %s)", *values)
    some = f"abs(hashint4(id + {chance.randrange(100)})) %% 3 = 0"
    statement = chance.choice((
        f"UPDATE clicks SET took = took + 1 WHERE {some}",
        f"UPDATE clicks SET at = at + interval '{chance.choice((-700, 400))} seconds' WHERE {some}",
        f"DELETE FROM clicks WHERE {some}",
        f"INSERT INTO views VALUES ({number}, '{moment(clock)}', {chance.randrange(3)}) ON CONFLICT DO NOTHING",
        f"UPDATE views SET page = {chance.randrange(3)} WHERE {some}",
        "TRUNCATE clicks" if chance.random() < 0.2 else "SELECT 1",
    ))  # fmt: skip
    shop.db.execute(statement.replace("%%", "%"))


def provoke(shop: Shop, chance: Random) -> None:
    """Have everything computed anew now and then: as a whole, or because changes may have been missed."""
    if chance.random() < 0.15:
        shop.db.execute("SELECT pgtrickle.repair_capture(%s)", chance.choice(REPAIRS))
    shop.db.execute("SELECT pgtrickle.alter_stream_table('plain', refresh_mode => %s)",
                    chance.choice(("AUTO", "AUTO", "FULL")))  # fmt: skip


@pytest.mark.parametrize("seed", first(1, range(40), then=1))
def test_rows_and_the_ledger_add_up_to_what_the_query_answers(events: Shop, seed: int) -> None:
    chance = Random(seed)
    events.db.execute("SELECT pgtrickle.set_event_time('clicks', 'at')")
    for name, (query, _, options) in TABLES.items():
        events.pt.create_stream_table(name, query, frozen_after="300 seconds", **options)
    events.pt.create_refresh_group("together", ["longest", "latest"])
    recorded, clock = 0, 0
    for number in range(12):
        change(events, chance, number, clock)
        provoke(events, chance)
        if chance.random() < 0.7:
            clock += chance.randrange(400)
            for source in ("clicks", "views"):
                events.pt.advance_watermark(source, moment(clock))
        limits = {name: limit_of(events, name) for name in TABLES}
        old = {name: f"SELECT * FROM {name} WHERE {at} < '{limits[name]}'" for name, (_, at, _) in TABLES.items()}
        frozen = {name: rows(events, query) for name, query in old.items()}
        events.tick()
        for name, (query, at, _) in TABLES.items():
            assert rows(events, old[name]) == frozen[name], f"{name} changed what was frozen"
            if name == "held":
                continue
            young = f"WHERE ({at} < '{limits[name]}') IS NOT TRUE"
            assert rows(events, f"SELECT * FROM {name} {young}") == rows(
                events, f"SELECT * FROM ({query}) AS q {young}"
            )
            total = rows(events, f"SELECT * FROM {name}")
            total.update(ledger(events, name))
            assert +total == rows(events, query) and not -total, f"{name} and its ledger are not its query"
        events.assert_verified()
        recorded += bool(ledger(events, "plain")) and bool(ledger(events, "hourly"))
    assert recorded, "nothing came too late"
