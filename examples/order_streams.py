"""Two streams into two tables by Spark Structured Streaming, and a report that never shows an order without its lines.

    python examples/order_streams.py "postgresql://user@localhost/shop"
    python examples/order_streams.py "postgresql://user@localhost/shop" broker:9092

Orders come as JSON files, order lines as messages of Kafka. Without a broker the messages are replayed from files that
look as Spark's Kafka source does: key and value in bytes, and a timestamp. Everything is made in a schema named
order_streams, which is replaced if it is there. Needs NumPy: pip install 'pytrickle-postgres[arrays]'.

With a broker, Spark gets its connector for Kafka from Maven Central, and the topic order_lines must be filled before,
such as by kafka-console-producer.sh --bootstrap-server broker:9092 --topic order_lines, which takes a message per line:

    {"order_id": 1, "product": "pen", "at": "2026-03-02T11:41:00Z"}
    {"order_id": 1, "product": "ink", "at": "2026-03-02T12:00:00Z"}
    {"order_id": 2, "product": "paper", "at": "2026-03-02T12:01:00Z"}
    {"order_id": 3, "product": "chair", "at": "2026-03-02T12:10:00Z"}

As these lines are all there from the beginning, the report shows nothing before the orders are as far.
"""

import base64
import json
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

import psycopg
import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

import pytrickle
from pytrickle.streaming import PostgresSinkSource, postgres_sink
from pytrickle.watermarks import event_time

SETUP = """
DROP SCHEMA IF EXISTS order_streams CASCADE;
CREATE SCHEMA order_streams;
CREATE TABLE order_streams.orders (id bigint PRIMARY KEY, customer text NOT NULL, placed_at timestamptz NOT NULL);
CREATE TABLE order_streams.order_lines (order_id bigint NOT NULL, product text NOT NULL, at timestamptz NOT NULL);
"""
REPORT = """
SELECT o.id, o.customer, count(*) AS lines
FROM order_streams.orders o JOIN order_streams.order_lines l ON l.order_id = o.id GROUP BY o.id, o.customer
"""
MESSAGE = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"


def orders(spark: SparkSession, directory: Path) -> DataFrame:
    """Return the stream of order files, one file to a batch."""
    reader = spark.readStream.schema("id bigint, customer string, placed_at timestamp")
    return reader.option("maxFilesPerTrigger", 1).json(str(directory / "orders"))


def messages(spark: SparkSession, directory: Path, broker: str | None) -> DataFrame:
    """Return the stream of Kafka's messages about order lines, or one that looks like it."""
    if broker is None:
        return spark.readStream.schema(MESSAGE).json(str(directory / "messages"))
    options = {"kafka.bootstrap.servers": broker, "subscribe": "order_lines", "startingOffsets": "earliest"}
    return spark.readStream.format("kafka").options(**options).load()


def order_lines(received: DataFrame) -> DataFrame:
    """Return the rows for the table, which are in the values; Kafka's own timestamp is when a message was sent."""
    value = from_json(col("value").cast("string"), "order_id bigint, product string, at timestamp")
    return received.select(value.alias("line")).select("line.*")


def load_orders(spark: SparkSession, dsn: str, directory: Path) -> None:
    """Load what has arrived, by foreachBatch and a generator."""
    sink = postgres_sink(
        dsn,
        "order_streams.orders",
        sink="order_files",
        event_time="placed_at",
        generator=event_time(timedelta(minutes=2)),
    )
    query = orders(spark, directory).writeStream.foreachBatch(sink)
    query = query.option("checkpointLocation", str(directory / "orders_checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def load_order_lines(spark: SparkSession, dsn: str, directory: Path, broker: str | None) -> None:
    """Load what has arrived, by the data source and the query's own watermark."""
    spark.dataSource.register(PostgresSinkSource)
    lines = order_lines(messages(spark, directory, broker)).withWatermark("at", "2 minutes")
    query = lines.writeStream.format("pytrickle").options(
        dsn=dsn, table="order_streams.order_lines", sink="order_lines_topic", event_time="at"
    )
    query = query.option("checkpointLocation", str(directory / "order_lines_checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()


def arrive(directory: Path, name: str, rows: list[dict[str, object]]) -> None:
    """Let a file of JSON lines arrive as a whole."""
    target = directory / name
    target.parent.mkdir(exist_ok=True)
    written = directory / "arriving"
    written.write_text("\n".join(json.dumps(row) for row in rows))
    written.rename(target)


def order(number: int, customer: str, clock: str) -> dict[str, object]:
    """Return an order as the files have it."""
    return {"id": number, "customer": customer, "placed_at": f"2026-03-02T{clock}:00Z"}


def message(number: int, product: str, clock: str) -> dict[str, object]:
    """Return a message as Kafka has it; bytes in JSON are in base 64."""
    at = f"2026-03-02T{clock}:00Z"
    value = json.dumps({"order_id": number, "product": product, "at": at}).encode()
    return {"value": base64.b64encode(value).decode(), "topic": "order_lines", "timestamp": at}


def show(connection: psycopg.Connection, client: pytrickle.Client) -> None:
    """Refresh what is due and print the report."""
    client.tick()
    (report,) = (table for table in client.stream_tables() if table.stream_table == "order_streams.report")
    if report.effective_watermark is None:
        print("report: nothing yet")
        return
    print(f"report, complete through {report.effective_watermark:%H:%M}:")
    for row in connection.execute("SELECT id, customer, lines FROM order_streams.report ORDER BY id"):
        print("  order {} of {}: {} lines".format(*row))


def set_up(connection: psycopg.Connection, client: pytrickle.Client) -> None:
    """Make the tables, their watermark group, and the report held back to where they agree."""
    if "order_streams.report" in {table.stream_table for table in client.stream_tables()}:
        client.drop_stream_table("order_streams.report")
    if "order_streams" in {group.group_name for group in client.watermark_groups()}:
        client.drop_watermark_group("order_streams")
    connection.execute(SETUP)
    client.create_watermark_group("order_streams", ["order_streams.orders", "order_streams.order_lines"])
    client.create_stream_table("order_streams.report", REPORT, watermark_gating="hold_back", require_watermark=True)


def connectors(broker: str | None) -> list[str]:
    """Return what Spark needs to read from Kafka, by its coordinates in Maven."""
    return [] if broker is None else [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"]


def main(dsn: str, broker: str | None = None) -> None:
    """Play a morning on which the lines of the last order are late."""
    pytrickle.install(dsn)
    builder = SparkSession.builder.master("local[2]")
    spark = pytrickle.configure_spark_with_pytrickle(builder, extra_packages=connectors(broker)).getOrCreate()
    with (
        tempfile.TemporaryDirectory() as directory,
        psycopg.connect(dsn, autocommit=True) as connection,
        pytrickle.connect(dsn, spark=spark) as client,
    ):
        place = Path(directory)
        set_up(connection, client)
        arrive(place, "orders/1.json", [order(1, "Ada", "11:40"), order(2, "Boole", "12:00")])
        arrive(place, "messages/1.json", [message(1, "pen", "11:41"), message(1, "ink", "12:00")])
        load_orders(spark, dsn, place)
        load_order_lines(spark, dsn, place, broker)
        show(connection, client)

        arrive(place, "orders/2.json", [order(3, "Codd", "12:10")])
        load_orders(spark, dsn, place)
        show(connection, client)

        arrive(place, "messages/2.json", [message(2, "paper", "12:01"), message(3, "chair", "12:10")])
        load_order_lines(spark, dsn, place, broker)
        show(connection, client)


if __name__ == "__main__":
    main(*sys.argv[1:] or [""])
