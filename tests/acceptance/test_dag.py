"""Stream tables over stream tables: one tick reaches the deepest, at one cut of the base tables."""

from __future__ import annotations

from typing import Any

import pytest

from pytrickle.errors import InvalidArgument
from tests.acceptance.conftest import Shop

ORDER_SUMMARY = "SELECT id, sum(amount) AS amount FROM orders GROUP BY id"
LINE_SUMMARY = "SELECT order_id, count(*) AS lines, sum(quantity) AS quantity FROM order_lines GROUP BY order_id"
ORDER_REPORT = "SELECT o.id, o.amount, l.lines FROM order_summary o JOIN line_summary l ON l.order_id = o.id"


def create_report(shop: Shop, gating: str = "auto") -> None:
    """Create the DAG: order_report over order_summary and line_summary, whose sources form a watermark group."""
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    tables = {"order_summary": ORDER_SUMMARY, "line_summary": LINE_SUMMARY, "order_report": ORDER_REPORT}
    for name, query in tables.items():
        shop.pt.create_stream_table(name, query, watermark_gating=gating)


def actions(results: dict[str, Any]) -> dict[str, str]:
    return {name: result.action for name, result in results.items()}


def test_report_is_gated_through_intermediate_tables_that_refresh_freely(shop: Shop) -> None:
    create_report(shop)
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 5))
    shop.tick()
    shop.load("orders", "12:05", (2, 1, 20))
    shop.db.execute("INSERT INTO order_lines VALUES (2, 1, 6)")
    results = shop.tick()
    assert actions(results) == {"order_summary": "DIFFERENTIAL", "line_summary": "DIFFERENTIAL", "order_report": "SKIP"}
    assert "public.order_lines is 5 min behind public.orders" in results["order_report"].reason
    assert shop.rows("order_summary") == {(1, 10), (2, 20)}
    assert shop.rows("order_report") == {(1, 10, 1)}
    shop.load("order_lines", "12:05", (2, 2, 7))
    assert actions(shop.tick())["order_report"] == "DIFFERENTIAL"
    assert shop.rows("order_report") == {(1, 10, 1), (2, 20, 2)}
    shop.assert_verified()


def test_held_back_chain_is_exact_at_every_level(shop: Shop) -> None:
    create_report(shop, "hold_back")
    shop.load("orders", "12:00", (1, 1, 10), (2, 1, 20))
    shop.load("order_lines", "12:00", (1, 1, 5), (2, 1, 6))
    shop.tick()
    shop.load("orders", "12:05", (3, 1, 30))
    shop.db.execute("DELETE FROM orders WHERE id = 1")
    shop.db.execute("INSERT INTO order_lines VALUES (1, 2, 9), (3, 1, 9)")
    for _ in range(2):
        results = shop.tick()
        assert set(actions(results).values()) == {"NO_DATA"}
        assert {f"{result.effective_watermark:%H:%M}" for result in results.values()} == {"12:00"}
        assert shop.rows("order_report") == {(1, 10, 1), (2, 20, 1)}
        assert shop.rows("order_summary") == {(1, 10), (2, 20)}
    shop.load("order_lines", "12:05")
    assert {f"{result.effective_watermark:%H:%M}" for result in shop.tick().values()} == {"12:05"}
    assert shop.rows("order_summary") == {(1, 10), (2, 20), (3, 30)}
    assert shop.rows("order_report") == {(1, 10, 2), (2, 20, 1), (3, 30, 1)}
    shop.load("orders", "12:10")
    shop.load("order_lines", "12:10")
    shop.tick()
    assert shop.rows("order_report") == {(2, 20, 1), (3, 30, 1)}
    shop.assert_verified()


def test_manual_refresh_of_a_held_back_table_takes_along_what_it_reads(shop: Shop) -> None:
    create_report(shop, "hold_back")
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 5))
    result = shop.pt.refresh("order_report")
    assert (result.stream_table, result.rows_inserted) == ("public.order_report", 1)
    assert shop.rows("order_report") == {(1, 10, 1)}
    shop.assert_verified()


def create_chain(shop: Shop) -> None:
    shop.pt.create_stream_table("deep_1", "SELECT id, customer, amount * 2 AS amount FROM orders WHERE amount > 0")
    shop.pt.create_stream_table("deep_2", "SELECT customer, sum(amount) AS amount FROM deep_1 GROUP BY customer")
    shop.pt.create_stream_table("deep_3", "SELECT c.name, d.amount FROM deep_2 d JOIN customers c ON c.id = d.customer")
    shop.pt.create_stream_table("deep_4", "SELECT count(*) AS customers, sum(amount) AS amount FROM deep_3")


def test_chain_reaches_the_deepest_table_in_one_tick(shop: Shop) -> None:
    create_chain(shop)
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    assert list(actions(shop.tick())) == ["deep_1", "deep_2", "deep_3", "deep_4"]
    assert shop.rows("deep_4") == {(1, 20)}
    shop.db.execute("INSERT INTO orders VALUES (2, 2, 5), (3, 1, 1)")
    assert set(actions(shop.tick()).values()) == {"DIFFERENTIAL"}
    assert shop.rows("deep_4") == {(2, 32)}
    shop.db.execute("DELETE FROM orders WHERE customer = 2")
    shop.tick()
    assert shop.rows("deep_3") == {("Ada", 22)}
    assert shop.rows("deep_4") == {(1, 22)}
    shop.assert_verified()


def test_change_that_changes_nothing_does_not_cascade(shop: Shop) -> None:
    create_chain(shop)
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.tick()
    shop.db.execute("UPDATE orders SET amount = amount")
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 7)")
    shop.db.execute("DELETE FROM orders WHERE id = 2")
    results = shop.tick()
    assert (results["deep_1"].rows_inserted, results["deep_1"].rows_deleted) == (0, 0)
    assert {results[name].action for name in ("deep_2", "deep_3", "deep_4")} == {"NO_DATA"}


def test_full_refresh_upstream_leaves_the_table_below_differential(shop: Shop) -> None:
    shop.pt.create_stream_table(
        "ranked", "SELECT id, rank() OVER (ORDER BY amount) AS place FROM orders", refresh_mode="FULL"
    )
    shop.pt.create_stream_table("winners", "SELECT id FROM ranked WHERE place = 1")
    shop.db.execute("INSERT INTO orders SELECT n, 1, n FROM generate_series(1, 20) AS n")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (21, 1, 21)")
    results = shop.tick()
    assert (results["ranked"].action, results["ranked"].rows_inserted, results["ranked"].rows_deleted) == ("FULL", 1, 0)
    reason, *_ = results["winners"].reason.split(";")
    assert (results["winners"].action, reason) == ("DIFFERENTIAL", "1 changed row")
    assert shop.rows("winners") == {(1,)}


def test_all_tables_of_a_tick_stand_at_the_same_cut_of_the_base_tables(shop: Shop) -> None:
    shop.pt.create_stream_table("plain", "SELECT id FROM orders")
    shop.pt.create_stream_table("ranked", "SELECT id, row_number() OVER (ORDER BY id) AS rank FROM orders")
    shop.pt.create_stream_table("over_plain", "SELECT p.id, o.amount FROM plain p JOIN orders o ON o.id = p.id")
    shop.pt.create_stream_table(
        "full_over_plain", "SELECT o.id AS base, p.id AS upstream FROM orders o FULL JOIN plain p ON p.id = o.id"
    )
    shop.pt.create_stream_table("counted", "SELECT count(*) AS n FROM orders")
    names = {"plain", "ranked", "over_plain", "full_over_plain", "counted"}
    numbers = iter(range(1000, 2000))

    def write(result: Any) -> None:
        """Commit changes to the base table between two stream tables of one tick."""
        shop.db.execute("INSERT INTO orders VALUES (%s, 1, 1)", next(numbers))
        shop.db.execute("UPDATE orders SET amount = amount + 1")
        shop.db.execute("DELETE FROM orders WHERE id = (SELECT min(id) FROM orders)")

    shop.db.execute("INSERT INTO orders SELECT n, 1, 1 FROM generate_series(1, 50) AS n")
    for _ in range(4):
        shown = {row[0] for row in shop.db.execute("SELECT id FROM orders")}
        amounts = set(shop.db.execute("SELECT id, amount FROM orders"))
        results = shop.pt.tick(write)
        assert {result.stream_table for result in results} == {f"public.{name}" for name in names}
        assert not [result.error for result in results if result.error]
        assert {row[0] for row in shop.rows("plain")} == shown
        assert {row[0] for row in shop.rows("ranked")} == shown
        assert shop.rows("over_plain") == amounts
        assert shop.rows("full_over_plain") == {(number, number) for number in shown}
        assert shop.rows("counted") == {(50,)}
        shop.assert_verified()


def test_table_joined_with_its_own_base_counts_every_change_once(shop: Shop) -> None:
    shop.pt.create_stream_table("order_summary", "SELECT customer, count(*) AS n FROM orders GROUP BY customer")
    query = "SELECT o.id, o.amount, s.n FROM orders o JOIN order_summary s ON s.customer = o.customer"
    shop.pt.create_stream_table("shares", query)
    for change in (
        "INSERT INTO orders SELECT n, 1 + n % 2, n FROM generate_series(1, 9) AS n",
        "UPDATE orders SET customer = 3 - customer WHERE id < 4",
        "DELETE FROM orders WHERE customer = 1",
        "INSERT INTO orders VALUES (50, 1, 5); UPDATE orders SET amount = amount + 1",
    ):
        shop.db.execute(change)
        shop.tick()
        assert shop.rows("shares") == set(shop.db.execute(query))
    shop.assert_verified()


@pytest.fixture
def poisoned(shop: Shop) -> Shop:
    """A failing table with dependents of two depths, one of them a diamond, and tables that have no part in it."""
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.pt.create_stream_table("poison", "SELECT id, customer, 100 / amount AS share FROM orders")
    shop.pt.create_stream_table("below", "SELECT id, share FROM poison")
    shop.pt.create_stream_table("sound", "SELECT id, amount FROM orders")
    both = "SELECT b.id, s.amount, b.share FROM below b JOIN sound s ON s.id = b.id"
    shop.pt.create_stream_table("diamond", both, diamond_consistency="none")
    shop.pt.create_stream_table("bystander", "SELECT count(*) AS n FROM orders")
    shop.tick()
    shop.db.execute("UPDATE orders SET amount = 20; INSERT INTO orders VALUES (2, 1, 0)")
    return shop


def test_failed_table_skips_all_that_depends_on_it_and_nothing_else(poisoned: Shop) -> None:
    results = {result.stream_table.partition(".")[2]: result for result in poisoned.pt.tick()}
    assert actions(results) == {
        "poison": "FAILED",
        "below": "SKIP",
        "sound": "DIFFERENTIAL",
        "diamond": "SKIP",
        "bystander": "DIFFERENTIAL",
    }
    assert results["poison"].error and "division by zero" in results["poison"].error
    assert results["below"].reason == results["diamond"].reason == "public.poison failed in this tick"
    assert poisoned.rows("poison") == {(1, 1, 10)}
    assert poisoned.rows("diamond") == {(1, 10, 10)}
    assert poisoned.rows("bystander") == {(2,)}
    poisoned.assert_verified()


def test_failed_table_and_its_dependents_catch_up_when_the_cause_is_gone(poisoned: Shop) -> None:
    for _ in range(4):
        poisoned.pt.tick()
        poisoned.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = clock_timestamp()")
    failures = [row for row in poisoned.pt.history("poison") if row.status == "FAILED"]
    assert len(failures) == 1
    assert failures[0].error and "division by zero" in failures[0].error
    poisoned.db.execute("UPDATE orders SET amount = 4 WHERE id = 2")
    poisoned.pt.tick()
    poisoned.tick()
    assert poisoned.rows("poison") == {(1, 1, 5), (2, 1, 25)}
    assert poisoned.rows("diamond") == {(1, 20, 5), (2, 4, 25)}
    assert {(row.status, row.last_error) for row in poisoned.pt.stream_tables()} == {("ACTIVE", None)}
    poisoned.assert_verified()


def test_table_over_one_that_was_never_loaded_waits_for_it(shop: Shop) -> None:
    shop.pt.create_watermark_group("loads", ["orders"])
    shop.pt.create_stream_table("base", "SELECT id FROM orders", watermark_gating="gate", require_watermark=True)
    shop.pt.create_stream_table("top", "SELECT count(*) AS n FROM base", watermark_gating="none")
    assert actions(shop.tick()) == {"base": "SKIP", "top": "SKIP"}
    assert shop.rows("top") == set()
    shop.load("orders", "12:00", (1, 1, 10))
    assert actions(shop.tick()) == {"base": "FULL", "top": "FULL"}
    assert shop.rows("top") == {(1,)}


def test_dropping_a_table_that_others_read_needs_cascade(shop: Shop) -> None:
    create_chain(shop)
    shop.tick()
    with pytest.raises(InvalidArgument, match="deep_3"):
        shop.pt.drop_stream_table("deep_2")
    assert len(shop.pt.stream_tables()) == 4
    shop.pt.drop_stream_table("deep_2", cascade=True)
    assert [row.stream_table for row in shop.pt.stream_tables()] == ["public.deep_1"]
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    assert actions(shop.tick()) == {"deep_1": "DIFFERENTIAL"}
