"""What the query of a stream table that emits closed windows must be, at creation and whenever it is altered."""

from __future__ import annotations

from typing import Any

import pytest

from pytrickle.errors import InvalidArgument, NotDifferentiable, RefreshConflict
from pytrickle.inspect import verify
from tests.acceptance.conftest import EVENTS, Meanwhile, Shop
from tests.acceptance.events import BIN, TUMBLING, advance, create, moment
from tests.equivalence.local_engine import local_client

COUNTED = f"SELECT {BIN.format('at')} + interval '5 minutes' AS window_end, page, count(*) AS clicks FROM clicks"
QUERY = f"{COUNTED} GROUP BY 1, page"
TIMED = f"{COUNTED} WHERE at < now() GROUP BY 1, page"
UNKNOWN = "SELECT max(at) AS window_end, page, count(*) AS clicks FROM clicks GROUP BY page"


@pytest.fixture
def emitted(events: Shop) -> Shop:
    """One closed window with a click, one open with another."""
    create(events, "gate", emitted=QUERY)
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 1, 1)", moment(10), moment(310))
    advance(events, 300)
    events.tick()
    return events


@pytest.mark.parametrize("query", [TIMED, UNKNOWN], ids=["now", "end unknown"])
def test_an_altered_query_is_refused_where_a_new_one_would_be(emitted: Shop, query: str) -> None:
    with pytest.raises(NotDifferentiable):
        create(emitted, "gate", other=query)
    with pytest.raises(NotDifferentiable):
        emitted.pt.alter_stream_table("emitted", query=query)
    emitted.assert_verified()
    assert emitted.tick()["emitted"].action == "NO_DATA"


def test_sql_refuses_to_alter_what_it_refuses_to_create(emitted: Shop) -> None:
    with pytest.raises(Exception, match="cannot be refreshed differentially") as raised:
        emitted.db.execute("SELECT pgtrickle.alter_stream_table('emitted', query => %s)", TIMED)
    assert getattr(raised.value, "sqlstate", None) == "0A000"


def test_a_differential_table_keeps_to_queries_with_a_delta_rule(events: Shop) -> None:
    events.pt.create_stream_table("strict", "SELECT page FROM clicks", refresh_mode="DIFFERENTIAL")
    with pytest.raises(NotDifferentiable):
        events.pt.alter_stream_table("strict", query="SELECT unnest(array_agg(page)) AS page FROM clicks")
    events.pt.alter_stream_table("strict", query="SELECT page FROM views")


def test_verify_answers_while_an_altered_query_waits_for_its_refresh(emitted: Shop) -> None:
    emitted.db.execute("SELECT pgtrickle.alter_stream_table('emitted', query => %s)", UNKNOWN)
    assert not emitted.pt.verify("emitted").matches
    assert [result.action for result in emitted.pt.tick()] == ["FAILED"]
    assert not emitted.pt.verify("emitted").matches


def test_a_failure_of_the_query_of_before_is_not_held_against_the_new_one(emitted: Shop, meanwhile: Meanwhile) -> None:
    """What had been made of the earlier query is gone when the tick, which had begun, looks for it."""
    query = QUERY.replace("count(*)", "count(*) * 2")
    meanwhile(f"SELECT pgtrickle.alter_stream_table('emitted', query => $q${query}$q$)")
    advance(emitted, 600)
    emitted.pt.tick()
    assert emitted.tick()["emitted"].action == "REINITIALIZE"
    assert emitted.rows("emitted") == {(moment(300), 1, 1), (moment(600), 1, 2)}
    assert emitted.db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status = 'FAILED'") == 0


@pytest.mark.parametrize("read", [False, True], ids=["before it looks for open windows", "before it reads them"])
def test_verify_takes_no_table_for_wrong_that_is_computed_anew_meanwhile(
    emitted: Shop, monkeypatch: pytest.MonkeyPatch, read: bool
) -> None:
    name = "_compare" if read else "_with_open"
    step = getattr(verify, name)

    def after_another(*arguments: Any) -> Any:
        emitted.db.execute("SELECT pgtrickle.reinitialize_stream_table('emitted')")
        with local_client(emitted.db.dsn) as (other, _):
            other.tick()
        return step(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(verify, name, after_another)
        with pytest.raises(RefreshConflict, match="altered or computed anew while it was compared"):
            emitted.pt.verify("emitted")
    emitted.assert_verified()


def test_emitted_windows_keep_the_answer_of_the_query_that_emitted_them(emitted: Shop) -> None:
    emitted.pt.alter_stream_table("emitted", query=QUERY.replace("count(*)", "count(*) * 2"))
    emitted.tick()
    assert emitted.rows("emitted") == {(moment(300), 1, 1)}
    assert emitted.db.execute("SELECT * FROM pgtrickle.late_changes()") == []
    emitted.assert_verified()
    advance(emitted, 600)
    emitted.tick()
    assert emitted.rows("emitted") == {(moment(300), 1, 1), (moment(600), 1, 2)}
    emitted.assert_verified()
    emitted.db.execute("UPDATE pgtrickle.pgt_stream_tables SET reinitialize_reason = 'for a test'")
    emitted.db.execute("INSERT INTO clicks VALUES (3, %s, 1, 1), (4, %s, 1, 1)", moment(20), moment(320))
    emitted.tick()
    assert emitted.db.execute("SELECT window_end FROM pgtrickle.late_changes()") == [(moment(600),)]
    emitted.assert_verified()


def test_windows_are_not_closed_by_batch_numbers(local_shop: Shop) -> None:
    with local_shop.db.connect() as connection:
        connection.execute(EVENTS)
    local_shop.pt.create_watermark_group("counted", ["clicks"], tolerance=0)
    with pytest.raises(InvalidArgument, match="'append' is not a valid output_mode") as refused:
        create(local_shop, "gate", refused=TUMBLING)
    assert "event times into a watermark group" in (refused.value.hint or "")
    local_shop.pt.advance_watermark("views", 7)
    with pytest.raises(InvalidArgument, match="output_mode"):
        create(local_shop, "gate", refused="SELECT at AS window_end, id FROM views")
    assert local_shop.pt.stream_tables() == ()


def test_windows_says_why_none_is_closed(local_shop: Shop) -> None:
    with local_shop.db.connect() as connection:
        connection.execute(EVENTS)
    create(local_shop, "gate", emitted=TUMBLING)
    waits_for = "SELECT waits_for FROM pgtrickle.windows()"
    nothing = "an event time: no watermark group that goes by one concerns it"
    assert local_shop.db.value(waits_for) == nothing
    local_shop.pt.create_watermark_group("counted", ["clicks"], tolerance=0)
    assert local_shop.db.value(waits_for) == "counted: public.clicks never advanced"
    local_shop.pt.drop_watermark_group("counted")
    local_shop.pt.create_watermark_group("site", ["clicks", "views"])
    assert local_shop.db.value(waits_for) == "site: public.clicks, public.views never advanced"
    advance(local_shop, 300)
    assert local_shop.db.value(waits_for) is None
