"""Random rows, batches and queries through Spark itself: differential = recomputed, for every supported operator."""

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pytrickle
from tests.conftest import TEMPLATE, Database
from tests.equivalence.queries import Query, Writer
from tests.equivalence.worlds import World
from tests.servers import OLDEST, Server

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS: tuple[Callable[[Writer], Query], ...] = (
    Writer.plain, Writer.grouped, Writer.ungrouped, Writer.distinct, Writer.union, Writer.with_clause, Writer.grouped,
)  # fmt: skip


@pytest.mark.parametrize("small_delta_rows", [0, 20_000])
@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(seed=st.integers(0, 2**32))
def test_random_stream_tables_equal_their_queries_through_spark(
    servers: Callable[[int], Server], spark: "SparkSession", small_delta_rows: int, seed: int
) -> None:
    server = servers(OLDEST)
    with server.database(TEMPLATE) as dsn:
        db = Database(dsn, server.version)
        with pytrickle.connect(dsn, spark, small_delta_rows=small_delta_rows) as client:
            world = World(db, client, Random(seed))
            world.create_tables()
            world.create_stream_tables(len(KINDS), kinds=KINDS)
            world.tick(frozenset({"FULL"}))
            for _ in range(3):
                world.mutate()
                world.tick(frozenset({"DIFFERENTIAL", "NO_DATA"}))
                world.check()
            world.verify()
        db.close()
