"""A held-back stream table stays at its cut whatever is written beyond it, and takes the newest cut there is."""

from __future__ import annotations

import pytest
from psycopg import IsolationLevel

from tests.acceptance.conftest import TABLES, Shop, advance, assert_shows
from tests.repeats import first
from tests.sql.checks import buffer_of


@pytest.mark.parametrize("tolerance", first(1, ("5 minutes", "0")))
def test_interleaved_histories_give_the_newest_common_time(shop: Shop, tolerance: str) -> None:
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"], tolerance)
    lines = "SELECT o.id, l.quantity FROM orders o JOIN order_lines l ON l.order_id = o.id"
    both = "SELECT o.id, l.line FROM orders o FULL JOIN order_lines l ON l.order_id = o.id"
    shop.pt.create_stream_table("joined", lines, watermark_gating="hold_back", require_watermark=True)
    shop.pt.create_stream_table("outer_joined", both, watermark_gating="hold_back", require_watermark=True)
    shop.load("orders", "11:55", (1, 1, 10))
    assert {result.action for result in shop.tick().values()} == {"SKIP"}
    seen: list[tuple[str, int, int]] = []
    steps = [
        ("order_lines", "11:55", (1, 1, 1)),
        ("orders", "12:00", (2, 1, 20)),
        ("orders", "12:05", (3, 1, 30)),
        ("order_lines", "12:05", (2, 1, 2), (3, 1, 3)),
    ]
    for source, clock, *rows in steps:
        shop.load(source, clock, *rows)
        result = shop.tick()["outer_joined"]
        shop.assert_verified()
        orders = len({order for order, _ in shop.rows("outer_joined")})
        seen.append((f"{result.effective_watermark:%H:%M}", orders, len(shop.rows("joined"))))
    within = ("11:55", 2, 1) if tolerance != "0" else ("11:55", 1, 1)
    assert seen == [("11:55", 1, 1), within, within, ("12:05", 3, 3)]


def test_changes_beyond_the_cap_of_rows_already_shown_wait_for_their_watermark(held: Shop) -> None:
    held.load("orders", "12:00", (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40))
    held.tick()
    shown = ((1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40))
    assert_shows(held, *shown)
    for change in (
        "UPDATE orders SET amount = 12 WHERE id = 1",
        "DELETE FROM orders WHERE id = 2",
        "UPDATE orders SET id = 33, customer = 1 WHERE id = 3",
        "DELETE FROM orders WHERE id = 4",
        "INSERT INTO orders VALUES (4, 1, 44)",
        "UPDATE orders SET amount = 13 WHERE id = 1",
    ):
        held.db.execute(change)
        held.tick()
        assert_shows(held, *shown)
    held.load("orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 13), (33, 1, 30), (4, 1, 44))


def test_truncate_beyond_the_cap_waits_for_its_watermark(held: Shop) -> None:
    held.load("orders", "12:00", (1, 1, 10), (2, 2, 20))
    held.tick()
    held.db.execute("TRUNCATE orders")
    held.tick()
    assert_shows(held, (1, 1, 10), (2, 2, 20))
    held.load("orders", "12:05", (1, 1, 10), (3, 2, 30))
    held.db.execute("TRUNCATE orders")
    held.tick()
    assert_shows(held, (1, 1, 10), (3, 2, 30))
    held.load("orders", "12:10")
    held.tick()
    assert_shows(held)


def test_first_load_is_read_back_at_the_cut(held: Shop) -> None:
    held.load("orders", "12:00", (1, 1, 10), (2, 2, 20))
    held.db.execute("UPDATE orders SET amount = 99 WHERE id = 1")
    held.db.execute("DELETE FROM orders WHERE id = 2")
    held.db.execute("INSERT INTO orders VALUES (3, 2, 30)")
    assert {result.action for result in held.tick().values()} == {"FULL"}
    assert_shows(held, (1, 1, 10), (2, 2, 20))
    held.load("orders", "12:05")
    held.tick()
    assert_shows(held, (1, 1, 99), (3, 2, 30))


def test_the_same_watermark_selects_the_same_rows_whenever_it_is_read(held: Shop) -> None:
    held.pt.create_stream_table("late", TABLES["ranked"], schedule="1 day", watermark_gating="hold_back")
    held.load("orders", "12:00", (1, 1, 10))
    held.tick()
    held.pt.create_watermark_group("with lines", ["orders", "order_lines"])
    held.load("order_lines", "12:05")
    held.load("orders", "12:05", (2, 1, 20))
    held.tick()
    then = held.rows("ranked")
    for change in ("DELETE FROM orders WHERE id = 1", "INSERT INTO orders VALUES (3, 1, 30)", "TRUNCATE orders"):
        held.db.execute(change)
        held.load("orders", f"12:1{len(held.pt.watermark_history('orders'))}", (7, 1, 70))
        held.db.execute("DELETE FROM orders WHERE id = 7")
        held.tick()
    assert held.rows("late") == {(1, 1, 10, 1)}
    assert held.pt.refresh("late").rows_inserted == 1
    assert held.rows("late") == then == held.rows("ranked")


@pytest.mark.parametrize("require", [True, False], ids=["required", "not required"])
def test_what_was_let_through_waits_where_capture_begins_anew(local_shop: Shop, require: bool) -> None:
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    query = "SELECT o.id, o.amount, l.quantity FROM orders o LEFT JOIN order_lines l ON l.order_id = o.id"
    shop.pt.create_stream_table("report", query, watermark_gating="hold_back", require_watermark=require)
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 5))
    shop.tick()
    # The lines of the second order are still to come.
    shop.load("orders", "12:05", (2, 1, 20))
    for change in (
        "ALTER TABLE orders RENAME COLUMN amount TO total",
        "CREATE TABLE later_orders () INHERITS (orders)",
        "SELECT pgtrickle.reinitialize_stream_table('report')",
    ):
        shop.db.execute(change)
        assert shop.tick()["report"].action == "SKIP"
        assert shop.rows("report") == {(1, 10, 5)}
    shop.load("order_lines", "12:10", (2, 1, 6))
    shop.tick()
    assert shop.rows("report") == {(1, 10, 5)}
    shop.load("orders", "12:10")
    shop.tick()
    assert shop.rows("report") == {(1, 10, 5), (2, 20, 6)}
    shop.assert_verified()


@pytest.mark.parametrize("name", ["after_capture", "before_capture"])
def test_a_trigger_that_advances_vouches_for_the_rows_that_fired_it(local_shop: Shop, name: str) -> None:
    shop = local_shop
    shop.db.execute("CREATE TABLE readings (id int, at timestamptz)")
    shop.pt.create_watermark_group("loads", ["readings"])
    shop.pt.create_stream_table("shown", "SELECT id FROM readings", watermark_gating="hold_back")
    shop.db.execute("""CREATE FUNCTION advance() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN PERFORM pgtrickle.advance_watermark('readings', (SELECT max(at) FROM readings)); RETURN NULL; END $$""")
    # Triggers fire in the order of their names: that of capture begins with pgtrickle.
    trigger = {"after_capture": "z", "before_capture": "a"}[name]
    shop.db.execute(f"CREATE TRIGGER {trigger} AFTER INSERT ON readings EXECUTE FUNCTION advance()")
    for number in (1, 2):
        shop.db.execute(f"INSERT INTO readings VALUES ({number}, '2026-01-01 12:0{number}Z')")
        assert f"{shop.tick()['shown'].effective_watermark:%H:%M}" == f"12:0{number}"
        assert shop.rows("shown") == {(n,) for n in range(1, number + 1)}
    with shop.db.connect() as loader, loader.transaction():
        loader.execute("INSERT INTO readings VALUES (3, '2026-01-01 12:03Z')")
        loader.execute("SELECT pgtrickle.advance_watermark('readings', '2026-01-01 12:04Z')")
    shop.tick()
    assert shop.rows("shown") == {(1,), (2,), (3,)}
    shop.assert_verified()


@pytest.mark.parametrize(
    "isolation", [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ], ids=lambda level: level.name
)
def test_a_first_load_comes_though_others_are_refreshed_while_loaders_are_open(
    local_shop: Shop, isolation: IsolationLevel
) -> None:
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    shop.pt.create_stream_table("current", "SELECT id, amount FROM orders", watermark_gating="none")
    query = "SELECT o.id, o.amount, l.quantity FROM orders o LEFT JOIN order_lines l ON l.order_id = o.id"
    shop.pt.create_stream_table("report", query, watermark_gating="hold_back", require_watermark=True)
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    assert {name: result.action for name, result in shop.tick().items()} == {"current": "FULL", "report": "SKIP"}
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    shop.tick()
    changes = f"SELECT count(*) FROM {buffer_of(shop.db, 'orders')}"
    assert shop.db.value(changes) == 0, "nobody is loading, so nobody has a cut"
    loader = shop.db.connect(autocommit=False)
    loader.isolation_level = isolation
    loader.execute("INSERT INTO orders VALUES (3, 2, 30)")
    advance(loader, "orders", "12:00")
    shop.db.execute("INSERT INTO orders VALUES (4, 2, 40)")
    assert shop.tick()["current"].action == "DIFFERENTIAL"
    loader.commit()
    shop.load("order_lines", "12:00", (1, 1, 5))
    assert shop.tick()["report"].action == "FULL"
    assert shop.rows("report") == {(1, 10, 5), (2, 20, None), (3, 30, None)}
    shop.assert_verified()
    shop.load("orders", "12:05")
    shop.load("order_lines", "12:05", (4, 1, 6))
    shop.tick()
    assert shop.rows("report") == {(1, 10, 5), (2, 20, None), (3, 30, None), (4, 40, 6)}
    assert shop.db.value(changes) == 0
