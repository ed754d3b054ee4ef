"""Frozen rows: what is old enough below the effective watermark never changes, and the ledger has what it misses."""

from __future__ import annotations

import pytest

from tests.acceptance.conftest import Shop, status
from tests.acceptance.events import BIN, advance, moment

HOURLY = f"SELECT {BIN.format('at')} AS ends, page, count(*) AS clicks, sum(took) AS took FROM clicks GROUP BY 1, page"
PLAIN = "SELECT id, at, page, took FROM clicks"
LATE = "SELECT stream_table, window_end, weight, change FROM pgtrickle.late_changes() ORDER BY 1, 2, 3, 4::text"


def add(shop: Shop, number: int, seconds: float, page: int = 1, took: str = "1") -> None:
    shop.db.execute("INSERT INTO clicks VALUES (%s, %s, %s, %s)", number, moment(seconds), page, took)


@pytest.fixture
def clicks(events: Shop) -> Shop:
    events.db.execute("SELECT pgtrickle.set_event_time('clicks', 'at')")
    return events


def test_rows_stay_as_they_were_once_they_are_old_enough(clicks: Shop) -> None:
    clicks.pt.create_stream_table("plain", PLAIN, frozen_after="100 seconds")
    clicks.pt.create_stream_table("hourly", HOURLY, frozen_after="100 seconds", window_end="ends")
    for number, seconds in enumerate((0, 100, 300, 400)):
        add(clicks, number, seconds)
    clicks.tick()
    assert len(clicks.rows("plain")) == 4
    advance(clicks, 350)
    clicks.tick()
    assert status(clicks, "plain").frozen_before == moment(250)
    shown = clicks.rows("plain"), clicks.rows("hourly")
    clicks.db.execute("UPDATE clicks SET took = 1.0 WHERE id = 0")
    clicks.db.execute("DELETE FROM clicks WHERE id = 1")
    add(clicks, 5, 200)
    result = clicks.tick()["plain"]
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 0, 0)
    assert (clicks.rows("plain"), clicks.rows("hourly")) == shown
    clicks.assert_verified()
