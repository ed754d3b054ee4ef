"""What a tick takes up and what it writes: requests, skips, and nothing where nothing is to do."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import pytrickle
from pytrickle.errors import ReadOnly
from pytrickle.schedule import tick
from tests.acceptance.conftest import JOIN, ORDERS, TABLES, Shop, misalign
from tests.equivalence.local_engine import local_client


def test_skip_is_written_to_the_history_once_per_reason(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate")

    def skips() -> list[str | None]:
        return [row.reason for row in pipeline.pt.history("report", 100) if row.action == "SKIP"]

    misalign(pipeline)
    for _ in range(4):
        assert pipeline.tick()["report"].action == "SKIP"
    assert len(skips()) == 1
    pipeline.load("orders", "12:06")
    for _ in range(3):
        pipeline.tick()
    assert len(skips()) == 2
    pipeline.load("order_lines", "12:06")
    pipeline.tick()
    pipeline.load("orders", "12:12")
    pipeline.tick()
    reason = "pipeline: public.order_lines is 6 min behind public.orders, tolerance 0 s"
    assert skips()[0] == skips()[1] == reason
    assert len(skips()) == 3


def test_a_client_whose_session_took_no_changes_ticks_once_the_server_takes_them_again(local_shop: Shop) -> None:
    name = local_shop.db.value("SELECT current_database()")
    local_shop.pt.create_stream_table("report", "SELECT id FROM orders")
    local_shop.db.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with local_client(local_shop.db.dsn) as (client, _):
        with pytest.raises(ReadOnly):
            client.tick()
        local_shop.db.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off")
        assert [result.action for result in client.tick()] == ["FULL"]


def test_skip_is_written_again_after_the_gate_was_open_though_nothing_was_to_do_meanwhile(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate")
    misalign(pipeline)
    seen = []
    for tolerance in (0, 1, 0, 1, 0):
        pipeline.pt.alter_watermark_group("pipeline", tolerance=timedelta(hours=tolerance))
        seen.append(pipeline.tick()["report"].action)
    assert seen == ["SKIP", "DIFFERENTIAL", "SKIP", "NO_DATA", "SKIP"]
    assert len([row for row in pipeline.pt.history("report", 100) if row.action == "SKIP"]) == 3


def test_request_from_sql_is_served_by_the_next_tick_though_the_table_is_not_due(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("daily", ORDERS, schedule="1 day")
    pipeline.tick()
    pipeline.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    assert "daily" not in pipeline.tick()
    pipeline.db.execute("SELECT pgtrickle.refresh_stream_table('daily')")
    assert pipeline.tick()["daily"].rows_inserted == 1
    assert pipeline.pt.history("daily")[0].initiated_by == "REQUEST"
    assert pipeline.db.execute("SELECT * FROM pgtrickle.pgt_refresh_requests") == []
    pipeline.db.execute("INSERT INTO orders VALUES (2, 1, 20)")
    assert "daily" not in pipeline.tick()


def test_request_passes_a_gate_as_a_refresh_by_hand_does(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate")
    misalign(pipeline)
    pipeline.db.execute("INSERT INTO order_lines VALUES (2, 1, 2)")
    pipeline.db.execute("SELECT pgtrickle.refresh_stream_table('report')")
    assert pipeline.tick()["report"].action == "DIFFERENTIAL"
    assert pipeline.rows("report") == {(1, 1, 1), (2, 1, 2)}
    assert pipeline.pt.history("report")[0].initiated_by == "REQUEST"


def test_tick_with_nothing_to_do_writes_nothing(pipeline: Shop) -> None:
    for mode in ("none", "gate", "hold_back"):
        pipeline.pt.create_stream_table(f"by_{mode}", JOIN, watermark_gating=mode)
        pipeline.pt.create_stream_table(f"total_by_{mode}", "SELECT count(*) FROM orders", watermark_gating=mode)
    pipeline.load("orders", "12:00", (1, 1, 10))
    pipeline.load("order_lines", "12:00", (1, 1, 1))
    pipeline.tick()
    pipeline.tick()
    before = _written(pipeline)
    assert {result.action for result in pipeline.tick().values()} == {"NO_DATA"}
    assert _written(pipeline) == before
    pipeline.db.execute("INSERT INTO customers VALUES (9, 'Zoe')")
    pipeline.tick()
    assert _written(pipeline) == before


def test_gated_tick_writes_nothing_after_the_first(pipeline: Shop) -> None:
    pipeline.pt.create_stream_table("report", JOIN, watermark_gating="gate")
    misalign(pipeline)
    pipeline.tick()
    before = _written(pipeline)
    assert {result.action for result in pipeline.tick().values()} == {"SKIP"}
    assert _written(pipeline) == before


def _written(shop: Shop) -> dict[str, Any]:
    """Return, for every table of ours and every stream table, its file and the version of each of its rows."""
    tables = shop.db.execute(
        "SELECT c.oid::regclass::text, pg_relation_filenode(c.oid) FROM pg_class AS c"
        " WHERE relkind = 'r' AND (relnamespace::regnamespace::text LIKE 'pgtrickle%%'"
        " OR oid IN (SELECT pgt_relid FROM pgtrickle.pgt_stream_tables))"
    )
    return {
        name: (node, sorted(shop.db.execute(f"SELECT ctid::text, xmin::text, xmax::text FROM {name}")))
        for name, node in tables
    }


def test_only_the_buffers_that_may_hold_something_are_cleaned(
    local_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, query in {"totals": TABLES["totals"], "large": "SELECT customer FROM totals WHERE amount > 5"}.items():
        local_shop.pt.create_stream_table(name, query)
    local_shop.pt.create_stream_table("people", "SELECT id, name FROM customers")
    local_shop.pt.create_stream_table("late", "SELECT id FROM customers", schedule="1 day")
    local_shop.tick()
    cleaned: list[list[int]] = []
    unless_locked = tick.unless_locked

    def noted(connection: Any, statement: str, given: Any = None) -> bool:
        if given and given.get("sources"):
            cleaned.append(given["sources"])
        return unless_locked(connection, statement, given)

    monkeypatch.setattr(tick, "unless_locked", noted)
    customers, orders, totals = (_relid(local_shop, name) for name in ("customers", "orders", "totals"))
    for statement, sources in (
        ("INSERT INTO orders VALUES (1, 1, 10)", {orders, totals}),
        ("INSERT INTO customers VALUES (3, 'Cyd')", {customers}),
        ("INSERT INTO orders VALUES (2, 1, 10)", {customers, orders, totals}),
        ("SELECT pgtrickle.refresh_stream_table('late', wait => false)", {customers}),
        ("SELECT", None),
    ):
        local_shop.db.execute(statement)
        cleaned.clear()
        local_shop.tick()
        assert [set(each) for each in cleaned] == ([sources] if sources else [])
    buffers = local_shop.db.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    assert [local_shop.db.value(f"SELECT count(*) FROM {buffer}") for (buffer,) in buffers] == [0] * len(buffers)


def _relid(shop: Shop, name: str) -> int:
    return int(shop.db.value("SELECT %s::regclass::oid::bigint", name))


FAILING = """
CREATE OR REPLACE FUNCTION pgtrickle.trim_history(retention interval) RETURNS bigint LANGUAGE plpgsql AS
    $$BEGIN RAISE EXCEPTION 'out of shared memory' USING ERRCODE = '53200'; END$$
"""


def test_a_tick_that_cannot_trim_the_histories_keeps_its_results(
    local_shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    local_shop.pt.create_stream_table("copied", ORDERS)
    local_shop.db.execute(FAILING)
    assert local_shop.tick()["copied"].action == "FULL"
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    assert local_shop.tick()["copied"].action == "DIFFERENTIAL"
    said = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == tick.__name__]
    told = ("ERROR", "The histories could not be trimmed: out of shared memory.")
    assert said == [told], "it is tried again an hour later only"
    monkeypatch.setattr(tick, "TRIM_EVERY", timedelta(0))
    local_shop.tick()
    assert [record.getMessage() for record in caplog.records if record.name == tick.__name__] == [told[1]] * 2


SLOW_CLEANING = """
CREATE OR REPLACE FUNCTION pgtrickle_private.holds_covered(buffer text, cuts pgtrickle.cut[]) RETURNS boolean
    LANGUAGE sql VOLATILE AS $$SELECT true FROM pg_catalog.pg_sleep(1.2)$$
"""


def test_a_buffer_is_cleaned_though_that_takes_longer_than_the_server_lets_a_statement_run(local_shop: Shop) -> None:
    local_shop.pt.create_stream_table("copied", ORDERS)
    local_shop.tick()
    local_shop.db.execute(SLOW_CLEANING)
    name = local_shop.db.value("SELECT current_database()")
    local_shop.db.execute(f"ALTER DATABASE {name} SET statement_timeout = 1000")
    local_shop.db.execute("INSERT INTO orders VALUES (1, 1, 10)")
    with pytrickle.connect(local_shop.db.dsn, engine="postgres") as pt:
        assert [result.action for result in pt.tick()] == ["DIFFERENTIAL"]
    buffers = local_shop.db.execute("SELECT buffer FROM pgtrickle.pgt_change_tracking")
    assert [local_shop.db.value(f"SELECT count(*) FROM {buffer}") for (buffer,) in buffers] == [0] * len(buffers)
