"""Random queries over random tables and random changes: differential = recomputed, after every batch."""

from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.worlds import World

QUERIES, BATCHES = 12, 5
# Seed 3 is left out: it joins thousands of rows three times over, which takes longer than all others together.
SEEDS = (0, 1, 2, 4, 5)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_stream_tables_equal_their_queries_after_every_batch(db: Database, seed: int) -> None:
    rng = Random(seed)
    with local_client(db.dsn, small_delta_rows=rng.choice((0, 20_000))) as (client, _):
        world = World(db, client, rng)
        world.create_tables()
        world.create_stream_tables(QUERIES)
        world.tick(frozenset({"FULL"}))
        world.check()
        for _ in range(BATCHES):
            world.mutate()
            world.tick(frozenset({"DIFFERENTIAL", "NO_DATA"}))
            world.check()
        world.verify()
        world.mutate()
        world.verify()
