"""Why a stream table is stale is answered alike wherever one asks: SQL, commands, metrics and the console."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg.rows import dict_row

from pytrickle.refresh.under_way import under_way
from tests.acceptance.conftest import JOIN, Shop
from tests.commands import commands
from tests.console.conftest import console
from tests.console.test_pages import text_of

TOTALS = "SELECT customer, count(*) AS orders FROM orders GROUP BY customer"
CULPRITS = {
    "waits": ("watermark", "public.order_lines"),
    "holds": ("watermark", "public.orders"),
    "gated": ("gate", "public.customers"),
    "daily": ("schedule", "1 d"),
    "queued": ("queue", "no refresher runs"),
    "above": ("inherited", "public.queued"),
    "paused": ("stopped", "it is paused"),
    "busy": ("refresh", "public.busy"),
}


@pytest.fixture
def shop(local_shop: Shop) -> Shop:
    """Stream tables that show everything, and of which each will lack a change for a cause of its own."""
    shop, pt = local_shop, local_shop.pt
    pt.create_watermark_group("pipeline", ["orders", "order_lines"])
    pt.create_stream_table("waits", JOIN)
    pt.create_stream_table("holds", JOIN, watermark_gating="hold_back")
    pt.create_stream_table("gated", "SELECT count(*) AS customers FROM customers")
    pt.create_stream_table("daily", TOTALS, schedule="1 day")
    for name in ("queued", "paused", "busy"):
        pt.create_stream_table(name, TOTALS)
    pt.create_stream_table("above", "SELECT count(*) AS customers FROM queued")
    shop.load("orders", "12:00", (1, 1, 10))
    shop.load("order_lines", "12:00", (1, 1, 1))
    shop.tick()
    shop.load("orders", "12:10")
    shop.tick()
    pt.gate_source("customers", "a load")
    pt.pause("paused")
    return shop


def asked(shop: Shop) -> dict[str, dict[str, object]]:
    with shop.db.connect(row_factory=dict_row) as connection:
        rows = connection.execute("SELECT * FROM pgtrickle.freshness()").fetchall()
    return {row["stream_table"].removeprefix("public."): row for row in rows}


def without_lengths(sentence: object) -> str:
    """Drop the lengths of time, which go on between two questions."""
    kept = (word for word in str(sentence).split() if not word[0].isdigit() and word not in {"ms", "s", "min", "h"})
    return " ".join(kept)


def test_each_cause_has_the_same_culprit_and_split_wherever_one_asks(shop: Shop) -> None:
    run = commands(shop.db.dsn)
    with shop.db.connect() as refreshing, console(shop.db.dsn) as site:
        pgt_id = shop.db.value("SELECT pgt_id FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'busy'")
        with under_way(refreshing, pgt_id):
            shop.db.execute("INSERT INTO orders VALUES (2, 2, 10)")
            shop.db.execute("INSERT INTO customers VALUES (7, 'Eve')")
            answers = asked(shop)
            assert {name: (answers[name]["cause"], answers[name]["culprit"]) for name in CULPRITS} == CULPRITS
            overview = text_of(site.get("/").text)
            assert " behind " in overview and " old" not in overview, "data that lacks nothing is not old"
            status, metrics = without_lengths(run("status").stdout), run("metrics").stdout
            for name, (cause, culprit) in CULPRITS.items():
                sentence = without_lengths(answers[name]["reason"])
                assert culprit in str(answers[name]["reason"]) or cause == "refresh", name
                assert sentence in without_lengths(run("explain", name).stdout), name
                assert sentence in status, name
                page = without_lengths(text_of(site.get(f"/table?name=public.{name}").text))
                assert sentence.removeprefix("behind") in page and "Nothing holds it back" not in page, name
    named = {
        tuple(sample.labels[label] for label in ("stream_table", "cause", "culprit"))
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == "pytrickle_stream_table_lag_culprit_info"
    }
    assert named == {(f"public.{name}", *who) for name, who in CULPRITS.items()}


def test_changes_that_explain_supposes_are_told_from_those_that_wait(shop: Shop) -> None:
    assert "source public.customers: 1 changed row, supposed" in str(shop.pt.explain("gated"))
    shop.db.execute("INSERT INTO customers VALUES (7, 'Eve')")
    assert "source public.customers: 1 changed row\n" in str(shop.pt.explain("gated"))


def test_a_paused_table_is_told_to_be_paused_and_not_to_have_failed(shop: Shop) -> None:
    assert shop.pt.explain("paused").data["next"] == "paused: resume it"
