"""Brings a topic's orders into PostgreSQL, by `load` or by Spark's streaming; run as a program, with a Kafka client."""

from __future__ import annotations

import json
import sys
from datetime import timedelta

import psycopg
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from pytrickle.streaming import postgres_sink
from pytrickle.watermarks import Tracker, load
from tests.integrations.kafka_broker import TOPIC
from tests.integrations.kafka_topic import TopicSource, orders
from tests.unit.moments import noon

ROWS = 8
LATENESS = timedelta(seconds=5)
# Partition 1 is ten minutes behind.
BEGINS = {0: 600, 1: 0}


def produce(address: str, numbers: range) -> None:
    """Write an order a minute into each partition."""
    # Of several messages that come together this broker counts one when it is asked how far the topic goes.
    producer = Producer({"bootstrap.servers": address, "batch.num.messages": 1})
    for number in numbers:
        for partition, begin in BEGINS.items():
            order = {"id": 2 * number + partition, "placed_at": noon(begin + 60 * number).isoformat()}
            producer.produce(TOPIC, json.dumps(order), partition=partition)
    assert producer.flush(60) == 0


def load_all(dsn: str, address: str) -> None:
    """Load each partition by a transaction of its own per message, which keeps the offset too, with a new tracker."""
    for number in range(ROWS):
        produce(address, range(number, number + 1))
        for partition in BEGINS:
            with (
                psycopg.connect(dsn, autocommit=True) as connection,
                load(connection, TOPIC, event_time=2, partition=0, generator=tracker()) as loading,
            ):
                found = connection.execute("SELECT next FROM offsets WHERE partition = %s", (partition,)).fetchone()
                assert found is not None
                for _, *order in loading.rows(orders(address, partition, found[0], number + 1)):
                    connection.execute("INSERT INTO orders VALUES (%s, %s)", order)
                connection.execute("UPDATE offsets SET next = %s WHERE partition = %s", (number + 1, partition))


def tracker() -> Tracker:
    return Tracker(["0", "1"], watermark_lateness=LATENESS, max_ahead=None, idle_timeout=None)


def stream_all(dsn: str, address: str, checkpoint: str) -> None:
    """Stream the topic batch by batch, with a new query, and a new sink, for each."""
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    session.dataSource.register(TopicSource)
    for number in range(0, ROWS, ROWS // 2):
        produce(address, range(number, number + ROWS // 2))
        sink = postgres_sink(dsn, TOPIC, sink="topic", event_time="at", partition="partition", generator=tracker())
        frame = session.readStream.format("topic").option("address", address).load()
        writer = frame.writeStream.foreachBatch(sink).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()
    session.stop()


if __name__ == "__main__":
    load_all(*sys.argv[1:]) if len(sys.argv) == 3 else stream_all(*sys.argv[1:])
