"""What a receiver of OpenLineage is told of refreshes, through the official client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openlineage.client import OpenLineageClient

from pytrickle.integrations.openlineage import lineage
from tests.commands import commands
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.receivers import Receiver, receiving

Event = dict[str, Any]
RANKED = """
SELECT o.id, (SELECT max(l.amount) FROM lines l WHERE l.order_id = o.id) AS most,
    rank() OVER (PARTITION BY o.region ORDER BY o.note) AS place
FROM orders o"""
SALES = """
SELECT o.region, upper(o.region) AS shouted, count(*) AS lines, sum(l.amount) AS amount
FROM orders o JOIN lines l ON l.order_id = o.id
WHERE o.note <> 'classified'
GROUP BY o.region"""


def told(receiver: Receiver) -> dict[tuple[str, str], Event]:
    """Return the events by stream table and state; there is one of each."""
    events = [json.loads(body) for body in receiver.at("/api/v1/lineage")]
    found = {(event["job"]["name"].rpartition(".")[2], event["eventType"]): event for event in events}
    assert len(found) == len(events)
    return found


def ways(fields: list[Event]) -> set[tuple[str, str]]:
    return {
        (f"{one['name'].rpartition('.')[2]}.{one['field']}", way["subtype"])
        for one in fields
        for way in one["transformations"]
    }


def test_a_refresh_is_a_run_with_versions_watermarks_and_columns(db: Database) -> None:
    db.execute("CREATE TABLE orders (id int, region text, note text)")
    db.execute("CREATE TABLE lines (order_id int, amount numeric)")
    for source in ("orders", "lines"):
        db.execute("SELECT pgtrickle.advance_watermark(%s, '2026-03-01 12:00Z')", source)
    with receiving() as receiver, local_client(db.dsn) as (client, _):
        client.create_stream_table("sales", SALES)
        client.create_stream_table("amounts", "SELECT sum(amount) AS total FROM sales")
        client.create_stream_table("numbers", "SELECT note::int AS n FROM orders")
        client.create_stream_table("ranked", RANKED)
        client.tick()
        db.execute("INSERT INTO orders VALUES (1, 'north', 'classified')")
        http = OpenLineageClient(config={"transport": {"type": "http", "url": receiver.address}})
        with lineage(client, http, namespace="shop") as tell:
            failed = next(r for r in client.tick(tell) if r.stream_table == "public.numbers")
        db.execute("UPDATE orders SET note = '1'")
        db.execute("INSERT INTO lines VALUES (1, 12.5)")
        assert "classified" in (failed.error or "")
        assert not any(b"classified" in body or b"SELECT" in body for _, body in receiver.bodies)
        first = told(receiver)
        receiver.bodies.clear()
        with lineage(client, http, namespace="shop") as tell:
            client.tick(tell)
            client.tick(tell)
    assert first["numbers", "FAIL"]["run"]["facets"]["errorMessage"]["message"] == "The refresh failed: SQLSTATE 22P02."

    events = told(receiver)
    assert_versions(db, events)
    (output,), inputs = events["sales", "COMPLETE"]["outputs"], events["sales", "COMPLETE"]["inputs"]
    shown = next(one for one in inputs if one["name"].endswith("public.orders"))["facets"]["pytrickle_watermark"]
    assert shown["watermark"].startswith("2026-03-01T12:00:00")
    assert [field["name"] for field in output["facets"]["schema"]["fields"]] == ["region", "shouted", "lines", "amount"]
    ranked = first["ranked", "COMPLETE"]["outputs"][0]["facets"]["columnLineage"]
    assert_columns(output["facets"]["columnLineage"], ranked)


def assert_versions(db: Database, events: dict[tuple[str, str], Any]) -> None:
    """The version of a table is the cut at which it was read; that of a stream table the transaction that wrote it."""
    begun, sales, amounts = events["sales", "START"], events["sales", "COMPLETE"], events["amounts", "COMPLETE"]
    assert begun["run"]["runId"] == sales["run"]["runId"] and begun["eventTime"] < sales["eventTime"]
    assert sales["job"]["namespace"] == "shop" and sales["run"]["facets"]["pytrickle_refresh"]["inserted"] == 1
    database = db.value("SELECT current_database()")
    (output,), inputs = sales["outputs"], {one["name"]: one for one in sales["inputs"]}
    assert output["name"] == f"{database}.public.sales" and output["namespace"].startswith("postgres://")
    assert inputs.keys() == {f"{database}.public.orders", f"{database}.public.lines"}

    (cut,) = db.execute(
        "SELECT (frontier).snapshot::text FROM pgtrickle.pgt_dependencies WHERE source_relid = 'lines'::regclass"
    )[0]
    assert inputs[f"{database}.public.lines"]["facets"]["version"]["datasetVersion"].partition("/")[0] == cut
    (read,) = amounts["inputs"]
    assert read["facets"]["version"]["datasetVersion"] == output["facets"]["version"]["datasetVersion"]
    xid = db.value("SELECT refresh_xid::text FROM pgtrickle.pgt_stream_tables WHERE pgt_name = 'sales'")
    assert output["facets"]["version"]["datasetVersion"] == xid


def assert_columns(sales: Any, ranked: Any) -> None:
    assert {name: ways(column["inputFields"]) for name, column in sales["fields"].items()} == {
        "region": {("orders.region", "IDENTITY")},
        "shouted": {("orders.region", "TRANSFORMATION")},
        "amount": {("lines.amount", "AGGREGATION")},
    }
    assert ways(sales["dataset"]) == {
        ("orders.id", "JOIN"),
        ("lines.order_id", "JOIN"),
        ("orders.note", "FILTER"),
        ("orders.region", "GROUP_BY"),
    }
    assert {name: ways(column["inputFields"]) for name, column in ranked["fields"].items()} == {
        "id": {("orders.id", "IDENTITY")},
        "most": {("lines.amount", "AGGREGATION")},
        "place": {("orders.region", "WINDOW"), ("orders.note", "WINDOW")},
    }


@pytest.mark.parametrize(
    ("query", "by"),
    [
        ("SELECT region FROM orders ORDER BY note, id LIMIT 3", {("orders.note", "SORT"), ("orders.id", "SORT")}),
        (
            "SELECT region FROM orders GROUP BY region ORDER BY max(note) LIMIT 3",
            {("orders.note", "SORT"), ("orders.region", "GROUP_BY")},
        ),
    ],
)
def test_what_is_sorted_by_but_not_shown_is_no_column(db: Database, query: str, by: set[tuple[str, str]]) -> None:
    db.execute("CREATE TABLE orders (id int, region text, note text)")
    with receiving() as receiver, local_client(db.dsn) as (client, _):
        client.create_stream_table("firsts", query)
        http = OpenLineageClient(config={"transport": {"type": "http", "url": receiver.address}})
        with lineage(client, http) as tell:
            client.tick(tell)
    columns = told(receiver)["firsts", "COMPLETE"]["outputs"][0]["facets"]["columnLineage"]
    assert {name: ways(column["inputFields"]) for name, column in columns["fields"].items()} == {
        "region": {("orders.region", "IDENTITY")}
    }
    assert ways(columns["dataset"]) == by


def test_a_receiver_out_of_reach_holds_up_no_refresh(db: Database, caplog: pytest.LogCaptureFixture) -> None:
    db.execute("CREATE TABLE orders (id int)")
    nowhere = {"type": "http", "url": "http://127.0.0.1:9", "retry": {"total": 0}}
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("counts", "SELECT count(*) FROM orders")
        with lineage(client, OpenLineageClient(config={"transport": nowhere})) as tell:
            assert [result.action for result in client.tick(tell)] == ["FULL"]
    assert [record.message for record in caplog.records if record.name == "pytrickle.lineage"] == [
        "An event of OpenLineage could not be sent: ConnectionError."
    ]


def test_the_command_tells_those_whom_the_environment_names(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.execute("CREATE TABLE orders (id int)")
    db.execute("SELECT pgtrickle.create_stream_table('counts', 'SELECT count(*) FROM orders')")
    with receiving() as receiver:
        monkeypatch.setenv("OPENLINEAGE_URL", receiver.address)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.address)
        run = commands(db.dsn)("run", "--once", "--engine", "postgres", "--otel", "--openlineage")
        assert run.exit_code == 0, run.output
        assert {path for path, _ in receiver.bodies} == {"/api/v1/lineage", "/v1/traces", "/v1/metrics"}
