"""The examples run as they are, and show what they promise."""

import runpy
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyspark
import pytest

import pytrickle
from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).parents[2] / "examples"
TICK = r"\! pytrickle tick"


def test_the_python_example_holds_the_report_back(
    db: Database, spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "order_pipeline.py"))["main"](db.dsn)
    first, second, third = (
        part.splitlines() for part in capsys.readouterr().out.split("report, complete through ")[1:]
    )
    assert first == ["11:55:", "  order 1 of Ada: 2 lines, 9.60", "  order 2 of Boole: 1 lines, 4"]
    assert second == first
    assert third == ["12:05:", *first[1:], "  order 3 of Codd: 2 lines, 180"]


def test_the_python_example_can_be_run_again(db: Database, spark: "SparkSession") -> None:
    example = runpy.run_path(str(EXAMPLES / "order_pipeline.py"))
    for _ in range(2):
        example["main"](db.dsn)


@pytest.mark.repeats
def test_the_streaming_example_holds_the_report_back(
    db: Database, spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "order_streams.py"))["main"](db.dsn)
    first, second, third = (
        part.splitlines() for part in capsys.readouterr().out.split("report, complete through ")[1:]
    )
    assert first == second == ["11:58:", "  order 1 of Ada: 2 lines"]
    assert third == ["12:08:", "  order 1 of Ada: 2 lines", "  order 2 of Boole: 1 lines", "  order 3 of Codd: 1 lines"]


@pytest.mark.repeats
def test_the_feed_example_appends_to_parquet_what_leads_to_each_version(
    db: Database, spark: "SparkSession", tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runpy.run_path(str(EXAMPLES / "change_feed.py"))["main"](db.dsn, str(tmp_path))
    assert capsys.readouterr().out.splitlines() == [
        *("2 changes come to:", "  north 10", "  south 20"),
        *("5 changes come to:", "  north 15", "  south 20", "  west 7"),
        *("8 changes come to:", "  north 15", "  south 25"),
    ]
    assert db.execute("SELECT * FROM change_feed.totals ORDER BY 1") == [("north", 15), ("south", 25)]
    assert db.value("SELECT versions_behind FROM pgtrickle.feeds()") <= 1


def test_the_streaming_example_says_when_there_is_nothing_to_show(
    db: Database, spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    example = runpy.run_path(str(EXAMPLES / "order_streams.py"))
    with db.connect() as connection, pytrickle.connect(db.dsn, spark=spark) as client:
        example["set_up"](connection, client)
        example["show"](connection, client)
    assert capsys.readouterr().out == "report: nothing yet\n"


def test_the_streaming_example_brings_the_connector_that_its_broker_needs() -> None:
    connectors = runpy.run_path(str(EXAMPLES / "order_streams.py"))["connectors"]
    assert connectors(None) == []
    assert connectors("broker:9092") == [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"]


def test_the_sql_example_gates_the_report_through_its_intermediate_tables(db: Database, spark: "SparkSession") -> None:
    parts = (EXAMPLES / "order_pipeline.sql").read_text().split(TICK)
    shown = []
    with db.connect() as connection, pytrickle.connect(db.dsn, spark=spark) as client:
        run(connection, parts[0])
        for part in parts[1:]:
            client.tick()
            shown.append(run(connection, part))
    early = [("Ada", 1, 2, Decimal("9.60")), ("Boole", 1, 1, Decimal(4))]
    assert [report for report, *_ in shown] == [early, early, [("Ada", 2, 4, Decimal("189.60")), early[1]]]
    _, groups, tables = shown[1][:3]
    assert [(name, aligned) for name, _, aligned, _ in groups] == [("shop_pipeline", False)]
    assert {name: decision for name, decision, _ in tables} == {
        "shop.line_summary": "run",
        "shop.order_report": "gated",
        "shop.order_summary": "run",
    }


def run(connection: psycopg.Connection[Any], statements: str) -> list[list[tuple[Any, ...]]]:
    """Run a part of a script and return the rows of every statement in it that returns rows."""
    cursor = connection.execute(statements.encode())
    results = []
    while True:
        if cursor.description:
            results.append(cursor.fetchall())
        if not cursor.nextset():
            return results
