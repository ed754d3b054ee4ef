"""Ticks obey schedules, tiers and pauses. Time passes by moving the moments in the catalog back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import pytrickle
from pytrickle.schedule.due import work_out_moments
from tests.acceptance.conftest import JOIN, ORDERS, Shop, misalign, status

COUNTED = "SELECT count(*) AS n FROM {}"


@pytest.fixture
def shop(local_shop: Shop) -> Shop:
    """When a stream table is due does not depend on what refreshes it."""
    return local_shop


def wait(shop: Shop, length: str) -> None:
    """Let time pass as far as schedules know."""
    shop.db.execute(
        "UPDATE pgtrickle.pgt_stream_tables"
        f" SET last_refresh_at = last_refresh_at - interval '{length}', next_due_at = next_due_at - interval '{length}'"
    )


def order(shop: Shop, number: int) -> None:
    shop.db.execute("INSERT INTO orders VALUES (%s, 1, 10)", number)


def versions(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.db.execute("SELECT xmin::text, ctid::text FROM pgtrickle.pgt_stream_tables ORDER BY pgt_id")


def next_due(shop: Shop, name: str) -> datetime:
    moment = status(shop, name).next_due_at
    assert isinstance(moment, datetime)
    return moment.astimezone(UTC)


def test_an_interval_without_changes_is_due_once_each_time_and_writes_once(shop: Shop) -> None:
    shop.pt.create_stream_table("five", ORDERS, schedule="5 minutes")
    shop.tick()
    assert shop.tick() == {}
    wait(shop, "5 minutes")
    before = versions(shop)
    assert shop.tick()["five"].action == "NO_DATA"
    after = versions(shop)
    assert after != before
    assert shop.tick() == {}
    assert versions(shop) == after
    assert status(shop, "five").staleness < timedelta(minutes=1)


@pytest.mark.parametrize(("tier", "early", "rest"), [("warm", "9 minutes", "1 minute"), ("cold", "49 min", "1 minute")])
def test_a_tier_stretches_an_interval(shop: Shop, tier: str, early: str, rest: str) -> None:
    shop.pt.create_stream_table("five", ORDERS, schedule="5 minutes", tier=tier)
    shop.tick()
    order(shop, 1)
    wait(shop, early)
    assert shop.tick() == {}
    wait(shop, rest)
    assert shop.tick()["five"].rows_inserted == 1


def test_a_calculated_table_of_a_lower_tier_waits_some_poll_intervals(
    shop: Shop, connect: Callable[..., pytrickle.Client]
) -> None:
    slow = connect(poll_interval=timedelta(minutes=10))
    slow.create_stream_table("warm", ORDERS, tier="warm")
    slow.tick()
    order(shop, 1)
    wait(shop, "19 minutes")
    assert slow.tick() == ()
    wait(shop, "1 minute")
    assert [result.rows_inserted for result in slow.tick()] == [1]
    wait(shop, "20 minutes")
    before = versions(shop)
    assert [result.action for _ in range(3) for result in slow.tick()] == ["NO_DATA"] * 3
    assert versions(shop) == before, "an idle table costs no write"


def test_a_cron_schedule_fires_at_its_moment_and_missed_ones_are_made_up_for_once(shop: Shop) -> None:
    shop.pt.create_stream_table("daily", ORDERS, schedule="@daily", schedule_timezone="UTC")
    assert shop.tick()["daily"].action == "FULL"
    now = shop.db.value("SELECT now()")
    assert timedelta(0) < next_due(shop, "daily") - now <= timedelta(days=1)
    assert f"{next_due(shop, 'daily'):%H:%M}" == "00:00"
    order(shop, 1)
    assert shop.tick() == {}
    wait(shop, "5 days")
    assert shop.tick()["daily"].rows_inserted == 1
    assert next_due(shop, "daily") > now
    assert shop.tick() == {}
    wait(shop, "1 day")
    assert shop.tick()["daily"].action == "NO_DATA"
    assert shop.tick() == {}


def test_a_cron_schedule_of_a_lower_tier_leaves_moments_out(shop: Shop) -> None:
    for tier in ("hot", "warm", "cold"):
        shop.pt.create_stream_table(tier, ORDERS, schedule="0 0 1 1 *", schedule_timezone="Europe/Berlin", tier=tier)
    shop.tick()
    years = {tier: next_due(shop, tier).year for tier in ("hot", "warm", "cold")}
    assert years == {"hot": years["hot"], "warm": years["hot"] + 1, "cold": years["hot"] + 9}
    assert f"{next_due(shop, 'hot'):%m-%d %H:%M}" == "12-31 23:00"


def test_an_altered_schedule_gets_its_next_moment_at_the_next_tick(shop: Shop) -> None:
    shop.pt.create_stream_table("report", ORDERS)
    shop.tick()
    shop.pt.alter_stream_table("report", schedule="30 4 29 2 *", schedule_timezone="Asia/Tokyo")
    assert shop.tick() == {}
    assert f"{next_due(shop, 'report'):%m-%d %H:%M}" == "02-28 19:30"
    shop.pt.alter_stream_table("report", schedule_timezone="UTC")
    assert shop.tick() == {}
    assert f"{next_due(shop, 'report'):%m-%d %H:%M}" == "02-29 04:30"


def test_a_schedule_that_somebody_alters_is_left_to_the_next_tick(shop: Shop) -> None:
    shop.pt.create_stream_table("totals", ORDERS, schedule="@hourly", schedule_timezone="UTC")
    ticking = shop.db.connect(options="-c lock_timeout=2s")
    with shop.db.connect() as other, other.transaction():
        other.execute("SELECT pgtrickle.alter_stream_table('totals', schedule => '@yearly')")
        work_out_moments(ticking)
        assert status(shop, "totals").next_due_at is None
    work_out_moments(ticking)
    assert (next_due(shop, "totals").month, next_due(shop, "totals").day) == (1, 1)


def test_a_moment_waits_behind_a_gate_until_it_is_served(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate", schedule="@daily", schedule_timezone="UTC")
    misalign(pipeline)
    wait(pipeline, "1 day")
    assert [pipeline.tick()["report"].action for _ in range(2)] == ["SKIP", "SKIP"]
    pipeline.load("order_lines", "12:05", (2, 1, 1))
    assert pipeline.tick()["report"].rows_inserted == 1
    assert pipeline.tick() == {}


def test_a_refresh_by_hand_serves_the_moment_that_has_come_but_no_later_one(shop: Shop) -> None:
    shop.pt.create_stream_table("daily", ORDERS, schedule="@daily", schedule_timezone="UTC")
    shop.tick()
    due = next_due(shop, "daily")
    shop.pt.refresh("daily")
    assert next_due(shop, "daily") == due
    wait(shop, "1 day")
    shop.pt.refresh("daily")
    assert next_due(shop, "daily") >= due
    assert shop.tick() == {}


def test_a_time_zone_this_machine_does_not_know_stops_one_table_and_says_so(shop: Shop) -> None:
    shop.pt.create_stream_table("lost", ORDERS, schedule="@daily", schedule_timezone="UTC")
    shop.pt.create_stream_table("sound", ORDERS)
    shop.tick()
    shop.db.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET schedule_timezone = 'Mars/Olympus', next_due_at = NULL"
        " WHERE pgt_name = 'lost'"
    )
    order(shop, 1)
    assert set(shop.tick()) == {"sound"}
    lost = status(shop, "lost")
    assert not lost.due
    assert "Mars/Olympus" in lost.last_error
    before = versions(shop)
    shop.tick()
    assert versions(shop) == before


@pytest.fixture
def halted(shop: Shop) -> Shop:
    """A paused and a frozen table with changes to show, and a table over each."""
    for name, query in (("paused", ORDERS), ("frozen", ORDERS)):
        shop.pt.create_stream_table(name, query)
        shop.pt.create_stream_table(f"over_{name}", COUNTED.format(name))
    shop.tick()
    assert shop.pt.pause("paused") == 1
    shop.pt.alter_stream_table("frozen", tier="frozen")
    order(shop, 1)
    return shop


def test_ticks_leave_out_what_is_paused_or_frozen_and_serve_what_reads_it(halted: Shop) -> None:
    results = halted.tick()
    assert {name: result.action for name, result in results.items()} == {
        "over_paused": "NO_DATA",
        "over_frozen": "NO_DATA",
    }
    assert halted.rows("paused") == halted.rows("frozen") == set()
    halted.assert_verified()


def test_what_is_asked_for_runs_though_paused_or_frozen(halted: Shop) -> None:
    assert halted.pt.refresh("paused").rows_inserted == 1
    halted.db.execute("SELECT pgtrickle.refresh_stream_table('frozen')")
    assert halted.tick()["frozen"].rows_inserted == 1
    order(halted, 2)
    assert set(halted.tick()) == {"over_paused", "over_frozen"}


def test_resuming_brings_back_what_was_paused_with_all_it_missed(halted: Shop) -> None:
    assert halted.pt.resume("paused") == 1
    results = halted.tick()
    assert (results["paused"].rows_inserted, results["over_paused"].action) == (1, "DIFFERENTIAL")
    assert "frozen" not in results
    assert halted.pt.pause() == 4
    assert halted.tick() == {}
    assert halted.pt.resume() == 4
    halted.pt.alter_stream_table("frozen", tier="hot")
    halted.tick()
    assert halted.rows("over_frozen") == halted.rows("over_paused") == {(1,)}


def test_a_paused_member_holds_a_diamond_until_it_is_resumed_or_one_is_asked_for(shop: Shop) -> None:
    shop.pt.create_stream_table("lefts", ORDERS)
    shop.pt.create_stream_table("rights", ORDERS)
    shop.pt.create_stream_table("pairs", "SELECT l.id FROM lefts l JOIN rights USING (id)")
    shop.tick()
    order(shop, 1)
    shop.pt.pause("lefts")
    results = shop.tick()
    assert {result.action for result in results.values()} == {"SKIP"}
    assert results["lefts"].reason == "public.lefts is paused"
    assert results["pairs"].reason == "it is refreshed together with public.lefts: public.lefts is paused"
    shop.db.execute("SELECT pgtrickle.refresh_stream_table('pairs')")
    assert {result.action for result in shop.tick().values()} == {"DIFFERENTIAL"}
    order(shop, 2)
    shop.pt.resume("lefts")
    shop.tick()
    assert shop.rows("pairs") == {(1,), (2,)}


def test_a_paused_member_of_a_refresh_group_is_left_out_when_the_others_are_due(shop: Shop) -> None:
    shop.pt.create_stream_table("one", ORDERS)
    shop.pt.create_stream_table("other", ORDERS)
    call = "SELECT pgtrickle.create_refresh_group('pair', ARRAY['one', 'other'], isolation => 'read_committed')"
    shop.db.execute(call)
    shop.tick()
    shop.pt.pause("other")
    order(shop, 1)
    assert set(shop.tick()) == {"one"}


def test_a_paused_table_that_was_never_filled_holds_up_what_reads_it(shop: Shop) -> None:
    shop.pt.create_stream_table("base", ORDERS)
    shop.pt.create_stream_table("top", COUNTED.format("base"))
    shop.pt.pause("base")
    results = shop.tick()
    assert set(results) == {"top"}
    assert results["top"].reason == "public.base has not been loaded yet"


def test_hold_back_over_a_paused_table_waits_for_it(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("base", ORDERS, watermark_gating="hold_back")
    pipeline.pt.create_stream_table("top", COUNTED.format("base"), watermark_gating="hold_back")
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.load("order_lines", "12:00")
    pipeline.tick()
    pipeline.pt.pause("base")
    result = pipeline.tick()["top"]
    assert (result.action, "base was not refreshed in this tick" in result.reason) == ("SKIP", True)
