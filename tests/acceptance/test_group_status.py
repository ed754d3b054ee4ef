"""What a watermark group reports: through when it let its stream tables, and where its sources agree."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from pytrickle.cli.remedies import on_the_command_line
from tests.acceptance.conftest import Shop, clock
from tests.commands import commands

JOINED = "SELECT o.id, l.line FROM orders o JOIN order_lines l ON l.order_id = o.id"


def create(shop: Shop, **gatings: str) -> None:
    for name, gating in gatings.items():
        shop.pt.create_stream_table(name, JOINED, watermark_gating=gating)


def load_both(shop: Shop, at: str) -> None:
    shop.load("orders", at)
    shop.load("order_lines", at)


def reached(shop: Shop, group: str = "pipeline") -> tuple[str | None, str | None]:
    """Return the effective and the agreed watermark of a group."""
    (row,) = (row for row in shop.pt.watermark_status() if row.group_name == group)
    return clock(row.effective_watermark), clock(row.agreed_watermark)


@pytest.fixture
def pair(local_shop: Shop) -> Shop:
    local_shop.pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    return local_shop


def test_it_is_the_last_watermark_at_which_a_table_was_let_through(pair: Shop) -> None:
    create(pair, report="gate")
    load_both(pair, "11:50")
    assert reached(pair) == (None, "11:50"), "nothing has been refreshed yet"
    pair.tick()
    pair.load("order_lines", "11:55")
    pair.load("orders", "12:05")
    assert pair.tick()["report"].action == "SKIP"
    (row,) = pair.pt.watermark_status()
    assert (clock(row.min_watermark), clock(row.max_watermark), str(row.lag), row.aligned) == (
        *("11:55", "12:05", "0:10:00", False),
    )
    assert reached(pair) == ("11:50", "11:50")
    pair.load("order_lines", "12:05")
    assert reached(pair) == ("11:50", "12:05")
    pair.tick()
    assert reached(pair) == ("12:05", "12:05")


def test_what_sources_agree_on_meanwhile_is_not_what_a_table_was_let_through(pair: Shop) -> None:
    create(pair, report="gate")
    load_both(pair, "11:50")
    pair.tick()
    load_both(pair, "11:55")
    pair.load("orders", "12:05")
    pair.tick()
    assert reached(pair) == ("11:50", "11:55")


def test_of_a_table_that_holds_back_it_is_where_its_cuts_agree(pair: Shop) -> None:
    create(pair, held="hold_back", gated="gate")
    load_both(pair, "11:50")
    pair.tick()
    load_both(pair, "11:55")
    pair.load("orders", "12:05")
    pair.tick()
    assert reached(pair) == ("11:55", "11:55")
    pair.pt.drop_stream_table("held")
    assert reached(pair) == ("11:50", "11:55"), "the gated one was skipped"


def test_a_group_that_lets_nothing_through_has_none(pair: Shop) -> None:
    create(pair, free="none")
    load_both(pair, "11:50")
    pair.tick()
    assert reached(pair) == (None, "11:50")
    pair.pt.create_stream_table("alone", "SELECT id FROM orders")
    pair.tick()
    assert reached(pair) == (None, "11:50"), "auto does not gate what reads one of its sources only"


def test_to_pass_a_shut_gate_is_not_to_be_let_through(pair: Shop) -> None:
    create(pair, report="gate")
    load_both(pair, "11:50")
    pair.load("orders", "12:05")
    assert pair.pt.refresh("report").action == "FULL"
    assert reached(pair) == (None, "11:50")
    pair.load("order_lines", "12:05")
    assert pair.pt.refresh("report").action == "NO_DATA"
    assert reached(pair) == ("12:05", "12:05")


def test_each_group_of_a_table_has_its_own(pair: Shop) -> None:
    pair.pt.create_watermark_group("names", ["customers"])
    pair.pt.create_stream_table("wide", f"{JOINED} JOIN customers c ON c.id = o.customer", watermark_gating="gate")
    load_both(pair, "11:50")
    pair.load("customers", "11:40")
    (result,) = pair.tick().values()
    assert (result.action, clock(result.effective_watermark)) == ("FULL", "11:40")
    assert (reached(pair), reached(pair, "names")) == (("11:50", "11:50"), ("11:40", "11:40"))
    load_both(pair, "11:55")
    (result,) = pair.tick().values()
    assert (result.action, clock(result.effective_watermark)) == ("NO_DATA", "11:40")
    assert (reached(pair), reached(pair, "names")) == (("11:55", "11:55"), ("11:40", "11:40"))
    pair.load("orders", "12:00")
    pair.load("customers", "12:00")
    assert pair.tick()["wide"].action == "SKIP"
    assert (reached(pair), reached(pair, "names")) == (("11:55", "11:55"), ("11:40", "12:00"))


def test_a_tick_with_nothing_new_writes_nothing(pair: Shop) -> None:
    create(pair, report="gate", held="hold_back")
    load_both(pair, "11:50")
    pair.tick()
    written = "SELECT array_agg(xmin::text ORDER BY pgt_id) FROM pgtrickle.pgt_stream_tables"
    before = pair.db.value(written)
    pair.tick()
    assert pair.db.value(written) == before


def test_of_a_group_by_batch_numbers_it_is_a_batch(local_shop: Shop) -> None:
    local_shop.pt.create_watermark_group("nightly", ["orders", "order_lines"], batch_tolerance=0)
    create(local_shop, report="gate")

    def advance(**numbers: int) -> tuple[Any, ...]:
        for source, number in numbers.items():
            local_shop.pt.advance_watermark(source, number)
        local_shop.tick()
        (row,) = local_shop.pt.watermark_status()
        assert (row.effective_watermark, row.agreed_watermark) == (None, None)
        return row.effective_batch, row.agreed_batch

    assert advance(orders=7, order_lines=7) == (7, 7)
    assert advance(orders=9, order_lines=8) == (7, 7)
    assert advance(order_lines=9, orders=10) == (7, 9)
    assert advance(order_lines=10) == (10, 10)


def test_an_unknown_group_is_answered_with_the_nearest_name_as_every_unknown_name_is(pair: Shop) -> None:
    run = commands(pair.db.dsn)
    assert run("group", "status", "pipeline").exit_code == 0
    asked, altered = run("group", "status", "pipelin"), run("group", "alter", "pipelin", "--tolerance", "1m")
    assert asked.exit_code == altered.exit_code == 1
    assert asked.stderr == altered.stderr
    assert "there is no watermark group 'pipelin'\nhint: Did you mean pipeline?" in asked.stderr
    assert "Did you mean" not in run("group", "status", "elsewhere").stderr


def test_a_hint_keeps_quotes_and_parentheses_of_the_names_in_it(pair: Shop) -> None:
    name = 'public."it\'s (new)"'
    hint = pair.db.value("SELECT format('SELECT pgtrickle.resume_stream_table(%%L).', %s::text)", name)
    assert shlex.split(on_the_command_line(hint).removesuffix(".")) == ["pytrickle", "resume", name]
