"""A wrong watermark is taken back: nobody claims more than is known, and nothing that it selected is shown instead."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from pytrickle.errors import NotRetained, WaitTimeout
from tests.acceptance.conftest import JOIN, Shop
from tests.acceptance.events import TUMBLING, advance, create, moment

FAR = datetime(2062, 1, 1, tzinfo=UTC)
TOTALS = "SELECT customer, count(*) AS orders FROM orders GROUP BY customer"


def noon(minute: int) -> datetime:
    return datetime(2026, 1, 1, 12, tzinfo=UTC) + timedelta(minutes=minute)


@pytest.fixture
def typo(local_shop: Shop) -> Shop:
    """Orders that are complete through 2062 by mistake, and stream tables that believe it."""
    shop = local_shop
    shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"], "1 hour")
    shop.pt.create_stream_table("held", JOIN, watermark_gating="hold_back", watermark_retention=timedelta(days=1))
    shop.pt.create_stream_table("above", "SELECT id FROM held")
    shop.tick()
    for source in ("orders", "order_lines"):
        shop.load(source, "12:00", (1, 1, 10))
    shop.tick()
    shop.pt.create_watermark_group("alone", ["orders"])
    shop.pt.create_stream_table("gated", TOTALS, watermark_gating="gate", watermark_retention=timedelta(days=1))
    shop.load("orders", "12:05", (2, 1, 20))
    shop.load("orders", "12:10", (3, 1, 30))
    shop.pt.advance_watermark("orders", FAR)
    shop.pt.advance_watermark("order_lines", FAR)
    shop.tick()
    return shop


def claims(shop: Shop) -> dict[str, datetime | None]:
    return {row.stream_table.partition(".")[2]: row.effective_watermark for row in shop.pt.stream_tables()}


def test_stream_tables_claim_what_is_left_and_go_on_from_there(typo: Shop) -> None:
    assert claims(typo) == {"held": FAR, "above": FAR, "gated": FAR}
    typo.pt.reset_watermark("orders", noon(5))
    typo.pt.reset_watermark("order_lines", noon(5))
    assert claims(typo) == {"held": noon(0), "above": noon(0), "gated": noon(5)}
    with pytest.raises(WaitTimeout):
        typo.pt.wait_for("gated", noon(6), timedelta(0))
    with typo.db.connect() as loader, pytest.raises(psycopg.errors.DataException, match="cannot move back"):
        loader.execute("SELECT pgtrickle.advance_watermark('orders', %s)", (noon(4),))
    # What it shows came by the wrong watermark; it stays until one covers it.
    shown = typo.rows("held")
    typo.tick()
    assert typo.rows("held") == shown
    typo.load("orders", "12:20", (4, 2, 40))
    typo.load("order_lines", "12:20", (4, 1, 1))
    typo.tick()
    assert claims(typo) == {"held": noon(20), "above": noon(20), "gated": noon(20)}
    typo.assert_verified()
    assert typo.rows("held") == shown | {(4, 1, 1)}
    states = {group.group_name: group.aligned for group in typo.pt.watermark_status()}
    assert states == {"pipeline": True, "alone": True}


def test_what_a_withdrawn_watermark_selected_is_an_error_and_what_others_select_stays(typo: Shop) -> None:
    at_five = typo.pt.as_of("gated", noon(5)).rows
    typo.pt.reset_watermark("orders", noon(5))
    assert typo.pt.as_of("gated", noon(5)).rows == at_five
    for withdrawn in (noon(10), FAR):
        with pytest.raises(NotRetained, match=r"of public\.orders was taken back"):
            typo.pt.as_of("gated", withdrawn)
    typo.load("orders", "12:07", (5, 2, 50))
    assert typo.pt.as_of("gated", noon(9)).watermarks == {"public.orders": noon(7)}
    with pytest.raises(NotRetained, match=r"2026-01-01 12:10:00.* was taken back"):
        typo.pt.as_of("gated", noon(12))
    # Said again, it selects what is complete now.
    typo.load("orders", "12:10", (6, 2, 60))
    assert set(typo.pt.as_of("gated", noon(10)).rows) == {(1, 3), (2, 2)}


def test_who_took_it_back_is_on_record_and_a_tick_that_was_under_way_cannot_bring_it_back(typo: Shop) -> None:
    versions = typo.db.execute("SELECT pgt_id, frontier_version FROM pgtrickle.pgt_stream_tables ORDER BY 1")
    typo.pt.reset_watermark("orders", noon(7))
    later = typo.db.execute("SELECT pgt_id, frontier_version FROM pgtrickle.pgt_stream_tables ORDER BY 1")
    assert later == [(number, version + 1) for number, version in versions]
    found = [(row.watermark, row.lowered_to, row.withdrawn_by) for row in typo.pt.withdrawn_watermarks()]
    assert found == [(FAR, noon(7), "postgres"), (noon(10), noon(7), "postgres")]
    newest = typo.pt.watermark_history("orders")[0]
    assert (newest.watermark, newest.advanced_by) == (noon(7), "postgres")
    # Through 12:07 all is known that was loaded until now.
    typo.pt.reset_watermark("order_lines", noon(7))
    typo.tick()
    assert claims(typo)["gated"] == noon(7)


def test_a_stream_table_that_was_never_filled_has_its_first_load_after_that(typo: Shop) -> None:
    typo.pt.create_stream_table("empty", TOTALS, watermark_gating="gate")
    for source in ("orders", "order_lines"):
        typo.pt.reset_watermark(source, noon(5))
    result = typo.tick()["empty"]
    assert (result.action, result.rows_inserted, result.effective_watermark) == ("FULL", 1, noon(5))
    assert typo.tick()["empty"].action == "NO_DATA"


def test_windows_that_were_closed_too_early_are_closed_again_with_what_came_meanwhile(events: Shop) -> None:
    create(events, "gate", tumbling=TUMBLING)
    events.db.execute("INSERT INTO clicks VALUES (1, %s, 1, 1), (2, %s, 1, 2)", moment(10), moment(400))
    advance(events, 300)
    events.tick()
    assert [row[3] for row in events.rows("tumbling")] == [1]
    for source in ("clicks", "views"):
        events.pt.advance_watermark(source, FAR)
    events.tick()
    assert len(events.rows("tumbling")) == 2
    for source in ("clicks", "views"):
        events.pt.reset_watermark(source, moment(300))
    assert len(events.rows("tumbling")) == 1
    events.db.execute("INSERT INTO clicks VALUES (3, %s, 1, 5)", moment(500))
    events.tick()
    assert len(events.rows("tumbling")) == 1
    advance(events, 600)
    events.tick()
    assert sorted(row[3] for row in events.rows("tumbling")) == [1, 2]
    assert events.db.execute("SELECT * FROM pgtrickle.late_changes('tumbling')") == []


def test_readers_of_changes_learn_that_their_version_is_gone(typo: Shop) -> None:
    typo.pt.create_feed("of_orders", "orders")
    typo.pt.create_feed("of_gated", "gated")
    typo.load("orders", "infinity", (7, 1, 1))
    typo.tick()
    newest = {row.feed: row.newest_version for row in typo.pt.feeds()}
    typo.pt.reset_watermark("orders", noon(10))
    changes = "SELECT * FROM pgtrickle.changes_of_versions(NULL::{}, %s, %s)"
    for feed, relation in (("of_orders", "orders"), ("of_gated", "gated")):
        version = newest[feed]
        with typo.db.connect() as reader, pytest.raises(psycopg.Error, match="was taken back") as refused:
            reader.execute(changes.format(relation).encode(), (version, version))
        assert refused.value.diag.constraint_name == "not_retained"
