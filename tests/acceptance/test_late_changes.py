"""The late ledger of output mode append: all that closed windows missed, however the refresh met it, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from tests.acceptance.conftest import EVENTS, Shop
from tests.acceptance.events import BIN, JOINED, TUMBLING, advance, closed, create, moment, number_of

LATE = "SELECT window_end, weight, change FROM pgtrickle.late_changes() ORDER BY window_end, weight, change::text"
PER_PAGE = f"SELECT {BIN.format('at')} + interval '5 minutes' AS window_end, page, sum(took) AS took FROM clicks"


def late(shop: Shop) -> list[tuple[Any, ...]]:
    return shop.db.execute(LATE)


def reinitialize(shop: Shop) -> None:
    """Have everything computed anew, after changes that no refresh may have seen."""
    shop.db.execute("ALTER TABLE clicks DISABLE TRIGGER ALL")
    shop.db.execute("ALTER TABLE clicks ENABLE TRIGGER ALL")
    assert {result.action for result in shop.tick().values()} == {"REINITIALIZE"}


def test_nothing_is_emitted_while_a_group_never_advanced(local_shop: Shop) -> None:
    shop = local_shop
    with shop.db.connect() as connection:
        connection.execute(EVENTS)
    for source in ("clicks", "views"):
        shop.pt.create_watermark_group(source, [source])
    query = f"SELECT {BIN.format('c.at')} + interval '5 minutes' AS window_end, c.id, v.id AS view"
    for gating in ("gate", "hold_back"):
        create(shop, gating, **{gating: f"{query} FROM clicks c LEFT JOIN views v ON v.page = c.page"})
    shop.tick()
    shop.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(10))
    shop.pt.advance_watermark("clicks", moment(300))
    shop.tick()
    assert shop.rows("gate") == shop.rows("hold_back") == set()
    shop.db.execute("INSERT INTO views VALUES (1, %s, 1)", moment(5))
    shop.pt.advance_watermark("views", moment(300))
    shop.tick()
    assert shop.rows("gate") == shop.rows("hold_back") == {(moment(300), 1, 1)}
    assert shop.db.execute("SELECT * FROM pgtrickle.late_changes()") == []


def test_what_a_refresh_from_scratch_finds_in_closed_windows_is_recorded_once(events: Shop) -> None:
    grouped = f"{TUMBLING} HAVING page % 10 < 10"
    create(events, "gate", groups=grouped, rows=f"SELECT {BIN.format('at')} AS window_end, id, took FROM clicks")
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 2, 1)", moment(10), moment(20))
    advance(events, 300)
    events.tick()
    shown = events.rows("groups"), events.rows("rows")
    events.db.execute("DELETE FROM clicks WHERE id = 2")
    events.db.execute("INSERT INTO clicks VALUES (3, %s, 1, 1), (4, %s, 9, 1)", moment(20), moment(30))
    reinitialize(events)
    assert (events.rows("groups"), events.rows("rows")) == shown
    found = late(events)
    of_groups = [(weight, change["page"]) for _, weight, change in found if "page" in change]
    of_rows = [(weight, change["id"]) for _, weight, change in found if "id" in change]
    assert (of_groups, of_rows) == ([(-1, 2), (0, 1), (1, 9)], [(-1, 2), (1, 3), (1, 4)])
    events.assert_verified()
    reinitialize(events)
    assert late(events) == found
    events.db.execute("INSERT INTO clicks VALUES (5, %s, 1, 1)", moment(40))
    reinitialize(events)
    assert [row for row in late(events) if row not in found] == [
        (moment(0), 1, {"id": 5, "took": 1, "window_end": moment(0).isoformat()})
    ]
    events.assert_verified()


def test_what_a_refresh_recorded_is_not_recorded_again_from_scratch(events: Shop) -> None:
    create(events, "gate", groups=TUMBLING, rows=JOINED)
    events.db.execute("INSERT INTO views VALUES (1, %s, 1)", moment(5))
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(10))
    advance(events, 300)
    events.tick()
    events.db.execute("INSERT INTO clicks VALUES (2, %s, 1, 1), (3, %s, 1, 1)", moment(20), moment(20))
    events.tick()
    events.db.execute("DELETE FROM clicks WHERE id = 1 OR id = 3")
    events.tick()
    found = late(events)
    assert len(found) == 6
    events.assert_verified()
    events.pt._call("SELECT pgtrickle.trim_history('0')")
    assert len(late(events)) == 4, "entries of one row or group are added up"
    events.assert_verified()
    reinitialize(events)
    assert len(late(events)) == 4
    events.assert_verified()


def test_what_came_too_late_is_recorded_where_the_query_is_evaluated_as_written(events: Shop) -> None:
    events.db.execute("CREATE TABLE weights (page int, weight int)")
    events.db.execute("INSERT INTO weights VALUES (1, 1)")
    weight = "(SELECT max(w.weight) FROM weights w WHERE w.page = c.page AND 1 / w.weight > 0)"
    rates = f"string_agg((c.took * {weight})::text, ' ' ORDER BY c.id) AS rates"
    query = f"SELECT {BIN.format('c.at')} + interval '5 minutes' AS window_end, c.page, {rates} FROM clicks c"
    create(events, "gate", rates=f"{query} GROUP BY 1, c.page")
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(10))
    advance(events, 300)
    events.tick()
    shown = events.rows("rates")
    # The delta divides by the weight of a page that nobody visited, for which the query never asks.
    events.db.execute("INSERT INTO clicks VALUES (2, %s, 1, 1)", moment(20))
    events.db.execute("INSERT INTO weights VALUES (9, 0)")
    result = events.tick()["rates"]
    assert (result.action, "the differential refresh failed" in result.reason) == ("FULL", True)
    assert events.rows("rates") == shown
    # The window's row as it was emitted, and as it would be now.
    assert sorted(row[:2] for row in late(events)) == [(moment(300), -1), (moment(300), 1)]
    events.assert_verified()
    events.db.execute("INSERT INTO clicks VALUES (4, %s, 1, 1)", moment(310))
    advance(events, 600)
    events.tick()
    assert len(events.rows("rates")) == 2 and len(late(events)) == 2
    events.assert_verified()


def test_a_change_without_effect_is_not_late(events: Shop) -> None:
    events.db.execute("CREATE TABLE notes (page int PRIMARY KEY, note text)")
    events.db.execute("INSERT INTO notes VALUES (1, 'a')")
    joined = PER_PAGE.replace("page", "c.page").replace(
        "clicks", "clicks c JOIN notes n ON n.page = c.page AND n.note <> ''"
    )
    create(
        events,
        "gate",
        sums=f"{joined} GROUP BY 1, c.page",
        extremes=joined.replace("sum(took)", "max(took)") + " GROUP BY 1, c.page",
        durations=joined.replace("sum(took)", "sum(took * interval '1 second')") + " GROUP BY 1, c.page",
    )
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1)", moment(10))
    advance(events, 300)
    events.tick()
    events.db.execute("UPDATE notes SET note = 'b'")
    events.tick()
    events.db.execute("INSERT INTO clicks VALUES (2, %s, 1, 1)", moment(11))
    events.db.execute("DELETE FROM clicks WHERE id = 2")
    events.tick()
    assert late(events) == []
    events.db.execute("UPDATE clicks SET took = 1.0")
    events.tick()
    named = "SELECT DISTINCT stream_table FROM pgtrickle.late_changes() ORDER BY 1"
    assert events.db.execute(named) == [("public.extremes",), ("public.sums",)], "1.0 is shown otherwise than 1"
    events.db.execute("UPDATE clicks SET took = -1")
    events.tick()
    assert len(late(events)) == 5
    events.assert_verified()


def test_verify_still_looks_at_the_other_groups_of_a_window_that_missed_something(events: Shop) -> None:
    create(events, "gate", groups=TUMBLING)
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 2, 1)", moment(10), moment(20))
    advance(events, 300)
    events.tick()
    events.db.execute("INSERT INTO clicks VALUES (3, %s, 1, 1)", moment(30))
    events.tick()
    events.assert_verified()
    with events.db.connect() as owner, owner.transaction():
        owner.execute("ALTER TABLE groups DISABLE TRIGGER USER")
        owner.execute("UPDATE groups SET clicks = 7 WHERE page = 2")
        owner.execute("ALTER TABLE groups ENABLE ALWAYS TRIGGER pgtrickle_guard")
    found = events.pt.verify("groups")
    assert (found.missing, found.unexpected) == (1, 1)


@pytest.mark.parametrize("hop", ["5 minutes", "10 minutes"], ids=["key", "computed"])
def test_the_state_of_closed_windows_is_dropped_though_having_hides_their_groups(events: Shop, hop: str) -> None:
    end = f"{BIN.format('at')} + interval '5 minutes'"
    query = {
        "5 minutes": f"SELECT {end} AS window_end, page, count(*) AS clicks FROM clicks GROUP BY 1, page",
        "10 minutes": f"SELECT {BIN.format('at')} AS start, {end} AS window_end, count(*) AS n FROM clicks GROUP BY 1",
    }[hop]
    create(events, "gate", pairs=f"{query} HAVING count(*) > 1")
    state = f"pgtrickle_state.state_{number_of(events, 'pairs')}"
    events.tick()
    for number in range(3):
        events.db.execute("INSERT INTO clicks VALUES (%s, %s, 1, 1)", number, moment(300 * number + 10))
        advance(events, 300 * number)
        events.tick()
    assert events.db.value(f"SELECT count(*) FROM {state}") == 1
    advance(events, 900)
    events.tick()
    assert events.db.value(f"SELECT count(*) FROM {state}") == 0, "an advance alone drops it too"
    indexes = "SELECT count(*) FROM pg_indexes WHERE format('%%I.%%I', schemaname, tablename) = %s"
    assert events.db.value(indexes, state) == (2 if hop == "5 minutes" else 1)
    assert events.rows("pairs") == closed(events, f"{query} HAVING count(*) > 1", moment(900)) == set()
