"""What Spark keeps in memory: little for little tables, and no more changes than fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.functions import broadcast

from pytrickle.plan.spark.query import BROADCAST_ROWS
from tests.conftest import Database
from tests.programs import printed_by
from tests.repeats import first
from tests.spark.memory_session import ARRIVALS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

MEMORY_SESSION = Path(__file__).with_name("memory_session.py")
MEGABYTE = 2**20
JOINS = 6


def test_little_tables_that_are_broadcast_take_little_memory(spark: SparkSession) -> None:
    orders, customers = (spark.createDataFrame([(f"key {n}", n)], "k string, v int") for n in range(2))
    # Spark lets go of what it broadcast only when these are gone.
    joins = [orders.join(broadcast(customers.where(f"v < {n}")), "k", "left") for n in range(10, 10 + JOINS)]
    before = used_memory(spark)
    assert [len(joined.collect()) for joined in joins] == [1] * JOINS
    assert used_memory(spark) - before < JOINS * 16 * MEGABYTE


def used_memory(spark: SparkSession) -> int:
    """Return how many bytes the driver's Java holds that are not garbage."""
    heap: Any = spark._jvm.java.lang.management.ManagementFactory.getMemoryMXBean()  # type: ignore[union-attr]
    heap.gc()
    return int(heap.getHeapMemoryUsage().getUsed())


@pytest.mark.parametrize("arrivals", first(1, (1, 2)))
def test_spark_that_runs_out_of_memory_says_so_and_the_next_refresh_goes_another_way(
    db: Database, arrivals: int
) -> None:
    """What is too much to be kept in memory, the second arrival, does not run out of it."""
    (_, fits), (_, exceeds) = ARRIVALS
    assert fits <= BROADCAST_ROWS < exceeds
    assert printed_by(MEMORY_SESSION, db.dsn, str(arrivals)) == [
        "SparkOutOfMemory: Spark could not compute the refresh: it ran out of memory.",
        "REINITIALIZE 400 True",
        *(["DIFFERENTIAL 700 True"] if arrivals > 1 else []),
    ]


@pytest.mark.repeats
def test_a_whole_refresh_that_runs_out_of_memory_keeps_no_table_the_next_time(db: Database) -> None:
    assert printed_by(MEMORY_SESSION, db.dsn, "0") == [
        "SparkOutOfMemory: Spark could not compute the refresh: it ran out of memory.",
        "FULL 500 True",
    ]
