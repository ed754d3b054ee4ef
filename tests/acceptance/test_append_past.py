"""The past of a table of closed windows is what it had emitted; and what a gate's deadline does to one."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from pytrickle.errors import InvalidArgument, WaitTimeout
from tests.acceptance.conftest import Rows, Shop, assert_explained
from tests.acceptance.events import JOINED, TUMBLING, advance, create, moment
from tests.repeats import first

WAITS = "SELECT waits_for FROM pgtrickle.windows()"


def as_of(shop: Shop, name: str, seconds: float) -> Rows:
    return set(shop.pt.as_of(name, moment(seconds)).rows)


@pytest.mark.parametrize(
    ("gating", "query"),
    first(2, (("gate", TUMBLING), ("hold_back", JOINED), ("gate", JOINED), ("hold_back", TUMBLING))),
    ids=["gate-grouped", "hold_back-rows", "gate-rows", "hold_back-grouped"],
)
def test_as_of_gives_what_was_shown_whatever_came_too_late(events: Shop, gating: str, query: str) -> None:
    create(events, gating, emitted=query)
    events.pt.alter_stream_table("emitted", watermark_retention=timedelta(days=1))
    chance, seen = random.Random(5), dict[datetime, Rows]()
    for step in range(8):
        for number in range(6):
            # Some are on time, others belong to windows that were closed long ago.
            seconds = 300 * chance.choice((step, step, 0)) + chance.randrange(300)
            row = (step * 10 + number, moment(seconds), chance.randint(1, 2))
            events.db.execute("INSERT INTO clicks VALUES (%s, %s, %s, 1)", *row)
            events.db.execute("INSERT INTO views VALUES (%s, %s, %s)", *row)
        advance(events, 300 * (step + 1))
        events.tick()
        seen[moment(300 * (step + 1))] = events.rows("emitted")
    assert events.db.value("SELECT count(*) FROM pgtrickle.late_changes()") > 0
    assert len({len(rows) for rows in seen.values()}) > 3
    for watermark, rows in seen.items():
        found = events.pt.as_of("emitted", watermark + timedelta(seconds=17) if watermark < max(seen) else watermark)
        assert set(found.rows) == rows, watermark
        assert list(found.watermarks) == ["public.emitted"] and len(found.columns) == len(next(iter(seen[max(seen)])))


def test_what_was_not_emitted_yet_is_refused(events: Shop) -> None:
    create(events, "gate", tumbling=TUMBLING)
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(10))
    refused(events, "tumbling", moment(300), "has not closed its windows through .*, but none yet")
    advance(events, 300)
    events.tick()
    refused(
        events, "tumbling", moment(301), "has not closed its windows through .* 12:05:01.*, but through .* 12:05:00"
    )
    refused(events, "tumbling", 7, "closes windows by event time, not by batch numbers")
    assert len(as_of(events, "tumbling", 300)) == 1 and as_of(events, "tumbling", 299) == set()


def test_what_reads_closed_windows_has_no_past_of_its_own(events: Shop) -> None:
    create(events, "gate", tumbling=TUMBLING)
    events.pt.create_stream_table("per_page", "SELECT page, sum(clicks) AS clicks FROM tumbling GROUP BY page")
    advance(events, 300)
    events.tick()
    refused(events, "per_page", moment(300), r"public\.per_page reads the closed windows of public\.tumbling")


def refused(shop: Shop, name: str, wanted: Any, sentence: str) -> None:
    with pytest.raises(InvalidArgument, match=sentence) as raised:
        shop.pt.as_of(name, wanted)
    assert_explained(raised.value)


def test_a_deadline_closes_only_what_all_sources_assert(events: Shop) -> None:
    create(events, "gate", tumbling=TUMBLING)
    events.pt.alter_stream_table("tumbling", gate_deadline=timedelta(hours=1))
    for number, seconds in enumerate((10, 310, 610), 1):
        events.db.execute("INSERT INTO clicks VALUES (%s, %s, 1, 1)", number, moment(seconds))
    advance(events, 0)
    events.tick()
    assert events.db.value(WAITS) is None
    advance(events, 900, "clicks")
    advance(events, 330, "views")
    apart = "site: public.views is 9 min 30 s behind public.clicks, tolerance 0 s"
    assert (events.tick()["tumbling"].action, events.rows("tumbling")) == ("SKIP", set())
    assert events.db.value(WAITS) == apart
    events.db.execute("UPDATE pgtrickle.pgt_stream_tables SET gated_since = gated_since - interval '2 hours'")
    assert events.db.value(WAITS) is None, "its deadline has passed"
    result = events.tick()["tumbling"]
    assert (result.action, result.rows_inserted) == ("DIFFERENTIAL", 1)
    assert result.reason.startswith("gate deadline of 01:00:00 passed")
    assert {row[1] for row in events.rows("tumbling")} == {moment(300)}
    assert events.db.value("SELECT closed_through FROM pgtrickle.windows()") == moment(330)
    assert events.db.value(WAITS) == apart, "the next deadline is to come"
    events.db.execute("INSERT INTO clicks VALUES (4, %s, 1, 1)", moment(400))
    advance(events, 900)
    events.tick()
    assert {row[1]: row[3] for row in events.rows("tumbling")} == dict(
        zip(map(moment, (300, 600, 900)), (1, 2, 1), strict=True)
    )
    assert events.db.value("SELECT count(*) FROM pgtrickle.late_changes()") == 0
    assert events.db.value(WAITS) is None
    events.assert_verified()


def test_a_held_back_table_that_stays_says_what_its_windows_wait_for(events: Shop) -> None:
    create(events, "hold_back", tumbling=TUMBLING)
    advance(events, 300)
    advance(events, 450, "clicks")
    events.pt.mark_idle("clicks")
    events.pt.mark_idle("views")
    events.tick()
    assert events.db.value(WAITS) is None
    advance(events, 400, "views")
    events.tick()
    kept = "site: stays where it is until a watermark of public.clicks covers what it shows"
    assert events.db.value(WAITS) == kept
    with pytest.raises(WaitTimeout):
        events.pt.wait_for("tumbling", moment(400), timeout=timedelta(0))
    advance(events, 450)
    events.tick()
    assert events.db.value(WAITS) is None
