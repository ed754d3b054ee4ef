"""A stream of the changes of a table, into Parquet or into a table of another database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.conftest import Database

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

SOURCE = (
    "CREATE TABLE orders (id int PRIMARY KEY, amount numeric(10,2), at timestamptz)",
    "SELECT pgtrickle.create_feed('copies', 'orders')",
)
COPY = """
CREATE TABLE copied (_change_type text, _commit_version bigint, _commit_timestamp timestamptz, id int,
    amount numeric(10,2), at timestamptz)
"""
Changes = Counter[tuple[Any, ...]]


def work(db: Database, version: int) -> None:
    """Insert, update and delete orders, and say that they are complete through another hour."""
    db.execute(f"INSERT INTO orders SELECT n, n, 'epoch' FROM generate_series({version * 10}, {version * 10 + 9}) AS n")
    db.execute("UPDATE orders SET amount = amount + 0.5 WHERE id % 3 = 0")
    db.execute(f"DELETE FROM orders WHERE id % 7 = {version % 7}")
    db.execute("SELECT pgtrickle.advance_watermark('orders', timestamptz '2026-03-02Z' + interval '1 h' * %s)", version)


def newest(db: Database) -> int:
    return int(db.value("SELECT max(version) FROM pgtrickle.versions('orders')"))


def changes(spark: SparkSession, dsn: str, form: str = "pytrickle") -> DataFrame:
    """Return the stream of all changes after the first version, one version to a batch."""
    start = {"startingVersion": 1, "startingBoundInclusive": "false", "maxVersionsPerTrigger": 1}
    reader = spark.readStream.format(form).options(dsn=dsn, table="orders", feed="copies", readChangeFeed="true")
    return reader.options(**start).load()


def write_parquet(frame: DataFrame, place: Path) -> StreamingQuery:
    """Start a query that appends to Parquet what is complete now."""
    writer = frame.writeStream.format("parquet").option("path", str(place / "rows"))
    return writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()


def write_copy(frame: DataFrame, place: Path, dsn: str, form: str = "pytrickle") -> StreamingQuery:
    """Start a query that loads what is complete now into the table of another database."""
    options = {
        "dsn": dsn,
        "table": "copied",
        "sink": "copy",
        "event_time": "_commit_timestamp",
        "watermark_lateness": "0",
    }
    writer = frame.writeStream.format(form).options(**options)
    return writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True).start()


def wanted(db: Database) -> Changes:
    """Return every change after the first version, as the database tells it."""
    query = "SELECT _change_type, _commit_version, (changed).id, (changed).amount FROM"
    return Counter(db.execute(f"{query} pgtrickle.changes_of_versions(NULL::orders, 1)"))
