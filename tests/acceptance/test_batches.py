"""Held back over batch numbers, with the rows that loaders really load, from SQL, Python and the command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from pytrickle.cli import app
from pytrickle.errors import InvalidArgument, WaitTimeout, WatermarkMovedBack
from tests.acceptance.conftest import JOIN, Shop, status
from tests.repeats import first

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def load(shop: Shop, source: str, batch: int, *rows: tuple[int, ...]) -> None:
    """Load rows as a batch, in one transaction."""
    with shop.db.connect() as loader, loader.transaction():
        for row in rows:
            loader.execute(f"INSERT INTO {source} VALUES ({', '.join(map(str, row))})".encode())
        loader.execute("SELECT pgtrickle.advance_batch(%s, %s)", (source, batch))


def cli(shop: Shop, *arguments: str) -> Any:
    result = CliRunner().invoke(app, ["--json", "--dsn", shop.db.dsn, *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("tolerance", first(1, (1, 0)))
def test_what_is_held_back_shows_the_newest_batch_that_all_have_loaded(shop: Shop, tolerance: int) -> None:
    shop.pt.create_watermark_group("loads", ["orders", "order_lines"], tolerance)
    both = "SELECT o.id, l.line FROM orders o FULL JOIN order_lines l ON l.order_id = o.id"
    shop.pt.create_stream_table("joined", JOIN, watermark_gating="hold_back", require_watermark=True)
    shop.pt.create_stream_table("outer_joined", both, watermark_gating="hold_back", require_watermark=True)
    shop.pt.create_stream_table("gated", both, watermark_gating="gate")
    load(shop, "orders", 1, (1, 1, 10))
    assert {name: result.action for name, result in shop.tick().items()} == {
        "joined": "SKIP",
        "outer_joined": "SKIP",
        "gated": "FULL",
    }
    shop.db.execute("SELECT pgtrickle.alter_stream_table('gated', require_watermark => true)")
    seen = []
    for source, batch, *rows in (
        ("order_lines", 1, (1, 1, 1)),
        ("orders", 2, (2, 1, 20)),
        ("orders", 3, (3, 1, 30)),
        ("order_lines", 3, (2, 1, 2), (3, 1, 3)),
    ):
        load(shop, source, batch, *rows)
        results = shop.tick()
        shop.assert_verified()
        orders = len({order for order, _ in shop.rows("outer_joined")})
        assert results["outer_joined"].effective_watermark is None
        seen.append((results["outer_joined"].effective_batch, orders, len(shop.rows("joined"))))
        gated = status(shop, "gated")
        assert (gated.decision == "gated") == (abs(batch - 1) > tolerance and source == "orders")
    within = (1, 2, 1) if tolerance else (1, 1, 1)
    assert seen == [(1, 1, 1), within, within, (3, 3, 3)]
    assert {row.effective_batch for row in shop.pt.stream_tables()} == {3}
    assert shop.pt.history("joined", 1)[0].effective_batch == 3
    assert [(row.watermark, row.batch) for row in shop.pt.watermarks()] == [(None, 3), (None, 3)]


def test_a_report_by_batch_and_by_time_is_complete_through_one_of_each(shop: Shop) -> None:
    shop.pt.create_watermark_group("loads", ["orders"], 0)
    shop.pt.create_watermark_group("times", ["order_lines"])
    shop.pt.create_stream_table("report", JOIN, watermark_gating="hold_back", require_watermark=True)
    shop.pt.advance_watermark("orders", 1)
    assert shop.tick()["report"].action == "SKIP"
    shop.pt.advance_watermark("order_lines", NOON)
    assert shop.tick()["report"].action == "FULL"
    shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    shop.db.execute("INSERT INTO order_lines VALUES (1, 1, 1)")
    shop.pt.advance_watermark("order_lines", NOON + timedelta(minutes=1))
    result = shop.tick()["report"]
    assert (result.effective_watermark, result.effective_batch) == (NOON + timedelta(minutes=1), 1)
    assert shop.rows("report") == set(), "the order is beyond batch 1"
    assert shop.pt.wait_for("report", 1) == 1
    assert shop.pt.wait_for("report", NOON) == NOON + timedelta(minutes=1)
    shop.pt.advance_watermark("orders", 2)
    result = shop.tick()["report"]
    assert (result.effective_watermark, result.effective_batch) == (NOON + timedelta(minutes=1), 2)
    assert shop.rows("report") == {(1, 1, 1)}
    shop.assert_verified()
    explained = shop.pt.explain("report")
    assert (explained.data["effective_batch"], explained.data["effective_watermark"][:10]) == (2, "2026-01-01")
    with pytest.raises(WaitTimeout, match="not complete through batch 3"):
        shop.pt.wait_for("report", 3, timeout=timedelta(0))
    graph = {row.relation: row for row in shop.pt.dag().relations}
    assert (graph["public.report"].batch, graph["public.orders"].batch, graph["public.order_lines"].batch) == (
        2,
        2,
        None,
    )


def test_waiting_for_a_kind_that_no_group_has_is_refused(shop: Shop) -> None:
    shop.pt.create_watermark_group("loads", ["orders"], 0)
    shop.pt.create_stream_table("report", JOIN, watermark_gating="gate")
    with pytest.raises(InvalidArgument, match="heeds no watermark group that goes by event time"):
        shop.pt.wait_for("report", NOON)
    with pytest.raises(WaitTimeout):
        shop.pt.wait_for("report", 1, timeout=timedelta(0))


def test_batches_on_the_command_line(shop: Shop) -> None:
    group = cli(shop, "group", "create", "loads", "orders", "order_lines", "--batch-tolerance", "2")
    assert group == {"group_name": "loads", "sources": ["orders", "order_lines"], "batch_tolerance": 2}
    cli(shop, "create", "report", JOIN, "--watermark-gating", "hold_back", "--batch-tolerance", "1")
    assert cli(shop, "watermark", "advance", "orders", "9") == {"source": "orders", "watermark": 9}
    cli(shop, "watermark", "advance", "order_lines", "8")
    assert shop.tick()["report"].effective_batch == 8
    assert cli(shop, "wait", "report", "8") == {"stream_table": "report", "effective_batch": 8}
    (shown,) = cli(shop, "status")["groups"]
    assert (shown["batch_lag"], shown["batch_tolerance"], shown["effective_batch"]) == (1, 2, 8)
    assert [row["batch"] for row in cli(shop, "watermark", "history", "orders")] == [9]
    cli(shop, "group", "alter", "loads", "--batch-tolerance", "0")
    plain = CliRunner().invoke(app, ["--dsn", shop.db.dsn, "status"]).stdout
    for words in ("public.order_lines is 1 batch behind public.orders", "batch 9", "0 batches", "batch 8"):
        assert words in " ".join(plain.split()), plain
    with pytest.raises(WatermarkMovedBack, match="from batch 9 to batch 8"):
        shop.pt.advance_watermark("orders", 8)
    with pytest.raises(InvalidArgument, match="goes by batch numbers"):
        shop.pt.advance_watermark("orders", NOON)
    shop.pt.drop_watermark_group("loads")
    assert cli(shop, "watermark", "reset", "orders") == {"source": "orders"}
    shop.pt.advance_watermark("orders", NOON)
    assert [row.batch for row in shop.pt.watermarks() if row.source == "public.orders"] == [None]
