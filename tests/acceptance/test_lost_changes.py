"""Ways in which systems like this one have lost or doubled changes: none of them happens here, and none is healed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from pytrickle.catalog import stream_table as catalog
from pytrickle.catalog.past_refreshes import evidence
from tests.acceptance.conftest import Shop, advance

PLAIN = "SELECT customer, amount FROM sales"
TOTALS = "SELECT customer, count(*) AS n, sum(amount) AS amount FROM sales GROUP BY customer"
KINDS = "SELECT DISTINCT amount FROM sales"
BUFFERED = "SELECT count(*) FROM {}"


@pytest.fixture
def sales(local_shop: Shop) -> Shop:
    """Sales without any key, in which rows may be there twice, and three kinds of stream tables over them."""
    local_shop.db.execute("CREATE TABLE sales (customer int, amount int)")
    local_shop.db.execute("INSERT INTO sales VALUES (1, 10), (1, 10), (2, NULL), (NULL, 5)")
    for name, query in {"plain": PLAIN, "totals": TOTALS, "kinds": KINDS}.items():
        local_shop.pt.create_stream_table(name, query)
    local_shop.tick()
    return local_shop


def assert_followed(shop: Shop, *names: str) -> None:
    """Tick: the tables named are refreshed differentially, nothing fails, and all are right."""
    results = shop.tick()
    assert {name: results[name].action for name in names} == dict.fromkeys(names, "DIFFERENTIAL")
    shop.assert_verified()


def as_it_is(shop: Shop, query: str, name: str) -> None:
    """Compare with the query as PostgreSQL answers it now, rows that are there twice counted twice."""
    assert Counter(shop.db.execute(f"TABLE {name}")) == Counter(shop.db.execute(query))


def buffered(shop: Shop) -> int:
    buffer = shop.db.value("SELECT buffer FROM pgtrickle.pgt_change_tracking WHERE source_relid = 'sales'::regclass")
    return int(shop.db.value(BUFFERED.format(buffer)))


def roll_back_and_commit(writer: psycopg.Connection[Any]) -> None:
    writer.execute("ROLLBACK TO before_more")
    writer.commit()


END: dict[str, Callable[[psycopg.Connection[Any]], object]] = {
    "commit": lambda writer: writer.commit(),
    "prepare": lambda writer: writer.execute("PREPARE TRANSACTION 'open'"),
    "savepoint": roll_back_and_commit,
}


@pytest.mark.parametrize("end", END)
def test_clean_up_leaves_what_a_writer_has_not_committed_yet(sales: Shop, end: str) -> None:
    """Its changes are older, by number and position, than those that every reader shows and that are deleted."""
    writer = sales.db.connect(autocommit=False)
    writer.execute("INSERT INTO sales VALUES (3, 30), (3, 30)")
    writer.execute("SAVEPOINT before_more")
    writer.execute("DELETE FROM sales WHERE customer = 2" if end == "savepoint" else "SELECT")
    for amount in (1, 2):
        sales.db.execute(f"INSERT INTO sales VALUES (4, {amount})")
        assert_followed(sales, "plain", "totals")
    assert buffered(sales) == 0, "what everybody shows was cleaned up, and nobody sees the rest"
    END[end](writer)
    if end == "prepare":
        sales.tick()
        sales.db.execute("INSERT INTO sales VALUES (4, 3)")
        assert_followed(sales, "plain", "totals")
        sales.db.execute("COMMIT PREPARED 'open'")
    assert_followed(sales, "plain", "totals")
    as_it_is(sales, PLAIN, "plain")
    as_it_is(sales, TOTALS, "totals")
    assert buffered(sales) == 0


def test_clean_up_keeps_what_any_reader_still_needs(sales: Shop) -> None:
    """One is paused, one is gated, one holds back, one is new; every one of them catches up by its own delta."""
    sales.pt.create_watermark_group("loads", ["sales"])
    sales.pt.create_stream_table("held", PLAIN, watermark_gating="hold_back")
    with sales.db.connect() as loader:
        advance(loader, "sales", "12:00")
    sales.tick()
    sales.pt.pause("totals")
    for amount in range(100, 104):
        sales.db.execute(f"INSERT INTO sales VALUES (5, {amount}), (5, {amount})")
        sales.db.execute(f"DELETE FROM sales WHERE ctid = (SELECT min(ctid) FROM sales WHERE amount = {amount})")
        assert_followed(sales, "plain", "kinds")
    assert buffered(sales) == 12, "two tables are behind"
    sales.pt.create_stream_table("newest", TOTALS)
    assert sales.tick()["newest"].action == "FULL"
    sales.db.execute("UPDATE sales SET amount = amount + 1 WHERE customer = 5")
    assert_followed(sales, "plain", "newest")
    sales.pt.resume("totals")
    assert_followed(sales, "totals")
    as_it_is(sales, TOTALS, "totals")
    with sales.db.connect() as loader:
        advance(loader, "sales", "12:05")
    assert_followed(sales, "held")
    as_it_is(sales, PLAIN, "held")
    assert buffered(sales) == 0


CHANGES = (
    "INSERT INTO sales VALUES (1, 10)",
    "DELETE FROM sales WHERE ctid = (SELECT min(ctid) FROM sales WHERE customer = 1)",
    "UPDATE sales SET amount = 11 WHERE ctid = (SELECT min(ctid) FROM sales WHERE customer = 1)",
    "UPDATE sales SET amount = 10 WHERE amount = 11",
    "UPDATE sales SET customer = NULL WHERE customer = 2",
    "INSERT INTO sales SELECT * FROM sales",
    "DELETE FROM sales WHERE ctid IN (SELECT min(ctid) FROM sales GROUP BY customer, amount)",
    "UPDATE sales SET amount = amount",
    "DELETE FROM sales",
    "INSERT INTO sales VALUES (NULL, NULL), (NULL, NULL), (1, 10)",
)


def test_changes_of_rows_without_a_key_cancel_out_one_by_one(sales: Shop) -> None:
    for change in CHANGES:
        sales.db.execute(change)
        results = sales.tick()
        assert {results[name].action for name in ("plain", "totals", "kinds")} == {"DIFFERENTIAL"}, change
        for name, query in {"plain": PLAIN, "totals": TOTALS, "kinds": KINDS}.items():
            as_it_is(sales, query, name)


def test_many_changes_of_rows_without_a_key_at_once_are_what_they_are_one_by_one(sales: Shop) -> None:
    sales.pt.pause("plain")
    for change in CHANGES:
        sales.db.execute(change)
        sales.tick()
    sales.pt.resume("plain")
    assert_followed(sales, "plain")
    as_it_is(sales, PLAIN, "plain")


def test_a_client_that_runs_for_long_notices_every_source_that_comes_in(sales: Shop) -> None:
    """What it remembers of definitions, buffers and the system catalogs never hides a source from it."""
    sales.db.execute("CREATE TABLE others (customer int, amount int); CREATE TABLE third (customer int, amount int)")
    sales.db.execute("CREATE VIEW seen AS SELECT customer, amount FROM others")
    sales.pt.create_stream_table("viewed", "SELECT customer, amount FROM seen")
    sales.tick()

    def follows(source: str, *names: str) -> None:
        for amount in (7, 8):
            sales.db.execute(f"INSERT INTO {source} VALUES (9, {amount})")
            assert_followed(sales, *names)

    follows("others", "viewed")
    sales.pt.alter_stream_table("plain", query="SELECT customer, amount FROM others UNION ALL TABLE third")
    sales.tick()
    follows("third", "plain")
    follows("others", "plain", "viewed")
    sales.db.execute("CREATE OR REPLACE VIEW seen AS SELECT customer, amount FROM third")
    sales.tick()
    follows("third", "plain", "viewed")
    sales.pt.drop_stream_table("viewed")
    sales.pt.create_stream_table("viewed", "SELECT amount FROM sales")
    sales.tick()
    follows("sales", "viewed", "totals")
    sales.pt.create_stream_table("above", "SELECT amount FROM viewed")
    sales.tick()
    follows("sales", "viewed", "above")


def test_a_source_that_came_in_during_a_tick_is_followed_by_the_next(sales: Shop) -> None:
    sales.db.execute("CREATE TABLE others (customer int, amount int)")
    late = iter(["late"])

    def create(_: object) -> None:
        for name in late:
            sales.db.execute("SELECT pgtrickle.create_stream_table(%s, 'SELECT amount FROM others')", name)
            sales.db.execute("INSERT INTO others VALUES (1, 1)")

    sales.db.execute("INSERT INTO sales VALUES (1, 1)")
    assert not [result for result in sales.pt.tick(create) if result.error]
    assert sales.tick()["late"].rows_inserted == 1
    sales.db.execute("INSERT INTO others VALUES (1, 2)")
    assert_followed(sales, "late")


def test_a_whole_refresh_is_never_taken_for_a_differential_one(sales: Shop) -> None:
    """What came and went makes a delta fail and the whole query not: that costs what a whole refresh costs."""
    sales.pt.create_stream_table("shares", "SELECT customer, 100 / amount AS share FROM sales")
    sales.tick()
    for _ in range(3):
        sales.db.execute("INSERT INTO sales VALUES (6, 0)")
        sales.db.execute("DELETE FROM sales WHERE customer = 6")
        sales.db.execute("INSERT INTO sales VALUES (7, 7)")
        result = sales.tick()["shares"]
        assert result.action == "FULL" and "SQLSTATE 22012" in result.reason
        assert sales.tick()["shares"].action == "REINITIALIZE"
    sales.db.execute("INSERT INTO sales VALUES (7, 8)")
    assert_followed(sales, "shares")
    (newest, *older) = [row for row in sales.pt.history("shares") if row.status == "COMPLETED"]
    assert newest.action == "DIFFERENTIAL"
    assert {row.action for row in older} == {"FULL", "REINITIALIZE"}
    with sales.db.connect() as reading:
        pgt_id = catalog.resolve_name(reading, "shares")
        known = evidence(reading, catalog.stream_table(reading, pgt_id))
    assert [past.whole for past in known.refreshes] == [False, True, True, True]
