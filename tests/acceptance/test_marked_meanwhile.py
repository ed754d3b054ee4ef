"""What is altered while a tick finds that nothing changed is not covered by the watermark that the tick stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytrickle.refresh.refresher import Refresher
from tests.acceptance.conftest import Shop, clock, status
from tests.acceptance.events import advance, create, moment

Meanwhile = Callable[[str], None]

WIDTH = "CREATE OR REPLACE FUNCTION width() RETURNS interval LANGUAGE sql IMMUTABLE AS $$SELECT interval '{}'$$"
WINDOWS = (
    "SELECT date_bin(width(), at, '2000-01-01 00:00+00') + width() AS window_end, count(*) AS clicks FROM clicks"
    " GROUP BY 1"
)
ADOPT = "SELECT pgtrickle_private.adopt_definition(pgt_id) FROM pgtrickle_private.changed_definitions() AS pgt_id"


@pytest.fixture
def before_it_is_marked(events: Shop, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Have a statement committed once, when a tick is about to store that a stream table is up to date."""
    left: list[str] = []
    mark = Refresher.mark_up_to_date

    def after_another(*arguments: Any) -> Any:
        if left:
            events.db.execute(left.pop())
        return mark(*arguments)

    monkeypatch.setattr(Refresher, "mark_up_to_date", after_another)
    return left.append


def test_no_rows_are_frozen_as_the_query_of_before_had_them(events: Shop, before_it_is_marked: Meanwhile) -> None:
    query = "SELECT id, at, page FROM clicks"
    events.pt.create_stream_table("kept", query, frozen_after="0", window_end="at", watermark_gating="gate")
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 1, 1)", moment(10), moment(310))
    advance(events, 300)
    events.tick()
    advance(events, 600)
    query = query.replace("page", "page + 10 AS page")
    before_it_is_marked(f"SELECT pgtrickle.alter_stream_table('kept', query => '{query}')")
    events.tick()
    assert clock(status(events, "kept").frozen_before) == "12:05"
    events.tick()
    assert events.rows("kept") == {(1, moment(10), 1), (2, moment(310), 11)}
    assert clock(status(events, "kept").frozen_before) == "12:10"
    events.assert_verified()


def test_no_window_is_closed_that_only_the_new_query_has(events: Shop, before_it_is_marked: Meanwhile) -> None:
    events.db.execute(WIDTH.format("5 minutes"))
    create(events, "gate", emitted=WINDOWS)
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 1, 1)", moment(10), moment(310))
    advance(events, 300)
    events.tick()
    advance(events, 400)
    before_it_is_marked(f"{WIDTH.format('1 minute')}; {ADOPT}")
    events.tick()
    events.tick()
    assert events.rows("emitted") == {(moment(300), 1), (moment(360), 1)}
