"""close_after_idle: when nothing comes any more, the clock closes windows that are over; what comes then is late."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from pytrickle.errors import CatalogError
from tests.acceptance.conftest import Shop
from tests.acceptance.events import BIN
from tests.repeats import first

PATIENCE = timedelta(minutes=10)
VISITS = f"SELECT {BIN.format('at')} + interval '5 minutes' AS window_end, count(*) AS clicks FROM clicks GROUP BY 1"
JOINED = (
    f"SELECT {BIN.format('c.at')} + interval '5 minutes' AS window_end, c.id FROM clicks c"
    " LEFT JOIN views v ON v.page = c.page AND v.at = c.at"
)


@pytest.fixture(params=first(2, ("gate", "hold_back")))
def silent(events: Shop, request: pytest.FixtureRequest) -> Shop:
    """Windows of an hour ago, of which the watermark closed the first; then nothing comes any more."""
    create(events, "visits", VISITS, request.param)
    come(events, 1, 6)
    events.tick()
    return events


def create(shop: Shop, name: str, query: str, gating: str, **options: Any) -> None:
    given = {"close_after_idle": PATIENCE, "watermark_gating": gating, **options}
    shop.pt.create_stream_table(name, query, output_mode="append", window_end="window_end", **given)


def moment(shop: Shop, minutes: float) -> datetime:
    """Return a moment so many minutes after the beginning of a window, an hour before the first stream table was made.

    An hour before now would be in another window as soon as five minutes are over.
    """
    first_made = "(SELECT min(created_at) FROM pgtrickle.pgt_stream_tables) - interval '1 hour'"
    begin: datetime = shop.db.value(f"SELECT {BIN.format(first_made)}")
    return begin + timedelta(minutes=minutes)


def come(shop: Shop, *minutes: float, advancing: bool = True) -> None:
    """Load clicks of these minutes, and advance both sources to the last of them."""
    for at in minutes:
        number = shop.db.value("SELECT count(*) FROM clicks")
        shop.db.execute("INSERT INTO clicks VALUES (%s, %s, 1, 1)", number, moment(shop, at))
    for source in ("clicks", "views") if advancing else ():
        shop.pt.advance_watermark(source, moment(shop, minutes[-1]))


def be_silent(shop: Shop, minutes: float) -> None:
    """Let so much time pass: what the catalog noted is older by that."""
    by = timedelta(minutes=minutes)
    shop.db.execute("UPDATE pgtrickle.pgt_watermarks SET advanced_at = advanced_at - %s", by)
    shop.db.execute("UPDATE pgtrickle.pgt_dependencies SET changed_at = changed_at - %s", by)


def closed(shop: Shop, name: str = "visits") -> dict[float, int]:
    """Return how many rows or clicks each closed window has, by the minute at which it ends."""
    counted = "clicks" if name == "visits" else "1"
    rows = shop.db.execute(f"SELECT window_end, sum({counted})::int FROM {name} GROUP BY 1 ORDER BY 1")
    return {(end - moment(shop, 0)).total_seconds() / 60: count for end, count in rows}


def reason(shop: Shop, name: str = "visits") -> str:
    return str(shop.db.value("SELECT reason FROM pgtrickle.pgt_status() WHERE stream_table = %s", f"public.{name}"))


def test_the_last_window_closes_after_the_silence_and_what_comes_then_is_late(silent: Shop) -> None:
    be_silent(silent, 9)
    silent.tick()
    assert (closed(silent), "nothing came" in reason(silent)) == ({5: 1}, False)
    be_silent(silent, 2)
    silent.tick()
    assert closed(silent) == {5: 1, 10: 1}
    assert "nothing came since" in reason(silent)
    shown = silent.db.execute("SELECT close_after_idle, now() - silent_since > %s FROM pgtrickle.windows()", PATIENCE)
    assert shown == [(PATIENCE, True)]
    through = silent.db.value("SELECT closed_through FROM pgtrickle.windows()")
    now = silent.db.value("SELECT now()")
    assert timedelta(0) <= now - PATIENCE - through < timedelta(minutes=2), "and no further than the silence is long"
    come(silent, 7, advancing=False)
    come(silent, 61)
    silent.tick()
    assert closed(silent) == {5: 1, 10: 1}
    late = silent.db.execute("SELECT window_end, weight FROM pgtrickle.late_changes('visits')")
    assert late == [(moment(silent, 10), 1)]
    assert silent.db.value("SELECT closed_through FROM pgtrickle.windows()") >= through
    come(silent, 66)
    silent.tick()
    assert closed(silent) == {5: 1, 10: 1, 65: 1}, "the watermark closes windows again"
    silent.assert_verified()


def test_a_window_that_is_not_over_for_as_long_stays_open(silent: Shop) -> None:
    come(silent, 61)
    silent.tick()
    be_silent(silent, 11)
    silent.tick()
    assert closed(silent) == {5: 1, 10: 1}, "the window until 65 may still get rows"


def test_rows_that_come_without_a_watermark_end_the_silence_or_are_in_the_window(silent: Shop) -> None:
    be_silent(silent, 9)
    come(silent, 8, advancing=False)
    silent.tick()
    be_silent(silent, 2)
    silent.tick()
    # Holding back, it had not been read before the window closed.
    if silent.db.value("SELECT watermark_gating FROM pgtrickle.pgt_status()") == "gate":
        assert closed(silent) == {5: 1}, "two minutes ago a row came"
        be_silent(silent, 9)
        silent.tick()
    assert closed(silent) == {5: 1, 10: 2}, "what is there when a window closes is in it"
    assert silent.db.value("SELECT count(*) FROM pgtrickle.late_changes()") == 0
    silent.assert_verified()


def test_without_the_option_silence_closes_nothing(silent: Shop) -> None:
    silent.pt.alter_stream_table("visits", reset=["close_after_idle"])
    be_silent(silent, 60 * 24)
    silent.tick()
    assert closed(silent) == {5: 1}
    silent.pt.alter_stream_table("visits", close_after_idle="2 days")
    silent.tick()
    assert closed(silent) == {5: 1}
    silent.pt.alter_stream_table("visits", close_after_idle="1 hour")
    silent.tick()
    assert closed(silent) == {5: 1}, "it began less than an hour ago"
    silent.pt.alter_stream_table("visits", close_after_idle="1 minute")
    silent.tick()
    assert closed(silent) == {5: 1, 10: 1}


@pytest.mark.parametrize("gating", first(1, ("gate", "hold_back")))
def test_sources_that_fell_silent_apart_from_each_other_do_not_keep_the_gate_shut(events: Shop, gating: str) -> None:
    create(events, "joined", JOINED, gating)
    come(events, 1, 6)
    events.tick()
    come(events, 12, advancing=False)
    events.pt.advance_watermark("clicks", moment(events, 12))
    events.tick()
    assert closed(events, "joined") == {5: 1}
    be_silent(events, 11)
    events.tick()
    assert closed(events, "joined") == {5: 1, 10: 1, 15: 1}
    events.assert_verified()


def test_what_a_stream_table_below_holds_back_no_clock_brings(events: Shop) -> None:
    events.pt.create_stream_table("below", "SELECT id, at, page, took FROM clicks", watermark_gating="hold_back")
    create(events, "visits", VISITS.replace("clicks GROUP", "below GROUP"), "hold_back")
    create(events, "gated", VISITS.replace("clicks GROUP", "below GROUP"), "gate")
    come(events, 1, 6)
    events.tick()
    come(events, 7, advancing=False)
    events.tick()
    be_silent(events, 11)
    events.tick()
    assert closed(events) == {5: 1}
    assert closed(events, "gated") == {5: 1}


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"close_after_idle": "0"}, "longer than zero"),
        ({"close_after_idle": "1 minute", "output_mode": "update", "window_end": None}, "Only output_mode"),
    ],
)
def test_what_cannot_close_is_refused(events: Shop, options: dict[str, Any], hint: str) -> None:
    given = {"output_mode": "append", "window_end": "window_end", "watermark_gating": "gate", **options}
    with pytest.raises(CatalogError, match="close_after_idle") as refused:
        events.pt.create_stream_table("visits", VISITS, **given)
    assert hint in (refused.value.hint or "")
