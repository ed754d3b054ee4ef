"""Moments that Python has not: they are refused as watermarks, and where they are all the same they stop nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pytrickle.errors import DatabaseError, InvalidArgument
from tests.acceptance.conftest import ORDERS, Shop, assert_explained
from tests.repeats import first

FAR, PAST = "12000-01-01 00:00+00", "0044-03-15 00:00+00 BC"
EFFECTIVE = (
    "SELECT effective_watermark <= %s::text::timestamptz FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'held'"
)


def pretend(shop: Shop, watermark: str) -> None:
    """Leave orders with a watermark that an earlier version let pass."""
    shop.load("orders", "12:00", (1, 1, 10))
    for table in ("pgt_watermarks", "pgt_watermark_history"):
        shop.db.execute(f"UPDATE pgtrickle.{table} SET watermark = %s::text::timestamptz", watermark)


@pytest.mark.parametrize("watermark", [FAR, PAST])
def test_a_moment_that_nobody_could_read_back_is_refused(local_shop: Shop, watermark: str) -> None:
    with pytest.raises(InvalidArgument, match="is not a valid watermark") as refused:
        local_shop.pt._call("SELECT pgtrickle.advance_watermark('orders', %s)", watermark)
    assert_explained(refused.value)
    assert "'infinity'" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("watermark", "zone"),
    [(FAR, "UTC"), (PAST, "America/Los_Angeles"), ("294276-12-31 23:59:59+00", "Pacific/Kiritimati")],
)
@pytest.mark.parametrize("gating", first(1, ("hold_back", "gate")))
def test_one_that_is_there_stops_no_tick_and_is_claimed_no_later(
    local_shop: Shop, watermark: str, zone: str, gating: str
) -> None:
    database = local_shop.db.value("SELECT current_database()")
    local_shop.db.execute(f"ALTER DATABASE {database} SET TimeZone TO '{zone}'")
    local_shop.pt.create_watermark_group("loads", ["orders"], tolerance=timedelta(days=400))
    local_shop.pt.create_stream_table("held", ORDERS, watermark_gating=gating)
    local_shop.pt.create_stream_table("beside", "SELECT order_id FROM order_lines")
    local_shop.tick()
    pretend(local_shop, watermark)
    local_shop.db.execute("INSERT INTO order_lines VALUES (1, 1, 1)")
    local_shop.tick()
    assert (local_shop.rows("held"), local_shop.rows("beside")) == ({(1, 10)}, {(1,)})
    assert local_shop.db.value(EFFECTIVE, watermark) is True
    assert len(local_shop.pt.watermarks()) == len(local_shop.pt.watermark_history("orders")) == 1
    assert local_shop.pt.verify("held").matches


def test_late_rows_from_before_year_1_are_listed(local_shop: Shop) -> None:
    local_shop.db.execute("CREATE TABLE events (id int, at timestamptz)")
    local_shop.pt.set_event_time("events", "at")
    local_shop.pt.advance_watermark("events", datetime(2026, 1, 1, tzinfo=UTC))
    local_shop.db.execute(f"INSERT INTO events VALUES (1, '{PAST}'), (2, '2025-12-31 00:00+00')")
    found = {row.row_data["id"]: row for row in local_shop.pt.late_rows()}
    assert found["1"].event_time == datetime.min.replace(tzinfo=UTC)
    assert found["1"].row_data["at"] == "0044-03-15 00:00:00+00 BC"
    assert found["2"].event_time == datetime(2025, 12, 31, tzinfo=UTC)
    assert local_shop.pt.watermark_metrics()[0].late_rows == 2


def test_rows_are_never_shown_with_another_moment_than_theirs(local_shop: Shop) -> None:
    local_shop.db.execute("CREATE TABLE events (id int, at timestamptz)")
    local_shop.pt.create_stream_table("shown", "SELECT * FROM events", watermark_retention=timedelta(days=1))
    local_shop.tick()
    local_shop.db.execute(f"INSERT INTO events VALUES (1, '{FAR}')")
    local_shop.pt.advance_watermark("events", datetime(2026, 1, 1, tzinfo=UTC))
    with pytest.raises(DatabaseError, match="too large"):
        local_shop.pt.as_of("shown", datetime(2026, 1, 1, tzinfo=UTC))


def test_limits_that_mean_for_ever_stop_no_tick(local_shop: Shop) -> None:
    for_ever = "178000000 years"
    local_shop.pt.create_stream_table("held", ORDERS, watermark_gating="gate")
    local_shop.load("orders", "12:00", (1, 1, 10))
    local_shop.tick()
    options = ", ".join(f"{name} => '{for_ever}'" for name in ("watermark_retention", "gate_deadline"))
    local_shop.db.execute(f"SELECT pgtrickle.alter_stream_table('held', {options})")
    local_shop.db.execute("SELECT pgtrickle.create_feed('follower', 'held', max_age => %s::text::interval)", for_ever)
    local_shop.db.execute("SELECT pgtrickle.create_stream_table('seldom', %s, schedule => %s)", ORDERS, for_ever)
    for limit in ("tolerance", "stale_after", "idle_after"):
        local_shop.db.execute(
            f"SELECT pgtrickle.create_watermark_group('{limit}', '{{orders, order_lines}}', {limit} => '{for_ever}')"
        )
    assert local_shop.db.value("SELECT pgtrickle.trim_history(%s::text::interval)", for_ever) == 0
    assert local_shop.db.value("SELECT pgtrickle.refresh_if_stale('held', %s::text::interval)", for_ever) is False
    for number in (2, 3):
        local_shop.load("orders", f"12:0{number}", (number, 1, 10))
        local_shop.load("order_lines", f"12:0{number}")
        local_shop.tick()
        assert len(local_shop.pt.status().stream_tables) == 2
    assert local_shop.db.execute("SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM seldom)") == [(3, 2)]
