"""Stream tables that fail again and again: waits, suspension, fuses, and that nothing else suffers."""

from __future__ import annotations

import pytest

from pytrickle.errors import InvalidArgument
from pytrickle.schedule.outcomes import SUSPEND_AFTER
from tests.acceptance.conftest import Shop

WAIT = "extract(epoch FROM retry_at - clock_timestamp())"
LEFT = f"SELECT {WAIT} FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'poison'"
ELAPSED = "UPDATE pgtrickle.pgt_stream_tables SET retry_at = clock_timestamp() WHERE retry_at IS NOT NULL"


def failing(shop: Shop) -> Shop:
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.pt.create_stream_table("poison", "SELECT id, 100 / amount AS share FROM orders")
    shop.pt.create_stream_table("sound", "SELECT id FROM orders")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (2, 1, 0)")
    return shop


def ticked(shop: Shop) -> dict[str, str]:
    return {result.stream_table.partition(".")[2]: result.action for result in shop.pt.tick()}


def test_a_failing_table_is_left_alone_for_longer_and_longer(shop: Shop) -> None:
    failing(shop)
    assert [ticked(shop) for _ in range(3)] == [
        {"poison": "FAILED", "sound": "DIFFERENTIAL"},
        {"poison": "FAILED", "sound": "NO_DATA"},
        {"sound": "NO_DATA"},
    ]
    waits = []
    for _ in range(3):
        shop.db.execute(ELAPSED)
        assert ticked(shop)["poison"] == "FAILED"
        waits.append(shop.db.value(LEFT))
    assert all(0 < wait <= 2.0**n for n, wait in enumerate(waits, 1)) and waits == sorted(waits)
    shop.db.execute("DELETE FROM orders WHERE amount = 0")
    shop.db.execute(ELAPSED)
    shop.tick()
    (status, *_) = shop.pt.stream_tables()
    assert (status.status, status.consecutive_failures, status.retry_at) == ("ACTIVE", 0, None)
    shop.assert_verified()


def test_a_retry_that_a_clock_set_back_has_put_off_is_not_waited_for(shop: Shop) -> None:
    failing(shop)
    for _ in range(3):
        ticked(shop)
    assert shop.pt.explain("poison").data["next"].startswith("failed, and is tried again at 20")
    shop.db.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET retry_at = retry_at + interval '1 day',"
        " last_error_at = last_error_at + interval '1 day' WHERE pgt_name = 'poison'"
    )
    assert shop.pt.explain("poison").data["next"] == "the next tick refreshes it"
    assert ticked(shop)["poison"] == "FAILED"


def test_a_table_that_fails_too_often_is_suspended_until_somebody_refreshes_it(shop: Shop) -> None:
    failing(shop)
    for _ in range(SUSPEND_AFTER):
        assert ticked(shop)["poison"] == "FAILED"
        shop.db.execute(ELAPSED)
    assert [alert for alert in shop.pt.alerts() if alert.kind == "suspended"] == []
    poison = shop.pt.stream_tables()[0]
    assert (poison.status, poison.consecutive_failures) == ("SUSPENDED", SUSPEND_AFTER)
    assert ticked(shop) == {"sound": "NO_DATA"}
    explained = shop.pt.explain("poison").data
    assert explained["next"] == "suspended after repeated failure: resume it"
    assert explained["last"].startswith("FULL failed at ") and "division by zero" in explained["last"]
    (alert,) = shop.pt.alerts()
    assert (alert.kind, alert.subject, alert.closed_at) == ("suspended", "public.poison", None)
    shop.db.execute("DELETE FROM orders WHERE amount = 0")
    assert ticked(shop) == {"sound": "DIFFERENTIAL"}
    shop.pt.refresh("poison")
    shop.tick()
    assert [alert.closed_at is None for alert in shop.pt.alerts()] == [False]
    assert shop.pt.stream_tables()[0].status == "ACTIVE"
    shop.assert_verified()


@pytest.mark.parametrize(
    ("condition", "next_action"), [("query_canceled", "DIFFERENTIAL"), ("disk_full", None), ("out_of_memory", None)]
)
def test_what_is_wrong_with_the_server_suspends_no_table(shop: Shop, condition: str, next_action: str | None) -> None:
    shop.pt.create_stream_table("copy", "SELECT id, amount FROM orders")
    shop.tick()
    shop.db.execute(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION 'not now' USING ERRCODE = '{condition}'; END $$"
    )
    shop.db.execute("CREATE TRIGGER fail AFTER INSERT ON copy EXECUTE FUNCTION fail()")
    shop.db.execute("ALTER TABLE copy ENABLE ALWAYS TRIGGER fail")
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    for _ in range(SUSPEND_AFTER + 1):
        assert ticked(shop)["copy"] == "FAILED"
        shop.db.execute(ELAPSED)
    (status,) = shop.pt.stream_tables()
    assert (status.status, status.consecutive_failures) == ("ERROR", SUSPEND_AFTER + 1)
    shop.db.execute("DROP TRIGGER fail ON copy")
    assert ticked(shop)["copy"] == next_action or next_action is None
    shop.assert_verified()


def test_a_fuse_holds_a_delta_until_it_is_decided(shop: Shop) -> None:
    shop.pt.create_stream_table("copy", "SELECT id, amount FROM orders", fuse_ceiling=3)
    shop.db.execute("INSERT INTO orders SELECT n, 1, n FROM generate_series(1, 10) AS n")
    assert shop.tick()["copy"].rows_inserted == 10, "a first load is no delta"
    shop.db.execute("INSERT INTO orders SELECT n, 1, n FROM generate_series(11, 14) AS n")
    for _ in range(2):
        held = shop.tick()["copy"]
        assert (held.action, held.reason) == ("SKIP", "4 changed rows are more than the fuse of 3 lets pass.")
    assert len(shop.rows("copy")) == 10 and shop.pt.stream_tables()[0].fuse_blown_at is not None
    assert [(alert.kind, alert.sentence) for alert in shop.pt.alerts()] == [
        ("fuse", "public.copy is held by its fuse of 3 rows")
    ]
    assert shop.pt.explain("copy").data["next"] == "held by its fuse: look at the delta and reset the fuse"
    shop.db.execute("SELECT pgtrickle.reset_fuse('copy')")
    assert shop.pt.explain("copy").data["next"] == "the next tick refreshes it"
    assert shop.tick()["copy"].rows_inserted == 4
    shop.db.execute("INSERT INTO orders SELECT n, 1, n FROM generate_series(21, 24) AS n")
    assert shop.tick()["copy"].action == "SKIP", "the fuse is armed again"
    shop.db.execute("SELECT pgtrickle.reset_fuse('copy', 'reinitialize')")
    assert shop.tick()["copy"].action == "REINITIALIZE"
    shop.assert_verified()
    with pytest.raises(InvalidArgument):
        shop.pt._call("SELECT pgtrickle.reset_fuse('copy')")


def test_a_blown_fuse_holds_the_whole_unit(shop: Shop) -> None:
    shop.pt.create_stream_table("one", "SELECT id, amount FROM orders", fuse_ceiling=1)
    shop.pt.create_stream_table("two", "SELECT id, customer FROM orders")
    shop.pt.create_stream_table("pair", "SELECT id, amount, customer FROM one JOIN two USING (id)")
    shop.tick()
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 1), (2, 1, 1)")
    results = shop.tick()
    assert {result.action for result in results.values()} == {"SKIP"}
    assert "together with public.one" in results["two"].reason and "fuse" in results["two"].reason
    assert shop.rows("two") == set()
    shop.db.execute("SELECT pgtrickle.reset_fuse('one')")
    shop.tick()
    assert shop.rows("pair") == {(1, 1, 1), (2, 1, 1)}
