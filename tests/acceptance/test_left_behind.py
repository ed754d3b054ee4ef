"""What reads a stream table that was left behind claims what that one shows: not less for ever, and never more."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from tests.acceptance.conftest import Shop
from tests.repeats import first

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
TABLES = {
    "pair": ("a b", "gate"),
    "held": ("a b", "hold_back"),
    "alone": ("a", "none"),
    "plain": ("c", "auto"),
    "numbered": ("e a", "gate"),
    "over_pair": ("pair plain", "gate"),
    "over_held": ("held", "gate"),
    "over_alone": ("alone b", "gate"),
    "over_plain": ("plain a", "gate"),
    "over_numbered": ("numbered", "gate"),
    "top": ("over_pair a", "gate"),
    "peak": ("over_alone over_held", "auto"),
}
EFFECTIVE = "SELECT pgt_name, effective_watermark, effective_batch FROM pgtrickle.pgt_stream_tables"


def moment(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


@dataclass
class World:
    """Sources whose rows are numbered, with the rows that each advance promised, and stream tables over them."""

    shop: Shop
    rows: dict[str, int] = field(default_factory=lambda: dict.fromkeys("abce", 0))
    promised: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: {source: [] for source in "abce"})
    claimed: dict[str, tuple[datetime | None, int | None]] = field(default_factory=dict)

    def create(self) -> None:
        for source in self.rows:
            self.shop.db.execute(f"CREATE TABLE {source} (source text DEFAULT '{source}', id int)")
        for name, (read, gating) in TABLES.items():
            query = " UNION ALL ".join(f"SELECT source, id FROM {each}" for each in read.split())
            self.shop.pt.create_stream_table(name, query, watermark_gating=gating)

    def load(self, source: str, advance: int | None) -> None:
        with self.shop.db.connect() as loader, loader.transaction():
            self.rows[source] += 1
            loader.execute(f"INSERT INTO {source} (id) VALUES ({self.rows[source]})".encode())
        if advance is not None:
            self.advance(source, advance)

    def advance(self, source: str, number: int) -> None:
        self.promised[source].append((number, self.rows[source]))
        self.shop.pt.advance_watermark(source, number if source == "e" else moment(number))

    def check(self) -> int:
        """Check what was claimed since the last time against what is shown; return how many tables claimed."""
        rises = 0
        for name, *effective in self.shop.db.execute(EFFECTIVE):
            known = self.claimed.get(name, (None, None))
            self.claimed[name] = (effective[0], effective[1])
            if self.claimed[name] != known:
                rises += 1
                self._check(name, *effective)
        return rises

    def _check(self, name: str, watermark: datetime | None, batch: int | None) -> None:
        shown = self.shop.rows(f"(SELECT DISTINCT source, id FROM {name}) AS t")
        for source in sources(name):
            through = batch if source == "e" else watermark and int((watermark - START).total_seconds())
            first = next((rows for number, rows in self.promised[source] if through and number >= through), 0)
            assert {(source, number + 1) for number in range(first)} <= shown, (name, source, watermark, batch)


def sources(name: str) -> set[str]:
    return {name} if name not in TABLES else set().union(*(sources(each) for each in TABLES[name][0].split()))


@pytest.mark.parametrize("seed", first(0, range(3), then=1))
def test_no_order_of_refreshes_claims_more_than_is_shown(local_shop: Shop, seed: int) -> None:
    chance, world = random.Random(seed), World(local_shop)
    world.create()
    for group, source in (("first", "a"), ("second", "b"), ("third", "e")):
        local_shop.pt.create_watermark_group(group, [source], tolerance=0 if source == "e" else timedelta(0))
    local_shop.tick()
    by_hand, clock = 0, dict.fromkeys("abce", 0)
    for step in range(60):
        source = chance.choice("aaabce" if step > 20 else "aace")
        clock[source] += chance.randint(1, 9)
        match chance.randint(0, 3):
            case 0 if source != "c" or step > 40:
                world.advance(source, clock[source])
            case 1:
                world.load(source, None)
            case _:
                world.load(source, None if source == "c" and step <= 40 else clock[source])
        if step == 40:
            local_shop.pt.alter_watermark_group("first", sources=["a", "c"], tolerance=timedelta(days=1))
            world.advance("c", 1)
        if chance.random() < 0.1:
            local_shop.tick()
            world.check()
        for name in chance.sample(sorted(TABLES), 1):
            local_shop.pt.refresh(name)
            by_hand += world.check()
    assert by_hand > 10


@pytest.mark.parametrize("below", ["gate", "hold_back", "none"])
def test_one_that_is_never_refreshed_beside_what_it_reads_does_not_starve(local_shop: Shop, below: str) -> None:
    local_shop.db.execute("CREATE TABLE clicks (id int PRIMARY KEY, at timestamptz NOT NULL)")
    local_shop.pt.create_watermark_group("site", ["clicks"])
    local_shop.pt.create_stream_table("cleaned", "SELECT * FROM clicks", watermark_gating=below)
    query = (
        "SELECT date_bin('5 minutes', at, '2000-01-01 00:00+00') + interval '5 minutes' AS window_end,"
        " count(*) AS clicks FROM cleaned GROUP BY 1"
    )
    local_shop.pt.create_stream_table(
        "counts", query, output_mode="append", window_end="window_end", watermark_gating="gate"
    )
    local_shop.tick()
    for number in range(3):
        local_shop.db.execute("INSERT INTO clicks VALUES (%s, %s)", number, moment(300 * number + 10))
        local_shop.pt.advance_watermark("clicks", moment(300 * (number + 1)))
        local_shop.pt.refresh("cleaned")
        local_shop.pt.refresh("counts")
        assert local_shop.rows("counts") == {(moment(300 * (n + 1)), 1) for n in range(number + 1)}
        local_shop.db.execute("INSERT INTO clicks VALUES (%s, %s)", number + 10, moment(300 * (number + 1) + 400))
        local_shop.db.execute("DELETE FROM clicks WHERE id > 9")
    local_shop.pt.advance_watermark("clicks", moment(1200))
    assert local_shop.pt.refresh("counts").effective_watermark == moment(900), "what came since might be missing"
    local_shop.pt.refresh("cleaned")
    assert local_shop.pt.refresh("counts").effective_watermark == moment(1200)


def test_a_tick_that_leaves_one_behind_claims_nothing_new_however_far_above(local_shop: Shop) -> None:
    local_shop.db.execute("CREATE TABLE clicks (id int)")
    local_shop.pt.create_watermark_group("site", ["clicks"])
    for name, below in (("first", "clicks"), ("second", "first"), ("third", "second")):
        local_shop.pt.create_stream_table(name, f"SELECT id FROM {below}", watermark_gating="gate")
    local_shop.pt.advance_watermark("clicks", moment(1))
    local_shop.tick()
    local_shop.db.execute("INSERT INTO clicks VALUES (1)")
    local_shop.pt.advance_watermark("clicks", moment(2))
    local_shop.pt.pause("first")
    for through in (moment(1), moment(2)):
        local_shop.tick()
        claimed = {row[0]: row[1] for row in local_shop.db.execute(EFFECTIVE)}
        assert claimed == dict.fromkeys(("first", "second", "third"), through)
        local_shop.pt.resume("first")
    assert local_shop.rows("third") == {(1,)}


def test_what_never_changes_holds_nothing_back(local_shop: Shop) -> None:
    local_shop.db.execute("CREATE TABLE clicks (id int)")
    local_shop.pt.create_watermark_group("site", ["clicks"])
    local_shop.pt.create_stream_table("names", "SELECT * FROM customers")
    local_shop.pt.create_stream_table("cleaned", "SELECT * FROM clicks", watermark_gating="gate")
    query = "SELECT c.id, n.name FROM cleaned c JOIN names n USING (id)"
    local_shop.pt.create_stream_table("named", query, watermark_gating="gate")
    local_shop.pt.advance_watermark("clicks", moment(0))
    local_shop.tick()
    for minute in range(3):
        local_shop.pt.advance_watermark("clicks", moment(minute))
        assert local_shop.pt.refresh("named").effective_watermark == moment(minute), "no row is missing"


def test_a_table_that_never_reads_the_groups_sources_limits_nothing(local_shop: Shop) -> None:
    local_shop.pt.create_watermark_group("loads", ["orders"])
    local_shop.pt.create_stream_table("names", "SELECT * FROM customers")
    query = "SELECT o.id, n.name FROM orders o JOIN names n ON n.id = o.customer"
    local_shop.pt.create_stream_table("named", query, watermark_gating="gate")
    local_shop.tick()
    local_shop.db.execute("INSERT INTO customers VALUES (3, 'Eve')")
    local_shop.load("orders", "12:00", (1, 1, 10))
    assert local_shop.pt.refresh("named").effective_watermark == START
