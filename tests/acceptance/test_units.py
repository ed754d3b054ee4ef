"""Atomic units: diamonds and refresh groups are refreshed in one transaction, at one cut, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

import pytrickle
from tests.acceptance.conftest import Shop
from tests.repeats import first

TOTALS = "SELECT customer, count(*) AS orders, sum(amount) AS amount FROM orders GROUP BY customer"
LARGEST = "SELECT customer, max(amount) AS largest, min(amount) AS least FROM orders GROUP BY customer"
BOTH = "SELECT t.customer, t.orders, t.amount, l.largest, l.least FROM totals t JOIN largest l USING (customer)"
DIAMOND = {"totals": TOTALS, "largest": LARGEST, "profile": BOTH}
MEMBERS = tuple(DIAMOND)


@pytest.fixture
def shop(local_shop: Shop) -> Shop:
    """Where Spark takes part, it does by clients of its own."""
    return local_shop


def create(shop: Shop, tables: dict[str, str], **options: Any) -> None:
    for name, query in tables.items():
        shop.pt.create_stream_table(name, query, **options)


def transactions(shop: Shop, *names: str) -> int:
    """Return how many transactions wrote the given stream tables last."""
    query = "SELECT count(DISTINCT refresh_xid) FROM pgtrickle.pgt_stream_tables WHERE pgt_name = ANY (%s)"
    return int(shop.db.value(query, list(names)))


@pytest.fixture(params=first(1, (1_000, 0)), ids=["direct", "spark"])
def diamond(shop: Shop, connect: Callable[..., pytrickle.Client], request: pytest.FixtureRequest) -> Shop:
    """A filled diamond: `profile` reads `totals` and `largest`, which read orders."""
    shop = Shop(shop.db, connect(direct_delta_rows=request.param))
    shop.db.execute("INSERT INTO orders SELECT n, 1 + n % 3, n FROM generate_series(1, 30) AS n")
    create(shop, DIAMOND)
    shop.tick()
    return shop


def test_a_diamond_is_committed_in_one_transaction_and_differentially(diamond: Shop) -> None:
    for change in (
        "INSERT INTO orders VALUES (100, 1, 1000)",
        "UPDATE orders SET amount = amount + 1, customer = 4 WHERE id % 5 = 0",
        "DELETE FROM orders WHERE amount > 20",
        "DELETE FROM orders",
        "INSERT INTO orders VALUES (1, 1, 1), (2, 1, 1), (3, 2, 7)",
    ):
        diamond.db.execute(change)
        results = diamond.tick()
        assert {results[name].action for name in MEMBERS} == {"DIFFERENTIAL"}
        assert transactions(diamond, *MEMBERS) == 1
        diamond.assert_verified()
    assert diamond.rows("profile") == {(1, 2, 2, 1, 1), (2, 1, 7, 7, 7)}
    assert {result.action for result in diamond.tick().values()} == {"NO_DATA"}


def test_members_of_a_diamond_are_committed_one_by_one_where_that_is_asked_for(diamond: Shop) -> None:
    diamond.pt.alter_stream_table("profile", diamond_consistency="none")
    diamond.db.execute("INSERT INTO orders VALUES (100, 1, 1000)")
    diamond.tick()
    assert transactions(diamond, *MEMBERS) == 3
    diamond.assert_verified()


def test_a_unit_holds_every_kind_of_refresh(diamond: Shop) -> None:
    create(
        diamond,
        {
            "ranked": "SELECT p.*, rank() OVER (ORDER BY amount) AS place FROM profile p",
            "three": "SELECT * FROM orders ORDER BY amount DESC LIMIT 3",
            "listed": "SELECT customer, array_agg(amount) IS NOT NULL AS some FROM orders GROUP BY customer",
            "all_of_it": "SELECT r.customer, r.place, t.amount, l.some FROM ranked r"
            " LEFT JOIN three t ON t.customer = r.customer JOIN listed l ON l.customer = r.customer",
        },
    )
    diamond.pt.alter_stream_table("ranked", refresh_mode="FULL")
    diamond.tick()
    names = (*MEMBERS, "ranked", "three", "listed", "all_of_it")
    for change in (
        "INSERT INTO orders VALUES (100, 1, 1000), (101, 9, 4)",
        "UPDATE orders SET customer = 2 WHERE id < 9",
        "DELETE FROM orders WHERE id % 2 = 0",
    ):
        diamond.db.execute(change)
        results = diamond.tick()
        assert transactions(diamond, *names) == 1
        assert results["ranked"].action == "FULL"
        diamond.assert_verified()


def test_a_member_that_fails_holds_the_whole_unit_and_nothing_else(diamond: Shop) -> None:
    create(diamond, {"apart": "SELECT id FROM orders", "ratio": "SELECT customer, 100 / amount AS r FROM totals"})
    create(diamond, {"above": "SELECT p.customer, r.r FROM profile p JOIN ratio r USING (customer)"})
    diamond.tick()
    names = (*MEMBERS, "ratio", "above")
    before = {name: diamond.rows(name) for name in names}
    diamond.db.execute("INSERT INTO orders VALUES (100, 1, 7), (101, 5, 0)")
    for _ in range(3):
        results = {result.stream_table.partition(".")[2]: result for result in diamond.pt.tick()}
        assert results["ratio"].action == "FAILED" and "division by zero" in (results["ratio"].error or "")
        assert {results[name].action for name in names if name != "ratio"} == {"SKIP"}
        assert "together with public.ratio" in results["totals"].reason
        assert {name: diamond.rows(name) for name in names} == before
        diamond.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
    assert (100,) in diamond.rows("apart")
    later = "UPDATE pgtrickle.pgt_stream_tables SET retry_at = now() + interval '1 day' WHERE pgt_name = 'ratio'"
    diamond.db.execute(later)
    waiting = {result.stream_table.partition(".")[2]: result for result in diamond.pt.tick()}
    assert {waiting[name].action for name in names} == {"SKIP"}
    assert "public.ratio is left alone after a failure" in waiting["totals"].reason
    diamond.db.execute("UPDATE pgtrickle.pgt_stream_tables SET retry_at = NULL")
    diamond.db.execute("UPDATE orders SET amount = 1 WHERE id = 101")
    diamond.tick()
    assert transactions(diamond, *names) == 1
    diamond.assert_verified()


def test_a_gated_member_holds_the_whole_unit(diamond: Shop) -> None:
    diamond.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    lines = (
        "SELECT o.customer, count(*) AS lines FROM orders o JOIN order_lines l ON l.order_id = o.id GROUP BY o.customer"
    )
    create(diamond, {"lines": lines})
    create(diamond, {"wide": "SELECT p.customer, p.amount, l.lines FROM profile p JOIN lines l USING (customer)"})
    diamond.load("orders", "12:00")
    diamond.load("order_lines", "12:00", (1, 1, 1), (2, 1, 1))
    diamond.tick()
    names = (*MEMBERS, "lines", "wide")
    before = {name: diamond.rows(name) for name in names}
    diamond.load("orders", "12:05", (100, 1, 5))
    results = diamond.tick()
    assert {results[name].action for name in names} == {"SKIP"}
    assert {name: diamond.rows(name) for name in names} == before
    diamond.load("order_lines", "12:05", (100, 1, 1))
    diamond.tick()
    assert transactions(diamond, *names) == 1
    diamond.assert_verified()


def test_a_manual_refresh_of_a_member_takes_the_unit_along(diamond: Shop) -> None:
    diamond.db.execute("INSERT INTO orders VALUES (100, 1, 1000)")
    assert diamond.pt.refresh("profile").rows_inserted == 1
    assert transactions(diamond, *MEMBERS) == 1
    diamond.assert_verified()


def test_a_refresh_group_ties_tables_and_what_lies_between_them(shop: Shop) -> None:
    create(shop, {"a": "SELECT id, amount FROM orders", "b": "SELECT id, amount FROM a", "c": "SELECT count(*) FROM b"})
    create(shop, {"d": "SELECT id, name FROM customers"})
    shop.db.execute("SELECT pgtrickle.create_refresh_group('chain', ARRAY['a', 'c', 'd'])")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.db.execute("INSERT INTO customers VALUES (3, 'Cy')")
    shop.tick()
    assert transactions(shop, "a", "b", "c", "d") == 1
    shop.assert_verified()
    shop.db.execute("SELECT pgtrickle.drop_refresh_group('chain')")
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 10)")
    shop.tick()
    assert transactions(shop, "a", "b", "c") == 3


@pytest.mark.parametrize(("policy", "acts"), [("fastest", True), ("slowest", False)])
def test_the_schedule_policy_says_which_member_makes_a_diamond_due(diamond: Shop, policy: str, acts: bool) -> None:
    diamond.pt.alter_stream_table("largest", schedule="1 day")
    diamond.pt.alter_stream_table("profile", diamond_schedule_policy=policy)
    diamond.db.execute("INSERT INTO orders VALUES (100, 1, 1000)")
    assert ("profile" in diamond.tick()) is acts
    assert (diamond.db.value("SELECT max(largest) FROM largest") == 1000) is acts
    diamond.assert_verified()


def test_a_concurrent_session_never_sees_half_a_unit(diamond: Shop) -> None:
    """Every snapshot shows totals, largest and profile of one and the same state of orders."""
    reader = diamond.db.connect()
    compare = (
        "SELECT (SELECT sum(orders) FROM totals), (SELECT sum(orders) FROM profile),"
        " (SELECT max(largest) FROM largest), (SELECT max(largest) FROM profile)"
    )
    seen, ended, failures = set(), Event(), []

    def watch() -> None:
        while not ended.is_set():
            row = reader.execute(compare).fetchone()
            if row is None or row[0] != row[1] or row[2] != row[3]:
                failures.append(row)
            seen.add(row)
            watch.count += 1  # type: ignore[attr-defined]

    watch.count = 0  # type: ignore[attr-defined]
    thread = Thread(target=watch)
    thread.start()
    try:
        for number in range(1000, 1012):
            diamond.db.execute(f"INSERT INTO orders VALUES ({number}, 1, {number}), ({-number}, 2, 1)")
            diamond.tick()
    finally:
        ended.set()
        thread.join()
    assert failures == []
    assert watch.count >= 200 and len(seen) >= 10  # type: ignore[attr-defined]


def test_what_is_committed_while_a_unit_is_under_way_is_left_to_the_next_tick(shop: Shop) -> None:
    """A member that is computed within the transaction reads its other sources as the tick's snapshot shows them."""
    shop.db.execute("INSERT INTO orders SELECT n, 1 + n % 3, n FROM generate_series(1, 30) AS n")
    create(shop, {"apart": "SELECT id FROM orders", "totals": TOTALS})
    create(shop, {"wide": "SELECT o.id, t.amount AS of_all FROM orders o JOIN totals t USING (customer)"})
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (100, 1, 1000)")
    late = iter(["INSERT INTO orders VALUES (101, 1, 5); DELETE FROM orders WHERE id = 3"])

    def write(result: pytrickle.RefreshResult) -> None:
        for statement in late:
            shop.db.execute(statement)

    done = [result.stream_table for result in shop.pt.tick(write)]
    assert done == ["public.apart", "public.totals", "public.wide"], "the unit must come after what was written"
    assert transactions(shop, "totals", "wide") == 1
    for _ in range(2):
        shop.assert_verified()
        assert shop.db.value("SELECT count(*) FROM wide") == 31
        shop.tick()
    assert (101,) in shop.rows("apart") and (3,) not in shop.rows("apart")


def test_what_a_trigger_on_a_member_writes_is_taken_in_once(shop: Shop) -> None:
    shop.db.execute("CREATE TABLE noted (customer int, amount int)")
    both = "SELECT customer, amount FROM totals UNION ALL SELECT customer, amount FROM noted"
    create(shop, {"totals": TOTALS, "summed": f"SELECT customer, sum(amount) AS amount FROM ({both}) b GROUP BY 1"})
    shop.db.execute("SELECT pgtrickle.create_refresh_group('together', ARRAY['totals', 'summed'])")
    shop.tick()
    shop.db.execute(
        "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN INSERT INTO public.noted VALUES (NEW.customer, 100); RETURN NULL; END'"
    )
    shop.db.execute("CREATE TRIGGER note AFTER INSERT ON totals FOR EACH ROW EXECUTE FUNCTION note()")
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.tick()
    shop.assert_verified()
    shop.tick()
    assert shop.rows("summed") == {(1, 110)}
    shop.assert_verified()
