"""What is done to capture between a look at it and the snapshot that is read is shown by that, but was not captured.

The look is at what the snapshot shows: where that is not what was looked into, it is looked into first. What reads a
stream table that was just refreshed reads in a snapshot of its own, in which capture must be as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytrickle.database import Snapshots
from pytrickle.schedule import health
from pytrickle.schedule.record import Record
from tests.acceptance.conftest import Shop

SCHEMA = """
CREATE TABLE sales (id int, region int, amount int) PARTITION BY LIST (region);
CREATE TABLE sales_1 PARTITION OF sales FOR VALUES IN (1);
CREATE TABLE sales_2 PARTITION OF sales FOR VALUES IN (2);
CREATE TABLE sales_3 (id int, region int, amount int);
CREATE TABLE parent (id int, amount int);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE alone (id int, amount int);
CREATE TABLE factors (factor int);
CREATE VIEW doubled AS SELECT id, 2 * amount AS amount FROM orders;
INSERT INTO sales VALUES (1, 1, 10), (2, 2, 20);
INSERT INTO sales_3 VALUES (3, 3, 30);
INSERT INTO parent VALUES (1, 10);
INSERT INTO child VALUES (2, 20);
INSERT INTO alone VALUES (3, 30);
INSERT INTO factors VALUES (1);
INSERT INTO orders VALUES (1, 1, 10);
"""
QUERIES = {
    "of_orders": "SELECT id, amount FROM orders",
    "of_sales": "SELECT region, sum(amount) AS amount FROM sales GROUP BY region",
    "of_parent": "SELECT id, amount FROM parent",
    "of_a_view": "SELECT sum(amount) AS amount FROM doubled",
}
ALTERED = {
    "triggers off for a load": "BEGIN; ALTER TABLE orders DISABLE TRIGGER USER;"
    " INSERT INTO orders SELECT max(id) + 1, 1, 20 FROM orders; ALTER TABLE orders ENABLE TRIGGER USER; COMMIT",
    "truncated without triggers": "BEGIN; ALTER TABLE orders DISABLE TRIGGER USER; DELETE FROM orders;"
    " ALTER TABLE orders ENABLE TRIGGER USER; COMMIT",
    "partition attached": "ALTER TABLE sales ATTACH PARTITION sales_3 FOR VALUES IN (3)",
    "partition detached": "ALTER TABLE sales DETACH PARTITION sales_2",
    "partition dropped": "DROP TABLE sales_2",
    "child attached": "ALTER TABLE alone INHERIT parent",
    "child detached": "ALTER TABLE child NO INHERIT parent",
    "view replaced": "CREATE OR REPLACE VIEW doubled AS SELECT id, 3 * amount AS amount FROM orders",
    "gap noted": "INSERT INTO pgtrickle.pgt_capture_gaps VALUES ('orders', 'orders', 'it was told so')",
}
OFF, ON = "ALTER TABLE factors DISABLE TRIGGER USER", "ALTER TABLE factors ENABLE TRIGGER USER"
LOAD = f"{OFF}; INSERT INTO factors VALUES (10); {ON}"


@pytest.fixture
def altered(local_shop: Shop) -> Shop:
    """Stream tables over tables of several kinds, filled, with a change of each source that is still to come."""
    local_shop.db.execute(SCHEMA)
    for name, query in QUERIES.items():
        local_shop.pt.create_stream_table(name, query)
    local_shop.tick()
    local_shop.db.execute(
        "INSERT INTO orders VALUES (5, 1, 50); INSERT INTO sales VALUES (5, 1, 50); INSERT INTO parent VALUES (5, 50)"
    )
    return local_shop


def before_each_snapshot(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    export = Snapshots.export

    def after_another(self: Snapshots) -> Any:
        act()
        return export(self)

    monkeypatch.setattr(Snapshots, "export", after_another)


def assert_equal(shop: Shop, *names: str) -> None:
    for name in names:
        assert sorted(shop.db.execute(f"TABLE {name}")) == sorted(shop.db.execute(QUERIES[name])), name


@pytest.mark.parametrize("by_hand", [False, True], ids=["in a tick", "by hand"])
@pytest.mark.parametrize("action", ALTERED.values(), ids=ALTERED)
def test_what_was_done_after_the_look_is_looked_into_before_it_is_read(
    altered: Shop, monkeypatch: pytest.MonkeyPatch, action: str, by_hand: bool
) -> None:
    left = [action]
    with monkeypatch.context() as patched:
        before_each_snapshot(patched, lambda: left and altered.db.execute(left.pop()))
        if by_hand:
            for name in QUERIES:
                altered.pt.refresh(name)
        else:
            altered.tick()
    assert not left
    assert_equal(altered, *QUERIES)
    altered.assert_verified()
    assert {result.action for result in altered.tick().values()} == {"NO_DATA"}


def test_what_is_done_again_and_again_is_waited_out(altered: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: altered.db.execute(f"TABLE {name}") for name in QUERIES}
    with monkeypatch.context() as patched:
        before_each_snapshot(patched, lambda: altered.db.execute(ALTERED["triggers off for a load"]))
        results = altered.tick()
    assert {(each.action, each.reason) for each in results.values()} == {("SKIP", health.ALTERED_AGAIN)}
    assert {name: altered.db.execute(f"TABLE {name}") for name in QUERIES} == before
    assert altered.db.value("SELECT count(*) FROM pgtrickle.pgt_stream_tables WHERE last_error IS NOT NULL") == 0
    altered.tick()
    assert_equal(altered, *QUERIES)


def test_views_that_come_and_go_all_the_time_keep_nothing_waiting(
    altered: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = iter(range(1000))
    with monkeypatch.context() as patched:
        before_each_snapshot(patched, lambda: altered.db.execute(f"CREATE VIEW unrelated_{next(numbers)} AS SELECT 1"))
        results = altered.tick()
    assert results["of_orders"].action == "DIFFERENTIAL"
    assert_equal(altered, *QUERIES)


@pytest.mark.parametrize("rounds", [1, 3], ids=["a first change", "known changes"])
def test_no_later_snapshot_shows_what_was_not_captured(
    local_shop: Shop, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    local_shop.db.execute(SCHEMA)
    local_shop.pt.create_stream_table("sums", "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer")
    query = "SELECT s.customer, s.amount * f.factor AS amount FROM sums AS s CROSS JOIN factors AS f"
    local_shop.pt.create_stream_table("products", query)
    local_shop.tick()
    note, left = Record.note_done, [LOAD]

    def then_another(self: Record, relid: int, xid: str | None, reached: bool) -> None:
        note(self, relid, xid, reached)
        if left and xid:
            local_shop.db.execute(left.pop())

    for number in range(rounds):
        local_shop.db.execute("INSERT INTO orders VALUES (%s, 1, 1)", 100 + number)
        before = local_shop.rows("products")
        with monkeypatch.context() as patched:
            if number == rounds - 1:
                patched.setattr(Record, "note_done", then_another)
            results = local_shop.tick()
    assert not left
    assert (results["sums"].action, results["products"].action) == ("DIFFERENTIAL", "SKIP")
    assert results["products"].reason.startswith("What is captured of a source was altered meanwhile.")
    assert local_shop.rows("products") == before
    assert local_shop.tick()["products"].action == "REINITIALIZE"
    assert local_shop.rows("products") == set(local_shop.db.execute(query))
