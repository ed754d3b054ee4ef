"""Output modes: append emits a window once, when it is closed; what comes too late for it goes to the late ledger."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import pytrickle
from pytrickle.errors import InvalidArgument, NotDifferentiable
from tests.acceptance.conftest import Shop
from tests.acceptance.events import (
    BIN,
    JOINED,
    QUERIES,
    START,
    TUMBLING,
    advance,
    closed,
    create,
    moment,
    number_of,
)
from tests.repeats import first


@pytest.fixture(params=first(1, ("hold_back", "gate")))
def gating(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(
    ("gating", "threshold"),
    first(1, (("hold_back", None), ("gate", None), ("hold_back", 0))),
    ids=["hold_back-direct", "gate-direct", "hold_back-spark"],
)
def test_two_streams_at_different_rates_emit_each_window_once_and_right(
    events: Shop, gating: str, threshold: int | None, request: pytest.FixtureRequest
) -> None:
    if threshold == 0:
        connect: Callable[..., pytrickle.Client] = request.getfixturevalue("connect")
        events = Shop(events.db, connect(direct_delta_rows=0))
    create(events, gating, **QUERIES)
    chance, clock = random.Random(3), {"clicks": 0.0, "views": 0.0}
    events.db.execute("CREATE TABLE written (name text, change text, at int)")
    for name in QUERIES:
        watch(events, name)
    for step in range(30):
        source, pace = ("clicks", 120) if step % 3 else ("views", 300)
        with events.db.connect() as loader, loader.transaction():
            for number in range(8):
                at = moment(clock[source] + chance.random() * pace)
                values = (step * 100 + number, at, chance.randint(1, 2))
                took = ", %s" if source == "clicks" else ""
                more = (chance.randint(1, 50) / 10,) if source == "clicks" else ()
                loader.execute(f"INSERT INTO {source} VALUES (%s, %s, %s{took})".encode(), (*values, *more))
            # Corrections of what is still open.
            loader.execute(f"DELETE FROM {source} WHERE id = %s AND at > %s".encode(), (step * 100, at))
            clock[source] += pace
            loader.execute("SELECT pgtrickle.advance_watermark(%s, %s)", (source, moment(clock[source])))
        events.tick()
        through = moment(min(clock.values()))
        for name, query in QUERIES.items():
            shown = events.rows(name)
            assert shown <= closed(events, query, through), name
    advance(events, 10_000)
    events.tick()
    for name, query in QUERIES.items():
        assert len(events.rows(name)) > 5
        assert events.rows(name) == set(events.db.execute(query)), name
        assert events.db.execute("SELECT DISTINCT change FROM written WHERE name = %s", name) == [("INSERT",)]
    assert events.db.value("SELECT count(*) FROM pgtrickle.late_changes()") == 0
    assert {row[2] for row in events.db.execute("SELECT * FROM pgtrickle.windows()")} == {moment(10_000)}
    events.assert_verified()
    left = "SELECT count(*) FROM pgtrickle_state.{}_" + str(number_of(events, "tumbling"))
    assert [events.db.value(left.format(kind)) for kind in ("body", "state")] == [0, 0]


def test_a_window_collects_its_rows_and_is_emitted_once(events: Shop, gating: str) -> None:
    query = (
        f"SELECT {BIN.format('at')} + interval '5 minutes' AS window_end, array_agg(id) AS ids FROM clicks GROUP BY 1"
    )
    create(events, gating, collected=query)
    shown = "SELECT extract(epoch FROM window_end - '2026-01-01 12:00Z')::int, ids FROM collected ORDER BY 1"
    events.db.execute(
        "INSERT INTO clicks SELECT i, %s::timestamptz + i * interval '1 min', 1, 1 FROM generate_series(0, 7) i", START
    )
    advance(events, 250)
    events.tick()
    assert events.db.execute(shown) == []
    events.db.execute("DELETE FROM clicks WHERE id = 2")
    advance(events, 400)
    assert events.tick()["collected"].action == "DIFFERENTIAL"
    assert events.db.execute(shown) == [(300, [0, 1, 3, 4])]
    events.db.execute("INSERT INTO clicks VALUES (9, %s, 1, 1), (10, %s, 1, 1)", moment(5), moment(500))
    advance(events, 700)
    assert events.tick()["collected"].action == "DIFFERENTIAL"
    assert events.db.execute(shown) == [(300, [0, 1, 3, 4]), (600, [5, 6, 7, 10])]
    assert events.db.value("SELECT change FROM pgtrickle.late_changes()") == {"window_end": "2026-01-01T12:05:00+00:00"}
    events.assert_verified()


def watch(shop: Shop, name: str) -> None:
    """Have every statement that writes rows of a stream table noted."""
    function = f"note_{name}"
    shop.db.execute(
        f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS"
        f" $$BEGIN INSERT INTO written VALUES ('{name}', TG_OP, 0); RETURN NULL; END$$"
    )
    events = f"AFTER INSERT OR UPDATE OR DELETE ON {name}"
    shop.db.execute(f"CREATE TRIGGER {function} {events} FOR EACH ROW EXECUTE FUNCTION {function}()")


@pytest.mark.parametrize("query", [TUMBLING, JOINED], ids=["grouped", "rows"])
def test_what_comes_too_late_is_recorded_and_changes_nothing(events: Shop, query: str) -> None:
    create(events, "gate", emitted=query)
    for number, seconds in enumerate((10, 20, 400), 1):
        events.db.execute("INSERT INTO clicks VALUES (%s, %s, 1, 1.5)", number, moment(seconds))
        events.db.execute("INSERT INTO views VALUES (%s, %s, 1)", number, moment(seconds))
    events.tick()
    assert events.rows("emitted") == set()
    advance(events, 300)
    assert events.tick()["emitted"].rows_inserted > 0
    before = events.rows("emitted")
    assert before == closed(events, query, moment(300)) and len(before) > 0

    events.db.execute("INSERT INTO clicks VALUES (4, %s, 1, 2)", moment(15))
    events.db.execute("UPDATE clicks SET took = took + 1 WHERE id = 1")
    events.db.execute("DELETE FROM clicks WHERE id = 2")
    events.db.execute("INSERT INTO clicks VALUES (5, %s, 1, 7)", moment(410))
    events.db.execute("INSERT INTO views VALUES (5, %s, 1)", moment(405))
    result = events.tick()["emitted"]
    assert (result.action, result.rows_inserted, result.rows_deleted) == ("DIFFERENTIAL", 0, 0)
    assert events.rows("emitted") == before
    found = events.db.execute("SELECT window_end, closed_through, weight FROM pgtrickle.late_changes('emitted')")
    assert found and {row[:2] for row in found} == {(moment(300), moment(300))}
    assert events.db.value("SELECT late_changes FROM pgtrickle.windows()") == len(found)
    events.assert_verified()

    advance(events, 600)
    events.tick()
    assert events.rows("emitted") - before == {row for row in closed(events, query, moment(600)) if moment(600) in row}
    events.assert_verified()


def test_an_advance_alone_closes_windows_and_readers_follow(events: Shop, gating: str) -> None:
    create(events, gating, tumbling=TUMBLING)
    events.pt.create_stream_table("per_page", "SELECT page, sum(clicks) AS clicks FROM tumbling GROUP BY page")
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 2, 1)", moment(10), moment(310))
    advance(events, 0)
    events.tick()
    assert events.rows("tumbling") == events.rows("per_page") == set()
    advance(events, 300)
    results = events.tick()
    assert (results["tumbling"].rows_inserted, results["per_page"].rows_inserted) == (1, 1)
    advance(events, 400)
    history = len(events.pt.history("tumbling", limit=100))
    assert events.tick()["tumbling"].action == "NO_DATA"
    assert len(events.pt.history("tumbling", limit=100)) == history
    events.pt.advance_watermark("clicks", "infinity")
    events.pt.advance_watermark("views", "infinity")
    events.tick()
    assert events.rows("per_page") == {(1, 1), (2, 1)}
    events.assert_verified()


def test_a_refresh_from_scratch_leaves_emitted_windows_alone(events: Shop) -> None:
    create(events, "gate", tumbling=TUMBLING)
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 2, 1)", moment(10), moment(310))
    advance(events, 300)
    events.tick()
    emitted = events.rows("tumbling")
    events.db.execute("INSERT INTO clicks VALUES (3, %s, 1, 1)", moment(20))
    events.db.execute("UPDATE pgtrickle.pgt_stream_tables SET reinitialize_reason = 'for a test'")
    assert events.tick()["tumbling"].action == "REINITIALIZE"
    assert events.rows("tumbling") == emitted and len(emitted) == 1
    late = "SELECT window_end, weight, change ->> 'page' FROM pgtrickle.late_changes()"
    assert events.db.execute(late) == [(moment(300), 0, "1")]
    events.assert_verified()
    advance(events, 600)
    events.tick()
    assert events.rows("tumbling") == emitted | {row for row in events.db.execute(TUMBLING) if row[1] == moment(600)}
    events.assert_verified()


def test_complete_computes_the_whole_every_time(events: Shop) -> None:
    events.pt.create_stream_table("whole", TUMBLING, output_mode="complete")
    for number in (1, 2):
        events.db.execute("INSERT INTO clicks VALUES (%s, %s, 1, 1)", number, moment(number))
        result = events.tick()["whole"]
        assert result.action == "FULL"
        assert events.rows("whole") == set(events.db.execute(TUMBLING))
    assert result.reason == "output_mode is complete"


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        ({}, InvalidArgument, "window_end"),
        ({"window_end": "nothing"}, InvalidArgument, "'nothing' is not a valid window_end"),
        ({"window_end": "page"}, InvalidArgument, "'page' is not a valid window_end"),
        ({"window_end": "window_end", "watermark_gating": "none"}, InvalidArgument, "watermark_gating"),
        ({"window_end": "window_end", "refresh_mode": "FULL"}, InvalidArgument, "refresh_mode"),
        ({"window_end": "window_end", "output_mode": "update"}, InvalidArgument, "window_end"),
        ({"window_end": "window_end", "output_mode": "once"}, InvalidArgument, "output_mode"),
        ({"window_end": "window_end", "allow_circular": True}, InvalidArgument, "allow_circular"),
        ({"output_mode": "complete", "refresh_mode": "DIFFERENTIAL"}, InvalidArgument, "refresh_mode"),
    ],
)
def test_append_says_what_it_lacks(
    events: Shop, options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        events.pt.create_stream_table(
            "refused", TUMBLING, **{"output_mode": "append", "watermark_gating": "gate", **options}
        )
    assert events.pt.stream_tables() == ()


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT page, max(at) AS window_end FROM clicks GROUP BY page", "must be known of a group"),
        ("SELECT at AS window_end FROM clicks ORDER BY at LIMIT 3", "LIMIT"),
        ("SELECT at AS window_end, jsonb_object_agg(page, id) AS pages FROM clicks GROUP BY at", "needs a delta rule"),
    ],
)
def test_a_query_whose_rows_cannot_be_final_is_refused(events: Shop, query: str, sentence: str) -> None:
    with pytest.raises(NotDifferentiable, match=sentence):
        create(events, "gate", refused=query)
    assert events.pt.stream_tables() == ()
