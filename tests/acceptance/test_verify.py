"""verify tells a stream table that is what it should be from one that is not, and the next refresh repairs drift."""

from __future__ import annotations

import pytest

import pytrickle
from pytrickle.errors import StreamTableDrifted, UnknownStreamTable
from tests.acceptance.conftest import Shop


def tamper(shop: Shop, table: str, change: str) -> None:
    """Change a stream table behind its back, as only its owner could."""
    with shop.db.connect() as owner, owner.transaction():
        owner.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER".encode())
        owner.execute(change.encode())
        owner.execute(
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER pgtrickle_guard,"
            " ENABLE REPLICA TRIGGER pgtrickle_guard_rows".encode()
        )


@pytest.fixture
def filled(shop: Shop) -> Shop:
    """A keyless table with duplicates, an aggregate and a window, over four orders."""
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 1, 10), (3, 2, 10), (4, 2, 20)")
    shop.pt.create_stream_table("amounts", "SELECT amount FROM orders")
    shop.pt.create_stream_table("totals", "SELECT customer, sum(amount) AS amount FROM orders GROUP BY customer")
    shop.pt.create_stream_table("ranked", "SELECT id, rank() OVER (ORDER BY amount) AS rank FROM orders")
    shop.tick()
    return shop


@pytest.mark.parametrize(
    ("table", "change", "missing", "unexpected"),
    [
        ("amounts", "DELETE FROM amounts WHERE ctid = (SELECT min(ctid) FROM amounts WHERE amount = 10)", 1, 0),
        ("amounts", "INSERT INTO amounts VALUES (10)", 0, 1),
        ("amounts", "INSERT INTO amounts VALUES (NULL)", 0, 1),
        ("totals", "UPDATE totals SET amount = 21 WHERE customer = 1", 1, 1),
        ("totals", "DELETE FROM totals", 2, 0),
        ("ranked", "UPDATE ranked SET rank = rank + 1 WHERE id > 1", 3, 3),
    ],
)
def test_verify_counts_what_is_missing_and_what_is_too_much(
    filled: Shop, table: str, change: str, missing: int, unexpected: int
) -> None:
    assert filled.pt.verify(table) == pytrickle.VerifyResult(f"public.{table}", True, 0, 0)
    tamper(filled, table, change)
    assert filled.pt.verify(table) == pytrickle.VerifyResult(f"public.{table}", False, missing, unexpected)


def test_verify_compares_at_the_frontier_of_the_table_not_at_the_present(filled: Shop) -> None:
    filled.db.execute("DELETE FROM orders WHERE id = 1; UPDATE orders SET amount = 5")
    filled.assert_verified()
    tamper(filled, "amounts", "DELETE FROM amounts WHERE amount = 20")
    assert filled.pt.verify("amounts").missing == 1


def test_table_that_was_never_loaded_must_be_empty(shop: Shop) -> None:
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.pt.create_stream_table("amounts", "SELECT amount FROM orders")
    assert shop.pt.verify("amounts").matches
    tamper(shop, "amounts", "INSERT INTO amounts VALUES (10)")
    assert shop.pt.verify("amounts").unexpected == 1


def test_verify_evaluates_the_query_under_the_settings_of_its_creator(shop: Shop) -> None:
    shop.db.execute("CREATE TABLE moments (id int PRIMARY KEY, at timestamptz NOT NULL, span interval)")
    shop.db.execute("INSERT INTO moments VALUES (1, '2026-01-01 23:30+00', '1 day 02:03:04')")
    query = "SELECT id, at::date AS day, at::text AS shown, span::text AS span FROM moments"
    with shop.db.connect() as creator:
        creator.execute("SET TimeZone = 'Asia/Tokyo'; SET IntervalStyle = 'iso_8601'")
        creator.execute("SELECT pgtrickle.create_stream_table('days', %s)", (query,))
    shop.tick()
    shop.db.execute("INSERT INTO moments VALUES (2, '2026-02-01 23:30+00', '1 day')")
    shop.tick()
    assert {(row[0], str(row[1]), *row[2:]) for row in shop.rows("days")} == {
        (1, "2026-01-02", "2026-01-02 08:30:00+09", "P1DT2H3M4S"),
        (2, "2026-02-02", "2026-02-02 08:30:00+09", "P1D"),
    }
    shop.assert_verified()


def test_verify_of_an_unknown_table_is_refused(shop: Shop) -> None:
    with pytest.raises(UnknownStreamTable):
        shop.pt.verify("orders")


@pytest.mark.parametrize(
    ("table", "change", "trigger"),
    [
        ("amounts", "DELETE FROM amounts WHERE amount = 20", "DELETE FROM orders WHERE id = 4"),
        ("totals", "UPDATE totals SET amount = 99 WHERE customer = 2", "UPDATE orders SET amount = 3 WHERE id = 4"),
    ],
)
def test_drift_is_noticed_by_a_refresh_that_meets_it_and_repaired_by_the_next(
    filled: Shop, table: str, change: str, trigger: str
) -> None:
    tamper(filled, table, change)
    drifted = filled.rows(table) if table == "totals" else set()
    filled.db.execute(trigger)
    with pytest.raises(StreamTableDrifted) as noticed:
        filled.pt.refresh(table)
    assert noticed.value.hint
    assert table != "totals" or filled.rows(table) == drifted
    assert filled.pt.refresh(table).action == "REINITIALIZE"
    assert filled.pt.verify(table).matches
    assert filled.pt.refresh(table).action == "NO_DATA"


def test_what_is_to_be_computed_anew_is_pending_and_no_drift(filled: Shop) -> None:
    """Changes that were missed cannot be taken back, so nobody knows what the table should show until then."""
    filled.db.execute("SELECT pgtrickle.gate_source('orders')")
    filled.db.execute("ALTER TABLE orders DISABLE TRIGGER ALL; INSERT INTO orders VALUES (5, 1, 10)")
    filled.db.execute("ALTER TABLE orders ENABLE TRIGGER ALL")
    assert filled.tick()["totals"].action == "SKIP"
    for table in ("amounts", "totals", "ranked"):
        found = filled.pt.verify(table)
        assert (found.matches, found.missing, found.unexpected) == (False, 0, 0)
        assert "may have been missed" in (found.pending or "")
    filled.db.execute("SELECT pgtrickle.ungate_source('orders')")
    assert filled.tick()["totals"].action == "REINITIALIZE"
    filled.assert_verified()


def test_a_gated_table_whose_query_was_altered_is_pending(filled: Shop) -> None:
    filled.pt.alter_stream_table("amounts", query="SELECT amount + 1 AS amount FROM orders")
    assert "query was altered" in (filled.pt.verify("amounts").pending or "")
    filled.tick()
    filled.assert_verified()


def test_a_table_that_failed_is_compared_at_its_frontier(filled: Shop) -> None:
    filled.pt.create_stream_table("shares", "SELECT id, 10 / amount AS share FROM orders")
    filled.tick()
    filled.db.execute("INSERT INTO orders VALUES (5, 1, 0)")
    assert "FAILED" in {result.action for result in filled.pt.tick()}
    assert filled.pt.verify("shares") == pytrickle.VerifyResult("public.shares", True, 0, 0)
    tamper(filled, "amounts", "DELETE FROM amounts WHERE amount = 20")
    filled.db.execute("DELETE FROM orders WHERE id = 4")
    with pytest.raises(StreamTableDrifted):
        filled.pt.refresh("amounts")
    assert filled.pt.verify("amounts").missing == 1, "what was noticed is not hidden until it is repaired"
