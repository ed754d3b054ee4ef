"""The staircase: what it draws follows from the advances, and its cut is the one that hold_back reads."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import partial
from math import inf
from random import Random

from pytrickle.catalog import read_reports
from pytrickle.catalog.reports import HistoryEntry
from pytrickle.console.agreement import Advance, agreed_entries, moments
from pytrickle.console.database import Database as Read
from pytrickle.console.staircase import Scene, advances, chart
from tests.conftest import Database

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERS = (Advance(0, 100), Advance(60, 160), Advance(120, 220))
LINES = (Advance(10, 100), Advance(90, 150))


def test_the_cut_is_the_one_that_the_catalog_finds(db: Database) -> None:
    random = Random(3)
    names = ["a", "b", "c"]
    for name in names:
        db.execute(f"CREATE TABLE {name} (id int)")
    db.execute("SELECT pgtrickle.create_watermark_group('abc', %s)", names)
    for name in names:
        for minutes in sorted(random.sample(range(60), random.choice((6, 9, 12)))):
            db.execute("SELECT pgtrickle.advance_watermark(%s, %s)", name, NOON + timedelta(minutes=minutes))
    read = Read(db.dsn)
    history = {name: advances(read.report(partial(read_reports.newest_advances, source=name))) for name in names}
    read.close()
    values = {name: [each.value for each in steps] for name, steps in history.items()}
    found = set()
    for minutes in range(12):
        db.execute("SELECT pgtrickle.alter_watermark_group('abc', tolerance => %s)", timedelta(minutes=minutes))
        cut = agreed_entries(values, minutes * 60)
        agreed = db.value("SELECT agreed_watermark FROM pgtrickle.watermark_status()")
        assert (agreed and agreed.timestamp()) == (cut and min(cut.values())), minutes
        found.add(agreed)
    assert len(found) >= 3


def test_a_source_that_is_exhausted_agrees_with_all_others() -> None:
    assert agreed_entries({"orders": [1.0, 5.0], "rates": [2.0, inf]}, 0) == {"orders": 5.0}
    assert agreed_entries({"rates": [inf]}, 0) == {"rates": inf}
    assert agreed_entries({"orders": [1.0], "lines": []}, 0) is None


def test_agreement_never_moves_back_and_the_gate_is_shut_beyond_the_tolerance() -> None:
    found = [(each.at, each.agreed, each.aligned) for each in moments({"orders": ORDERS, "lines": LINES}, 10)]
    assert found == [(0, None, True), (10, 100, True), (60, 100, False), (90, 150, True), (120, 150, False)]


def test_a_chart_has_a_stair_for_each_source_a_dot_where_the_cut_takes_it_and_the_time_the_gate_was_shut() -> None:
    drawn = chart(Scene({"orders": ORDERS, "lines": LINES}, 10, since=-30, now=150), 360, 260)
    assert [stair.source for stair in drawn.stairs] == ["orders", "lines"]
    assert all(re.fullmatch(r"M [\d.]+ [\d.]+( H [\d.]+ V [\d.]+)* H [\d.]+", stair.path) for stair in drawn.stairs)
    assert [stair.path.count(" V ") for stair in drawn.stairs] == [2, 1]
    # The cut stands at 150: orders are read up to their advance to 160, lines up to theirs to 150.
    orders, lines = (stair.dot for stair in drawn.stairs)
    assert orders and lines and drawn.cut == lines[1] > orders[1]
    assert [round(width) for _, width in drawn.shut] == [round(282 / 180 * 30)] * 2
    assert all(64 <= tick.place <= 346 for tick in drawn.x_ticks) and len(drawn.x_ticks) >= 2


def test_ten_thousand_advances_are_drawn_with_a_step_for_each_pixel() -> None:
    many = tuple(Advance(float(at), float(at)) for at in range(10_000))
    drawn = chart(Scene({"orders": many}, 0, since=0, now=10_000), 360, 260)
    assert drawn.stairs[0].path.count(" V ") <= 360


def test_infinity_and_batches_are_drawn_too() -> None:
    entry = HistoryEntry(datetime.max.replace(tzinfo=UTC), NOON, "etl", None)
    assert advances((entry,)) == (Advance(NOON.timestamp(), inf),)
    batches = advances((HistoryEntry(None, NOON, "etl", None, batch=7), HistoryEntry(None, NOON, "etl", None, batch=6)))
    assert [each.value for each in batches] == [6.0, 7.0]
    drawn = chart(Scene({"a": batches, "b": (Advance(0, inf),)}, 0, 0, NOON.timestamp(), is_time=False), 360, 260)
    assert len(drawn.stairs) == 2 and "7" in {tick.label for tick in drawn.y_ticks}
