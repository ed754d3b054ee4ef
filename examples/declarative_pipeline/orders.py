"""A declarative pipeline of Spark whose sink is a table of PostgreSQL: rows and watermark in one transaction."""

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id bigint, shard string, placed_at timestamp"

dp.create_sink(
    "orders_in_postgresql",
    "pytrickle",
    {
        "dsn": os.environ["SHOP"],
        "table": "orders",
        "sink": "order_pipeline",
        "event_time": "placed_at",
        "partition": "shard",
        "watermark_lateness": "5",
    },
)


@dp.append_flow(target="orders_in_postgresql", name="orders")
def orders() -> DataFrame:
    """Read each file of orders once, in the order in which they came."""
    session = SparkSession.active()
    return session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(os.environ["ORDER_FILES"])
