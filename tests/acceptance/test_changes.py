"""As of one version plus the changes to a later one is as of the later one, whatever the writers did meanwhile."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any

import psycopg
import pytest

from pytrickle.errors import NotFresh, NotRetained, PytrickleError
from tests.acceptance.conftest import Shop
from tests.commands import commands
from tests.repeats import first

SALES = "SELECT region, count(*) AS items, sum(amount) AS amount FROM items GROUP BY region"
CHANGES = "SELECT _change_type, (changed).* FROM pgtrickle.changes_of_versions(NULL::{name}, %s, %s{options})"
BY_WATERMARK = "SELECT _change_type, (changed).* FROM pgtrickle.changes(NULL::{name}, %s, %s)"
OPTIONS = ("", ", compute_updates => true", ", 'net'", ", 'net', true")
WEIGHTS = {"insert": 1, "update_postimage": 1, "delete": -1, "update_preimage": -1}

Rows = Counter[tuple[Any, ...]]


def moment(minute: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minute)


def changed(rows: Rows, changes: list[tuple[Any, ...]]) -> Rows:
    """Return the rows after the changes."""
    result = Counter(rows)
    for kind, *row in changes:
        result[tuple(row)] += WEIGHTS[kind]
    assert min(result.values(), default=0) >= 0
    return +result


@dataclass
class History:
    """Writers with open transactions, a loader that advances, and what each version was seen to hold."""

    shop: Shop
    chance: random.Random
    writers: list[psycopg.Connection[Any]]
    loader: psycopg.Connection[Any]
    seen: dict[str, dict[int, Rows]] = field(default_factory=lambda: {"items": {}, "sales": {}})

    def write(self) -> None:
        """Change rows in one of the open transactions, with savepoints, and now and then end it."""
        number = self.chance.randrange(len(self.writers))
        writer = self.writers[number]
        with writer.transaction(force_rollback=self.chance.random() < 0.2):
            self.change(writer, number)
        if self.chance.random() < 0.5:
            (writer.rollback if self.chance.random() < 0.2 else writer.commit)()

    def change(self, connection: psycopg.Connection[Any], lane: int) -> None:
        """Change rows of one lane, so that writers do not wait for each other."""
        key = 4 * self.chance.randrange(6) + lane
        statements = (
            f"INSERT INTO items VALUES ({key}, {self.chance.randrange(3)}, {self.chance.randrange(9)})"
            " ON CONFLICT (id) DO UPDATE SET amount = items.amount + 1, region = EXCLUDED.region",
            f"UPDATE items SET amount = amount + 1 WHERE id % 4 = {lane}",
            f"DELETE FROM items WHERE id = {key}",
            f"UPDATE items SET id = id + 4 WHERE id = (SELECT max(id) FROM items WHERE id % 4 = {lane})",
        )
        connection.execute(self.chance.choice(statements).encode())

    def advance(self, minute: int) -> None:
        """Load, advance and load more in one transaction; remember what the table held at the advance."""
        self.change(self.loader, 3)
        self.loader.execute("SELECT pgtrickle.advance_watermark('items', %s)", (moment(minute),))
        rows = Counter(self.loader.execute("SELECT * FROM items").fetchall())
        self.change(self.loader, 3)
        self.loader.commit()
        self.seen["items"][self.shop.db.value("SELECT max(version) FROM pgtrickle.versions('items')")] = rows

    def refresh(self) -> None:
        """Refresh, and remember what the stream table holds."""
        self.shop.pt.refresh("sales")
        rows = Counter(self.shop.db.execute("SELECT * FROM sales"))
        newest = self.shop.db.value("SELECT max(version) FROM pgtrickle.versions('sales')")
        assert self.seen["sales"].setdefault(newest, rows) == rows

    def as_of(self, name: str, version: int, parts: int, part: int) -> Rows:
        query = f"SELECT * FROM pgtrickle.as_of_version(NULL::{name}, %s, %s, %s)"
        return Counter(self.shop.db.execute(query, version, parts, part))

    def changes(self, name: str, since: int, until: int, options: str) -> list[tuple[Any, ...]]:
        return self.shop.db.execute(CHANGES.format(name=name, options=options), since, until)


def played(shop: Shop, seed: int) -> History:
    """Play a random history of writers, advances and refreshes, with a feed on the source and on the stream table."""
    shop.db.execute("CREATE TABLE items (id int PRIMARY KEY, region int NOT NULL, amount int NOT NULL)")
    shop.db.execute("SELECT pgtrickle.create_feed('items', 'items')")
    shop.db.execute("SELECT pgtrickle.create_watermark_group('g', ARRAY['items'])")
    shop.pt.create_stream_table("sales", SALES, watermark_gating="hold_back")
    shop.db.execute("SELECT pgtrickle.create_feed('sales', 'sales')")
    writers = [shop.db.connect(autocommit=False) for _ in range(3)]
    history = History(shop, random.Random(seed), writers, shop.db.connect(autocommit=False))
    for minute in range(8):
        for _ in range(history.chance.randrange(5)):
            history.write()
        history.advance(minute)
        if history.chance.random() < 0.7:
            history.refresh()
    history.refresh()
    for writer in writers:
        writer.rollback()
    return history


@pytest.mark.parametrize("seed", first(1, range(8), 2))
def test_changes_lead_from_any_version_to_any_later_one(local_shop: Shop, seed: int) -> None:
    history = played(local_shop, seed)
    for name, seen in history.seen.items():
        for version, rows in seen.items():
            for parts in (1, 3):
                parted = [history.as_of(name, version, parts, part) for part in range(parts)]
                assert sum(parted, Counter()) == rows
        for since, until in combinations(sorted(seen), 2):
            for options in OPTIONS if history.chance.random() < 0.4 else OPTIONS[:1]:
                assert changed(seen[since], history.changes(name, since, until, options)) == seen[until]
            net = history.changes(name, since, until, ", 'net'")
            assert len(net) == (seen[since] - seen[until]).total() + (seen[until] - seen[since]).total()
    actions = [action for (action,) in local_shop.db.execute("SELECT action FROM pgtrickle.pgt_refresh_history")]
    assert "DIFFERENTIAL" in actions and "REINITIALIZE" not in actions


def test_changes_lead_from_one_watermark_to_another_as_it_was_read_back(local_shop: Shop) -> None:
    """The stream table skips watermarks: as of one in between it is what its last version before showed."""
    history = played(local_shop, 11)
    watermarks = dict(local_shop.db.execute("SELECT version, watermark FROM pgtrickle.versions('sales')"))
    known = {watermarks[version]: rows for version, rows in history.seen["sales"].items() if watermarks[version]}
    for since, until in combinations(sorted(known), 2):
        changes = local_shop.db.execute(BY_WATERMARK.format(name="sales"), since, until)
        assert changed(known[since], changes) == known[until]
        assert known[until] == Counter(local_shop.pt.as_of("sales", until).rows)


VALUES = """
CREATE TABLE odd (id int PRIMARY KEY, b bool, s int2, l int8, f float4, d float8, n numeric(10,2), free numeric,
    t text, v varchar(9), c char(3), raw bytea, day date, ts timestamp, tz timestamptz, j jsonb, u uuid, a int[],
    span interval);
INSERT INTO odd VALUES (1, true, -32768, 9223372036854775807, 0.5, 1e-300, -12345678.90, 1.10,
    E'a "quoted",\\n line\\r\\n', '', 'x', '\\x00ff', '0001-01-01', '1969-12-31 23:59:59.999999',
    '9999-12-31 23:59:59.999998+00', '{"k": [1, null]}', '00000000-0000-0000-0000-000000000001', '{1,NULL}', '1 mon');
INSERT INTO odd (id) VALUES (2);
INSERT INTO odd VALUES (3, false, 0, 0, 'NaN', '-Infinity', 0, 'NaN', '\\N', '\\.', '', '', '1970-01-01', '1970-01-01',
    'epoch', '[]', NULL, '{}', '0');
"""


def test_values_arrive_in_arrow_as_postgresql_has_them(local_shop: Shop) -> None:
    db = local_shop.db
    db.execute(VALUES.partition(";")[0])
    local_shop.pt.create_feed("odd", "odd")
    local_shop.pt.advance_watermark("odd", 1)
    db.execute(VALUES.partition(";")[2])
    local_shop.pt.advance_watermark("odd", 2)
    found = local_shop.pt.changes("odd", 1)
    query = "SELECT c._change_type, c._commit_version, c._commit_timestamp, (c.changed).* FROM"
    expected = db.connect().execute(f"{query} pgtrickle.changes_of_versions(NULL::odd, 1) AS c")
    assert found.column_names == [column.name for column in expected.description or ()]
    as_text = {"free", "j", "u", "a", "span"}
    for row, own in zip(found.to_pylist(), expected.fetchall(), strict=True):
        for (name, value), known in zip(row.items(), own, strict=True):
            same = value == known or repr(value) == repr(known)
            assert same or (name in as_text and (value is None) == (known is None)), (name, known)
    texts = ", ".join(f"{name}::text" for name in sorted(as_text))
    wanted = db.execute(f"SELECT {texts} FROM odd ORDER BY id")
    assert [tuple(row.values()) for row in found.select(sorted(as_text)).to_pylist()] == wanted


def test_a_value_that_arrow_does_not_have_is_refused(local_shop: Shop) -> None:
    local_shop.db.execute("CREATE TABLE days (id int PRIMARY KEY, day date)")
    local_shop.pt.create_feed("days", "days")
    local_shop.pt.advance_watermark("days", 1)
    local_shop.db.execute("INSERT INTO days VALUES (1, 'infinity')")
    local_shop.pt.advance_watermark("days", 2)
    with pytest.raises(PytrickleError, match="infinite dates"):
        local_shop.pt.changes("days", 1)
    with pytest.raises(NotRetained):
        local_shop.pt.changes("days", 0)
    with pytest.raises(NotFresh):
        local_shop.pt.changes("days", 1, 3)


def test_each_tick_holds_a_feed_to_its_limits_though_no_stream_table_reads_its_source(local_shop: Shop) -> None:
    local_shop.db.execute("SELECT pgtrickle.create_feed('f', 'orders', max_rows => 1000)")
    buffer = local_shop.db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    local_shop.tick()
    local_shop.db.execute("INSERT INTO orders SELECT i, 1, 1 FROM generate_series(100, 1099) AS i")
    local_shop.tick()
    reason = "SELECT cut_off_reason FROM pgtrickle.feeds()"
    assert local_shop.db.value(reason) is None
    local_shop.db.execute("INSERT INTO orders VALUES (2000, 1, 1)")
    local_shop.tick()
    assert local_shop.db.value(reason) == "more than 1000 changes waited to be read"
    assert local_shop.db.value(f"SELECT count(*) FROM {buffer}") == 0, "nothing grows for a feed that was cut off"
    shown = commands(local_shop.db.dsn)("status").stdout
    assert "Feeds" in shown and "cut off: more than 1000" in shown
