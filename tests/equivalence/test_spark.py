"""Random rows, batches and queries through Spark itself: differential = recomputed, for the whole grammar."""

from typing import TYPE_CHECKING

import pytest

import pytrickle
from tests.conftest import Database
from tests.equivalence.grammar import CORE, WHOLE
from tests.equivalence.runs import Size, disable_jit, play

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORLDS, STREAM_TABLES, BATCHES = 6, 50, 5


@pytest.mark.parametrize("seed", range(WORLDS))
def test_random_stream_tables_equal_their_queries_through_spark(db: Database, spark: "SparkSession", seed: int) -> None:
    disable_jit(db)
    with pytrickle.connect(db.dsn, spark, direct_delta_rows=0) as client:
        world = play(db, client, 1000 + seed, WHOLE, Size(STREAM_TABLES, BATCHES))
        told = f"{world.differential()} of {len(world.queries)} stream tables are differentiable; {dict(world.actions)}"
        print(f"seed {1000 + seed}: {told}")


@pytest.mark.parametrize("small_delta_rows", [0, 20_000])
@pytest.mark.parametrize("seed", range(2))
def test_spark_joins_what_postgres_does_not(
    db: Database, spark: "SparkSession", seed: int, small_delta_rows: int
) -> None:
    disable_jit(db)
    with pytrickle.connect(db.dsn, spark, small_delta_rows=small_delta_rows, direct_delta_rows=0) as client:
        play(db, client, 2000 + seed, CORE, Size(queries=7, batches=3)).verify()
