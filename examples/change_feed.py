"""A table, a stream table of sums over it, a feed of what changes in the sums, and Spark that appends it to Parquet.

    python examples/change_feed.py "postgresql://user@localhost/shop" /tmp/sales_changes

Each round loads sales and advances their watermark, refreshes the sums, and has a streaming query append what is
complete by then. The query goes on from its checkpoint in the same directory; the feed keeps the changes until they are
written. At the end the files are added up: they are the stream table. Everything is made in a schema named change_feed,
which is replaced if it is there, so give a new directory each time.
"""

import sys
from pathlib import Path

import psycopg
from pyspark.sql import SparkSession

import pytrickle

SETUP = """
DROP SCHEMA IF EXISTS change_feed CASCADE;
CREATE SCHEMA change_feed;
CREATE TABLE change_feed.sales (id bigint PRIMARY KEY, region text NOT NULL, amount int NOT NULL);
"""
TOTALS = "SELECT region, sum(amount) AS amount FROM change_feed.sales GROUP BY region"
ROUNDS = (
    ("12:00", "INSERT INTO change_feed.sales VALUES (1, 'north', 10), (2, 'south', 20)"),
    ("12:30", "INSERT INTO change_feed.sales VALUES (3, 'north', 5), (4, 'west', 7)"),
    ("13:00", "UPDATE change_feed.sales SET amount = 25 WHERE id = 2; DELETE FROM change_feed.sales WHERE id = 4"),
)
# A change adds a row or takes one away.
SIGNED = "CASE _change_type WHEN 'insert' THEN 1 ELSE -1 END"


def set_up(connection: psycopg.Connection, client: pytrickle.Client) -> None:
    """Make the tables, held back to what is complete, and the feed."""
    if "totals" in {feed.feed for feed in client.feeds()}:
        client.drop_feed("totals")
    if "change_feed.totals" in {table.stream_table for table in client.stream_tables()}:
        client.drop_stream_table("change_feed.totals")
    if "change_feed" in {group.group_name for group in client.watermark_groups()}:
        client.drop_watermark_group("change_feed")
    connection.execute(SETUP)
    client.create_watermark_group("change_feed", ["change_feed.sales"])
    client.create_stream_table("change_feed.totals", TOTALS, watermark_gating="hold_back", initialize=True)
    client.create_feed("totals", "change_feed.totals")
    # Whoever reads has what there is already, which is nothing: the changes begin after that.
    (feed,) = (feed for feed in client.feeds() if feed.feed == "totals")
    client.advance_feed("totals", feed.newest_version)


def load(connection: psycopg.Connection, clock: str, statements: str) -> None:
    """Load, and say that the sales are complete through this time, in one transaction."""
    with connection.transaction():
        connection.execute(statements)
        connection.execute("SELECT pgtrickle.advance_watermark('change_feed.sales', %s)", (f"2026-03-02 {clock}Z",))


def append(spark: SparkSession, dsn: str, place: Path) -> None:
    """Append to Parquet what changed in the sums since the last time, as far as they are complete."""
    changes = spark.readStream.format("pytrickle").options(
        dsn=dsn, table="change_feed.totals", feed="totals", readChangeFeed="true"
    )
    query = changes.load().writeStream.format("parquet").option("path", str(place / "changes"))
    query = query.option("checkpointLocation", str(place / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def show(spark: SparkSession, place: Path) -> None:
    """Print what the files come to."""
    changes = spark.read.parquet(str(place / "changes"))
    print(f"{changes.count()} changes come to:")
    sums = changes.selectExpr("region", "amount", f"{SIGNED} AS copies").groupBy("region", "amount").sum("copies")
    for region, amount, _ in sums.where("`sum(copies)` > 0").orderBy("region").collect():
        print(f"  {region} {amount}")


def main(dsn: str, directory: str) -> None:
    """Play three rounds of sales."""
    pytrickle.install(dsn)
    builder = SparkSession.builder.master("local[2]")
    spark = pytrickle.configure_spark_with_pytrickle(builder).getOrCreate()
    place = Path(directory)
    with (
        psycopg.connect(dsn, autocommit=True) as connection,
        pytrickle.connect(dsn, spark=spark) as client,
    ):
        set_up(connection, client)
        for clock, statements in ROUNDS:
            load(connection, clock, statements)
            client.tick()
            append(spark, dsn, place)
            show(spark, place)


if __name__ == "__main__":
    main(*sys.argv[1:])
