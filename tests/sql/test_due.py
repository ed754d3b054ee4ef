"""When a tick takes up a stream table, and which cron moments are to be worked out."""

from __future__ import annotations

import pytest

from tests.conftest import Database
from tests.sql.checks import create

HALTED = "SELECT pgtrickle_private.halted(t) FROM pgtrickle.pgt_stream_tables AS t"
SET = "UPDATE pgtrickle.pgt_stream_tables SET {}"


@pytest.fixture
def clock(tables: Database) -> Database:
    """A filled stream table, last refreshed an hour ago."""
    create(tables, "SELECT a FROM t")
    change(tables, "frontier_version = 1, last_refresh_at = now() - interval '1 hour'")
    return tables


def change(db: Database, assignments: str) -> None:
    db.execute(SET.format(assignments))


def due(db: Database, poll_interval: str = "1 second") -> bool:
    query = "SELECT pgtrickle_private.is_due(t, %s::interval) FROM pgtrickle.pgt_stream_tables AS t"
    answer = db.value(query, poll_interval)
    assert isinstance(answer, bool)
    return answer


@pytest.mark.parametrize("schedule", ["calculated", "1 year", "@yearly"])
def test_a_table_never_filled_is_due_at_once_unless_ticks_leave_it_out(tables: Database, schedule: str) -> None:
    create(tables, "SELECT a FROM t", schedule=schedule, schedule_timezone="UTC")
    assert due(tables)
    change(tables, "next_due_at = now() + interval '1 day'")
    assert due(tables)
    change(tables, "paused = true")
    assert not due(tables)
    change(tables, "paused = false, tier = 'frozen'")
    assert not due(tables)


@pytest.mark.parametrize(
    ("tier", "before", "after"), [("hot", "59 min", "61 min"), ("warm", "29 min", "31 min"), ("cold", "5 min", "7 min")]
)
def test_an_interval_is_stretched_by_the_tier(clock: Database, tier: str, before: str, after: str) -> None:
    change(clock, f"tier = '{tier}', schedule = '{before}'")
    assert due(clock)
    change(clock, f"schedule = '{after}'")
    assert not due(clock)


def test_a_calculated_table_is_always_due_and_in_a_lower_tier_not_again_for_some_poll_intervals(
    clock: Database,
) -> None:
    assert due(clock, "1 year")
    change(clock, "tier = 'warm'")
    assert due(clock, "29 minutes") and not due(clock, "31 minutes")
    change(clock, "tier = 'cold'")
    assert due(clock, "5 minutes") and not due(clock, "7 minutes")


def test_a_cron_schedule_is_due_from_its_moment_until_a_refresh_serves_it(clock: Database) -> None:
    change(clock, "schedule = '@daily', next_due_at = NULL")
    assert not due(clock)
    change(clock, "next_due_at = now() + interval '1 minute'")
    assert not due(clock)
    change(clock, "next_due_at = now() - interval '59 minutes'")
    assert due(clock)
    change(clock, "last_refresh_at = next_due_at - interval '1 microsecond'")
    assert due(clock)
    change(clock, "last_refresh_at = next_due_at")
    assert not due(clock)


@pytest.mark.parametrize("schedule", ["1 second", "@hourly"])
def test_what_ticks_leave_out_is_not_due(clock: Database, schedule: str) -> None:
    change(clock, f"schedule = '{schedule}', next_due_at = now() - interval '1 minute'")
    assert due(clock)
    change(clock, "paused = true")
    assert not due(clock)
    change(clock, "paused = false, tier = 'frozen'")
    assert not due(clock)


@pytest.mark.parametrize("state", ["status = 'SUSPENDED'", "retry_at = now() + interval '1 minute'"])
def test_what_failed_waits_for_its_next_attempt_or_for_somebody(clock: Database, state: str) -> None:
    change(clock, state)
    assert not due(clock)
    clock.execute("SELECT pgtrickle.resume_stream_table()")
    assert due(clock)


def test_a_clock_that_was_set_back_does_not_stop_a_table(clock: Database) -> None:
    change(clock, "schedule = '5 minutes', last_refresh_at = now() + interval '1 year'")
    assert due(clock)
    change(clock, "schedule = '@hourly', next_due_at = now() - interval '1 minute'")
    assert due(clock)
    failed = "last_error_at = now() + interval '{0}', retry_at = now() + interval '{0}' + interval '10 seconds'"
    change(clock, failed.format("1 year"))
    assert due(clock) and clock.value(HALTED) is None
    change(clock, failed.format("-5 seconds"))
    assert not due(clock) and clock.value(HALTED) == "left alone after a failure"


AWAITED = (
    "SELECT expression, m.schedule_timezone, after = now(), after = last_refresh_at, nth"
    " FROM pgtrickle_private.awaited_moments() AS m JOIN pgtrickle.pgt_stream_tables USING (pgt_id)"
)


def test_moments_are_awaited_of_new_and_altered_and_served_schedules(clock: Database) -> None:
    assert clock.execute(AWAITED) == []
    clock.execute(
        "SELECT pgtrickle.alter_stream_table('s', schedule => '@daily', schedule_timezone => 'Europe/Berlin')"
    )
    assert clock.execute(AWAITED) == [("0 0 * * *", "Europe/Berlin", True, False, 1)]
    change(clock, "next_due_at = now() + interval '1 minute'")
    assert clock.execute(AWAITED) == []
    for option in ("tier => 'warm'", "schedule => '5 4 * * *'", "schedule_timezone => 'Asia/Tokyo'"):
        clock.execute(f"SELECT pgtrickle.alter_stream_table('s', {option})")
        assert clock.value("SELECT next_due_at FROM pgtrickle.pgt_stream_tables") is None
        change(clock, "next_due_at = now() - interval '1 minute'")
    assert clock.execute(AWAITED) == [], "the moment has come and was not served"
    change(clock, "last_refresh_at = now() - interval '30 seconds'")
    assert clock.execute(AWAITED) == [("5 4 * * *", "Asia/Tokyo", False, True, 2)]
    change(clock, "paused = true")
    assert clock.execute(AWAITED) == []


def test_moments_are_awaited_again_when_the_clock_was_set_back_and_one_that_has_come_is_kept(clock: Database) -> None:
    change(
        clock,
        "schedule = '@daily', last_refresh_at = now() + interval '1 year', next_due_at = now() + interval '2 years'",
    )
    assert clock.execute(AWAITED) == [("0 0 * * *", clock.value("SHOW timezone"), True, False, 1)]
    change(clock, "next_due_at = now() - interval '1 second'")
    assert clock.execute(AWAITED) == []
