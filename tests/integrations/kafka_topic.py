"""What Spark reads from a topic: in place of its own connector for Kafka, which tests cannot install."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from tests.integrations.kafka_broker import PARTITIONS, TOPIC

SCHEMA = "partition int, id int, at timestamp"


def orders(address: str, partition: int, first: int, end: int) -> Iterator[tuple[int, int, datetime]]:
    """Read the orders of a partition from one offset to another."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "tests", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, partition, first)])
    while first < end:
        message = consumer.poll(30)
        assert message is not None and message.error() is None
        order = json.loads(message.value())
        yield partition, order["id"], datetime.fromisoformat(order["placed_at"])
        first = message.offset() + 1
    consumer.close()


class TopicSource(DataSource):
    """Reads the topic as Spark's connector does: offsets by partition in the checkpoint, a task for each partition."""

    @classmethod
    def name(cls) -> str:
        return "topic"

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: Any) -> TopicReader:  # noqa: N802
        return TopicReader(self.options["address"])


class TopicReader(DataSourceStreamReader):
    def __init__(self, address: str) -> None:
        self.address = address

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {str(partition): 0 for partition in PARTITIONS}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "tests"})
        ends = {str(p): consumer.get_watermark_offsets(TopicPartition(TOPIC, p), timeout=30)[1] for p in PARTITIONS}
        consumer.close()
        return ends

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((int(name), start[name], end[name])) for name in start]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        yield from orders(self.address, *partition.value)

    def commit(self, end: dict[str, int]) -> None:
        """Keep nothing: the offsets are in the checkpoint."""
