"""What a refresher expects of the next refresh by what it remembers: a read is guessed, and a way is chosen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from pytrickle.apply import few_rows
from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.change_ranges import uncounted_ranges
from pytrickle.refresh import remembered
from pytrickle.schedule import pass_
from tests.acceptance.conftest import SHOP, TABLES, Shop
from tests.conftest import Database
from tests.equivalence.local_engine import local_client


@pytest.fixture
def filled(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A stream table that took in few changes before, however long that took on this machine."""
    monkeypatch.setattr(remembered, "SLOW", 3600.0)
    monkeypatch.setattr("pytrickle.refresh.foresight.MOST_SECONDS_GUESSED", 3600.0)
    db.execute(SHOP)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        shop = Shop(db, client)
        client.create_stream_table("totals", TABLES["totals"])
        for number in (1, 2):
            _order(shop, number)
            shop.tick()
        yield shop


def test_a_bulk_load_is_not_computed_before_its_changes_are_counted(filled: Shop) -> None:
    _order(filled, 3)
    filled.tick()
    table = next(t for t in catalog.stream_tables(filled.pt._refreshing().connection) if t.name == "public.totals")
    filled.db.execute("INSERT INTO orders SELECT n, 1, 1 FROM generate_series(100, 16200) AS n")
    connection, planner = filled.pt._refreshing().connection, filled.pt._refreshing().planner
    few = planner.foreseen_read(table.pgt_id, uncounted_ranges(table, {}).values())
    assert few is not None
    assert [cursor.fetchone() for cursor in few_rows.ask_few(connection, few)] == [(False, None, None)] * len(
        [text for text in (few.rows, few.keyed) if text]
    )
    assert {result.action for result in filled.tick().values()} <= {"DIFFERENTIAL", "FULL"}
    filled.assert_verified()


def test_nothing_is_guessed_after_a_refresh_that_took_long(filled: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    _order(filled, 3)
    filled.tick()
    connection, planner = filled.pt._refreshing().connection, filled.pt._refreshing().planner
    table = next(t for t in catalog.stream_tables(connection) if t.name == "public.totals")
    _order(filled, 4)
    ranges = uncounted_ranges(table, {}).values()
    assert planner.foreseen_read(table.pgt_id, ranges) is not None
    monkeypatch.setattr("pytrickle.refresh.foresight.MOST_SECONDS_GUESSED", 0.0)
    assert planner.foreseen_read(table.pgt_id, ranges) is None


def test_which_way_is_chosen_in_the_same_transaction_where_asking_would_not_pay(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changes of customers were never taken in, and a whole refresh takes too little to ask, whatever it takes here."""
    monkeypatch.setattr(remembered, "SLOW", 3600.0)
    monkeypatch.setattr("pytrickle.refresh.choosing.NEAR", 3600.0)
    monkeypatch.setattr("pytrickle.plan.trial.WORTH_LIMITING", 3600.0)
    db.execute(SHOP)
    db.execute("INSERT INTO orders SELECT n, 1 + n % 2, 10 FROM generate_series(1, 6000) AS n; ANALYZE")
    done, at_once = list[bool](), pass_.refresh_at_once
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        shop = Shop(db, client)
        client.create_stream_table("named", TABLES["named"])
        for number in (7001, 7002, 7003):
            _order(shop, number)
            shop.tick()

        def noted(*given: Any) -> Any:
            result = at_once(*given)
            done.append(result is not None)
            return result

        monkeypatch.setattr(pass_, "refresh_at_once", noted)
        db.execute("INSERT INTO customers VALUES (3, 'Cyd')")
        shop.tick()
        assert done == [True]
        shop.assert_verified()


def _order(shop: Shop, number: int) -> None:
    shop.db.execute("INSERT INTO orders VALUES (%s, %s, 10)", number, 1 + number % 2)
