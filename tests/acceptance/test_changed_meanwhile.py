"""What others commit between the snapshot of a refresh of few rows and its commit comes later, and stops nothing."""

import select
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pytrickle.apply import commit
from pytrickle.catalog import change_ranges
from pytrickle.refresh import refresher
from pytrickle.schedule import pass_
from tests.acceptance.conftest import TABLES, Shop, clock, status

Meanwhile = Callable[[str], None]


@pytest.fixture(params=["first", "again"])
def again(request: pytest.FixtureRequest) -> bool:
    """Whether few changes were taken in before, so that the next refresh is one transaction from the beginning."""
    return bool(request.param == "again")


@pytest.fixture
def meanwhile(local_shop: Shop, again: bool, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Have a statement committed once, before the next refresh that computes where it writes begins to do so."""
    left: list[str] = []
    module, name = (pass_, "refresh_at_once") if again else (refresher, "commit_within")
    refreshed = getattr(module, name)

    def after_another(*arguments: Any) -> Any:
        if left:
            local_shop.db.execute(left.pop())
        return refreshed(*arguments)

    monkeypatch.setattr(module, name, after_another)
    return left.append


@pytest.fixture
def named(local_shop: Shop, again: bool) -> Shop:
    """A filled join of orders with customers; a change of an order is pending."""
    local_shop.pt.create_stream_table("named", TABLES["named"])
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20)")
    local_shop.tick()
    if again:
        local_shop.db.execute("UPDATE orders SET amount = 12 WHERE id = 1")
        local_shop.tick()
    local_shop.db.execute("UPDATE orders SET amount = 11 WHERE id = 1")
    return local_shop


def test_rows_of_another_source_are_read_as_they_were(named: Shop, meanwhile: Meanwhile) -> None:
    meanwhile("UPDATE customers SET name = 'Eve' WHERE id = 1")
    assert named.tick()["named"].action == "DIFFERENTIAL"
    assert named.rows("named") == {(1, "Ada", 11), (2, "Bob", 20)}
    named.assert_verified()
    assert named.tick()["named"].action == "DIFFERENTIAL"
    assert named.rows("named") == {(1, "Eve", 11), (2, "Bob", 20)}
    named.assert_verified()


def test_an_altered_schedule_stops_no_refresh(named: Shop, meanwhile: Meanwhile) -> None:
    meanwhile("SELECT pgtrickle.alter_stream_table('named', schedule => '1h')")
    assert named.tick()["named"].action == "DIFFERENTIAL"
    assert named.rows("named") == {(1, "Ada", 11), (2, "Bob", 20)}
    assert named.db.value("SELECT schedule FROM pgtrickle.pgt_stream_tables") == "1h"


def test_a_conflict_that_is_told_while_rows_are_still_sent_stops_no_refresh(
    named: Shop, meanwhile: Meanwhile, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask_to_apply, waited = commit.ask_to_apply, []

    def once_it_is_told(connection: psycopg.Connection, *arguments: Any) -> Any:
        waited.append(select.select([connection.fileno()], [], [], 5)[0])
        return ask_to_apply(connection, *arguments)

    monkeypatch.setattr(commit, "ask_to_apply", once_it_is_told)
    meanwhile("SELECT pgtrickle.alter_stream_table('named', schedule => '1h')")
    assert named.tick()["named"].action == "DIFFERENTIAL"
    assert named.rows("named") == {(1, "Ada", 11), (2, "Bob", 20)}
    assert waited and waited[0], "the conflict was there before the rows were sent"


@pytest.mark.parametrize("locked", [False, True], ids=["looked for changes after it", "waited for it"])
def test_an_empty_buffer_that_came_in_place_of_another_vouches_for_nothing(
    local_shop: Shop, monkeypatch: pytest.MonkeyPatch, locked: bool
) -> None:
    local_shop.pt.create_watermark_group("loads", ["orders"])
    local_shop.pt.create_stream_table("copied", "SELECT id FROM orders", watermark_gating="hold_back")
    local_shop.load("orders", "12:00", (1, 1, 10))
    local_shop.tick()
    local_shop.load("orders", "12:05", (2, 1, 20))
    looked = pass_.empty_buffers

    def after_repair(*arguments: Any) -> frozenset[str]:
        local_shop.db.execute("SELECT pgtrickle.repair_capture('orders')")
        return frozenset() if locked else looked(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(pass_, "empty_buffers", after_repair)
        assert local_shop.tick()["copied"].action == "SKIP"
    assert clock(status(local_shop, "copied").effective_watermark) == "12:00"
    assert local_shop.rows("copied") == {(1,)}
    local_shop.load("orders", "12:10")
    local_shop.tick()
    assert local_shop.rows("copied") == {(1,), (2,)}


def test_a_buffer_that_is_dropped_while_it_is_looked_into_stops_no_other_refresh(
    local_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_shop.pt.create_stream_table("copied", "SELECT id FROM orders")
    local_shop.pt.create_stream_table("named", "SELECT id, name FROM customers")
    local_shop.tick()
    local_shop.db.execute("INSERT INTO customers VALUES (77, 'new')")
    dropping = local_shop.db.connect(autocommit=False)
    dropping.execute("SELECT pgtrickle.drop_stream_table('copied')")
    looked = change_ranges._empty_unless_locked

    def after_the_drop(*arguments: Any) -> frozenset[str]:
        dropping.commit()
        return looked(*arguments)

    monkeypatch.setattr(change_ranges, "_empty_unless_locked", after_the_drop)
    actions = {result.stream_table: result.action for result in local_shop.pt.tick()}
    assert actions["public.named"] == "DIFFERENTIAL"
    assert (77, "new") in local_shop.rows("named")
