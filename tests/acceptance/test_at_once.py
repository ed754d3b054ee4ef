"""A refresh of few changes, after one that took in few: one transaction of few statements, all of it or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytrickle.apply import few_rows
from pytrickle.refresh import at_once, remembered
from pytrickle.schedule import pass_
from tests.acceptance.conftest import SHOP, TABLES, Shop
from tests.acceptance.traces import every, traced, writing
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

MOST_STATEMENTS = 12
MOST_ROUND_TRIPS = 12
# What is read of a stream table, and whether its definition stands as it did.
PLANNED = """
SELECT custom_plans, generic_plans FROM pg_prepared_statements
WHERE statement ~ 'AS number[)]\\s*SELECT s.pgt_id|WITH asked AS'
"""
QUERIES = {
    **TABLES,
    "lowest": "SELECT customer, min(amount) AS least, max(id) AS last FROM orders GROUP BY customer",
    "kinds": "SELECT DISTINCT customer, amount FROM orders",
    "first_two": "SELECT id, amount FROM orders ORDER BY id LIMIT 2",
    "onward": "SELECT t.customer, t.amount, o.id FROM totals AS t JOIN orders AS o ON o.customer = t.customer",
}


@pytest.fixture
def filled(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    """A stream table of each kind, and one that reads another beside its source; few changes were taken in before.

    After a slow refresh the history is asked for the next one's way, and no read is guessed, which a busy machine must
    not cause here.
    """
    monkeypatch.setattr(remembered, "SLOW", 3600.0)
    monkeypatch.setattr("pytrickle.refresh.foresight.MOST_SECONDS_GUESSED", 3600.0)
    db.execute(SHOP)
    with local_client(db.dsn, max_concurrent_refreshes=1) as (client, _):
        shop = Shop(db, client)
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, diamond_consistency="none")
        for number in (1, 2):
            _order(shop, number)
            shop.tick()
        yield shop


def test_it_takes_few_statements(filled: Shop, tmp_path: Path) -> None:
    _order(filled, 3)
    counts = _counted(filled, tmp_path / "trace")
    assert len(counts) == len(QUERIES)
    assert min(counts) > 6 and max(counts) <= MOST_STATEMENTS, counts
    filled.assert_verified()


def test_few_rows_are_read_by_statements_that_stay_prepared(filled: Shop, tmp_path: Path) -> None:
    for number in (3, 4):
        _order(filled, number)
        filled.tick()
    _order(filled, 5)
    sent = _sent(filled, tmp_path / "trace")
    assert {kind for kind, _ in sent} >= {"Bind", "Execute"}
    texts = [text for kind, text in sent if kind in {"Query", "Parse"}]
    assert not [text for text in texts if "COPY" in text or "pgtrickle_changes.changes_" in text]
    filled.assert_verified()


def test_rows_are_applied_by_plans_that_are_kept(filled: Shop) -> None:
    for number in range(3, 10):
        _order(filled, number)
        filled.tick()
    connection = filled.pt._refreshing().connection
    found = connection.execute(
        "SELECT custom_plans, generic_plans FROM pg_prepared_statements"
        " WHERE statement ~ '^WITH [ci] AS MATERIALIZED .*(unnest|ROWS FROM)'"
    ).fetchall()
    assert len(found) > len(QUERIES) and {custom for custom, _ in found} == {0}
    assert sum(generic for _, generic in found) > len(found)


def test_many_rows_of_few_changes_are_copied_until_they_are_few_again(
    filled: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(few_rows, "MOST_ROWS", 5)
    monkeypatch.setattr(few_rows, "MOST_GROUPS", 5)
    monkeypatch.setattr(at_once, "MOST_GROUPS", 5)
    filled.pt.create_stream_table("pairs", "SELECT o.id, p.id AS other FROM orders AS o CROSS JOIN orders AS p")
    filled.tick()
    copies = []
    for statement in (
        "INSERT INTO orders VALUES (11, 1, 10)",
        "INSERT INTO orders VALUES (12, 1, 10)",
        "DELETE FROM orders WHERE id > 1",
        "INSERT INTO orders VALUES (13, 1, 10)",
        "UPDATE orders SET amount = 11 WHERE id = 13",
    ):
        filled.db.execute(statement)
        sent = _sent(filled, tmp_path / "trace")
        copies.append(sum("COPY" in text for kind, text in sent if kind == "Query"))
        if copies[-1]:
            assert filled.pt.verify("pairs").matches
    assert copies[1] and not copies[-1], copies
    filled.assert_verified()


def test_a_refresh_of_one_table_looks_into_its_own_buffers(filled: Shop, tmp_path: Path) -> None:
    filled.db.execute("CREATE TABLE others (id int PRIMARY KEY); INSERT INTO others VALUES (1)")
    filled.pt.create_stream_table("copied", "SELECT id FROM others")
    filled.tick()
    own, other = (str(filled.db.value(f"SELECT '{name}'::regclass::oid")) for name in ("orders", "others"))
    _order(filled, 3)
    filled.db.execute("INSERT INTO others VALUES (2)")
    with traced(tmp_path / "trace", every(filled)) as messages:
        assert filled.pt.refresh("totals").action == "DIFFERENTIAL"
    said = "".join(each.text for each in messages if each.sent)
    assert f"{{{own}}}" in said
    assert f"changes_{other}" not in said and f"{other}" not in said


def test_a_refresh_by_hand_takes_few_round_trips(filled: Shop, tmp_path: Path) -> None:
    for number in range(3, 10):
        _order(filled, number)
        assert filled.pt.refresh("totals").action == "DIFFERENTIAL"
    _order(filled, 10)
    with traced(tmp_path / "trace", every(filled)) as messages:
        assert filled.pt.refresh("totals").action == "DIFFERENTIAL"
    waits = [each for each in messages if each.sent and each.kind in {"Query", "Sync"}]
    assert 0 < len(waits) <= MOST_ROUND_TRIPS, len(waits)
    assert not [each for each in messages if "awaited_moments" in each.text], "no stream table has a cron schedule"
    planned = [found for connection in every(filled) for found in connection.execute(PLANNED, prepare=False).fetchall()]
    assert len(planned) == 2 and all(generic for _, generic in planned), planned


def test_what_reads_another_stream_table_stands_at_the_same_cut(filled: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    refreshed: list[str] = []
    at_once = pass_.refresh_at_once

    def after_another(*arguments: Any) -> Any:
        refreshed.append(arguments[1].name)
        if arguments[1].name == "public.onward":
            _order(filled, 4)
        done = at_once(*arguments)
        assert done is not None
        return done

    monkeypatch.setattr(pass_, "refresh_at_once", after_another)
    _order(filled, 3)
    assert {result.action for result in filled.tick().values()} == {"DIFFERENTIAL"}
    assert set(refreshed) == {f"public.{name}" for name in QUERIES}
    assert {number for *_, number in filled.rows("onward")} == {1, 2, 3}
    filled.assert_verified()
    monkeypatch.undo()
    assert {result.action for result in filled.tick().values()} == {"DIFFERENTIAL"}
    assert {number for *_, number in filled.rows("onward")} == {1, 2, 3, 4}
    filled.assert_verified()


def test_nothing_is_stored_where_its_history_cannot_be(filled: Shop) -> None:
    filled.db.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END';"
        "CREATE TRIGGER refuse BEFORE INSERT ON pgtrickle.pgt_refresh_history FOR EACH ROW"
        " WHEN (NEW.status = 'COMPLETED') EXECUTE FUNCTION refuse()"
    )
    before = {name: filled.rows(name) for name in TABLES}
    frontiers = filled.db.execute("SELECT frontier::text FROM pgtrickle.pgt_dependencies ORDER BY pgt_id, source_relid")
    _order(filled, 3)
    assert {result.action for result in filled.pt.tick()} == {"FAILED", "SKIP"}
    assert {name: filled.rows(name) for name in TABLES} == before
    assert frontiers == filled.db.execute(
        "SELECT frontier::text FROM pgtrickle.pgt_dependencies ORDER BY pgt_id, source_relid"
    )
    filled.db.execute("DROP FUNCTION refuse CASCADE")
    assert not any(result.error for result in filled.pt.tick())
    filled.assert_verified()


@pytest.mark.parametrize("name", ["named", "totals"])
def test_rows_are_refused_where_another_refresh_came_first(
    filled: Shop, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = pass_.refresh_at_once

    def outrun(refresher: Any, table: Any, *others: Any) -> Any:
        behind = table.name == f"public.{name}"
        return at_once(
            refresher, replace(table, frontier_version=table.frontier_version - 1) if behind else table, *others
        )

    monkeypatch.setattr(pass_, "refresh_at_once", outrun)
    before = filled.rows(name)
    _order(filled, 3)
    result = filled.tick()[name]
    assert result.action == "SKIP" and "committed first" in result.reason, result
    assert filled.rows(name) == before
    monkeypatch.setattr(pass_, "refresh_at_once", at_once)
    assert filled.tick()[name].action == "DIFFERENTIAL"
    filled.assert_verified()


def test_a_lost_aggregate_state_is_made_anew(filled: Shop) -> None:
    number = filled.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'totals'")
    filled.db.execute(f"DROP TABLE pgtrickle_state.state_{number}")
    _order(filled, 3)
    assert filled.tick()["totals"].action == "REINITIALIZE"
    filled.assert_verified()


@pytest.mark.repeats
def test_a_query_that_was_altered_is_planned_anew(filled: Shop) -> None:
    filled.pt.alter_stream_table("named", query=TABLES["named"].replace("= o.customer", "= o.id"))
    _order(filled, 3)
    assert filled.tick()["named"].action == "REINITIALIZE"
    filled.assert_verified()


def test_a_definition_that_came_to_mean_something_else_is_planned_anew(filled: Shop) -> None:
    """A NULL among those that are left out leaves nothing: a plan that was made while there could be none is wrong."""
    filled.db.execute("CREATE TABLE banned (customer int NOT NULL)")
    query = "SELECT id FROM orders WHERE customer NOT IN (SELECT customer FROM banned)"
    filled.pt.create_stream_table("allowed", query, refresh_mode="DIFFERENTIAL")
    for number in (3, 4):
        filled.tick()
        _order(filled, number)
        filled.db.execute("INSERT INTO banned VALUES (%s)", 10 + number)
    assert filled.tick()["allowed"].action == "DIFFERENTIAL" and filled.rows("allowed")
    filled.db.execute("ALTER TABLE banned ALTER customer DROP NOT NULL")
    filled.db.execute("INSERT INTO banned VALUES (NULL)")
    filled.tick()
    assert not filled.rows("allowed")
    filled.assert_verified()


def test_what_was_read_for_an_older_definition_is_passed_over(filled: Shop) -> None:
    filled.db.execute("CREATE TABLE labels (id int PRIMARY KEY, label text)")
    query = "SELECT o.id, l.label FROM orders AS o LEFT JOIN labels AS l USING (id)"
    filled.pt.create_stream_table("labelled", query)
    for number in (3, 4, 5):
        filled.tick()
        _order(filled, number)
    filled.tick()
    filled.db.execute("ALTER TABLE labels RENAME TO marks")
    _order(filled, 6)
    result = filled.tick()["labelled"]
    assert (result.action, result.error) == ("DIFFERENTIAL", None)
    filled.assert_verified()


def _order(shop: Shop, number: int) -> None:
    shop.db.execute("INSERT INTO orders VALUES (%s, %s, 10)", number, 1 + number % 2)


def _sent(shop: Shop, trace: Path) -> list[tuple[str, str]]:
    """Tick, and return what kind of messages the refresher sent, each with what it says."""
    with traced(trace, writing(shop)) as messages:
        shop.tick()
    return [(each.kind, each.text) for each in messages if each.sent]


def _counted(shop: Shop, trace: Path) -> list[int]:
    """Tick, and count for each transaction that refreshes what the refresher sent."""
    with traced(trace, writing(shop)) as messages:
        shop.tick()
    counts: list[int] = []
    refreshes = False
    for each in messages:
        if each.sent and "BEGIN ISOLATION LEVEL REPEATABLE READ; " in each.text:
            counts.append(0)
            refreshes = True
        if refreshes and each.sent and each.kind in {"Query", "Execute"}:
            counts[-1] += 1
        if each.kind == "CommandComplete" and "COMMIT" in each.text:
            refreshes = False
    return counts
