"""Whole refreshes of little data: what they change is read by a statement that stays prepared, and no changes are."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytrickle.apply import few_rows
from pytrickle.catalog import change_ranges
from pytrickle.plan import refresh_plan
from pytrickle.refresh import remembered, templates
from tests.acceptance.conftest import SHOP, TABLES, Shop
from tests.acceptance.traces import traced, writing
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

KEPT = """
SELECT custom_plans, generic_plans FROM pg_prepared_statements WHERE statement LIKE 'WITH pgt_gate%%' || %s || '%%'
"""


@pytest.fixture
def filled(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """Stream tables that are computed anew each time, and one that takes in changes; some were refreshed before."""
    monkeypatch.setattr(remembered, "SLOW", 3600.0)
    monkeypatch.setattr("pytrickle.refresh.foresight.MOST_SECONDS_GUESSED", 3600.0)
    db.execute(SHOP)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        shop = Shop(db, client)
        for name in ("named", "totals"):
            client.create_stream_table(name, TABLES[name], refresh_mode="FULL")
        client.create_stream_table("changes", TABLES["named"], refresh_mode="DIFFERENTIAL")
        for number in range(1, 4):
            _order(shop, number)
            shop.tick()
        yield shop


@pytest.mark.parametrize("name", ["named", "totals"])
def test_what_a_whole_refresh_changes_is_read_by_a_plan_that_is_kept(filled: Shop, name: str, tmp_path: Path) -> None:
    connection = filled.pt._refreshing().connection
    for number in range(4, 7):
        _order(filled, number)
        with traced(tmp_path / "trace", [connection]) as messages:
            done = filled.pt.refresh(name)
        assert (done.action, done.rows_inserted > 0) == ("FULL", True)
        assert messages and not [each for each in messages if "COPY" in each.text]
    (found,) = connection.execute(KEPT, (f'"public"."{name}"',)).fetchall()
    # All but the first load, and the refresh after it, of which nothing is expected yet.
    assert found == (0, 4)
    filled.assert_verified()


def test_changes_that_turn_out_to_be_many_are_counted_once(filled: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, counts = list[object](), change_ranges._counts
    monkeypatch.setattr(change_ranges, "_counts", lambda each, timed: asked.append(each) or counts(each, timed))
    monkeypatch.setattr(refresh_plan, "FEW_CHANGES", 5)
    filled.db.execute("INSERT INTO orders SELECT n, 1, 10 FROM generate_series(10, 20) AS n")
    assert filled.pt.refresh("changes").rows_inserted == 11
    assert len(asked) == 1
    filled.tick()
    filled.assert_verified()


def test_many_rows_of_a_whole_refresh_are_copied(filled: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", 5)
    filled.db.execute("INSERT INTO orders SELECT n, 1, 10 FROM generate_series(10, 20) AS n")
    with traced(tmp_path / "trace", writing(filled)) as messages:
        assert filled.pt.refresh("named").rows_inserted == 11
    assert [each for each in messages if "COPY" in each.text]
    filled.tick()
    filled.assert_verified()


def test_a_statement_that_is_long_is_not_read_before_it_is_known_what_changed(
    filled: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = filled.pt._refreshing().planner
    number = filled.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'changes'")
    ranges = planner.templates.known[number].last.plan.ranges  # type: ignore[union-attr]
    assert planner.foreseen_read(number, ranges) is not None
    monkeypatch.setattr(templates, "MOST_GUESSED", 100)
    assert planner.foreseen_read(number, ranges) is None
    _order(filled, 4)
    assert filled.tick()["changes"].action == "DIFFERENTIAL"
    filled.assert_verified()


def test_no_changes_are_read_for_a_whole_refresh(filled: Shop) -> None:
    planner = filled.pt._refreshing().planner
    number = filled.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'changes'")
    ranges = planner.templates.known[number].last.plan.ranges  # type: ignore[union-attr]
    changes = planner.foreseen_read(number, ranges)
    assert changes is not None
    filled.pt.alter_stream_table("changes", refresh_mode="FULL")
    _order(filled, 4)
    assert filled.tick()["changes"].action == "FULL"
    (whole,) = planner.templates.known[number].wholes.values()
    assert whole and whole.few and whole.few != changes
    assert planner.foreseen_read(number, ranges) == whole.few


def _order(shop: Shop, number: int) -> None:
    shop.db.execute("INSERT INTO orders VALUES (%s, %s, 10)", number, 1 + number % 2)
