"""One run of a seed: a random database, stream tables over it, and batches of changes, compared after every refresh."""

from dataclasses import dataclass
from random import Random

import pytest

from pytrickle.client.client import Client
from pytrickle.plan.spark import restricted
from tests.conftest import Database
from tests.equivalence.grammar import CORE, Grammar
from tests.equivalence.worlds import ANY_ACTION, World


@dataclass(frozen=True, slots=True)
class Size:
    """How much a run does."""

    queries: int = 12
    batches: int = 5


def small_delta_rows(seed: int) -> int:
    """Whether PostgreSQL computes the deltas of this seed or, with 0, the engine joins them."""
    return (0, 20_000)[seed % 2]


def ask_for_joined_rows_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every table for so large that the engine asks it only for rows that changes join."""
    monkeypatch.setattr(restricted, "WORTH_ASKING", 0)
    monkeypatch.setattr(restricted, "ROWS_PER_CHANGE", 0)


def disable_jit(db: Database) -> None:
    """Keep PostgreSQL from compiling queries over a few rows: without statistics it takes their tables for large.

    For sessions that begin later; so it comes before the client.
    """
    db.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = off', current_database()); END $$")


def play(db: Database, client: Client, seed: int, grammar: Grammar = CORE, size: Size | None = None) -> World:
    """Create stream tables, change their sources, refresh and compare, batch after batch.

    Raise AssertionError, with the script that made the database, where a stream table differs from its query.
    """
    size = size or Size()
    world = World(db, client, Random(seed), grammar)
    world.create_tables()
    world.create_stream_tables(size.queries)
    world.tick(frozenset({"FULL"}))
    world.check()
    for _ in range(size.batches):
        world.mutate()
        world.tick(ANY_ACTION - {"FULL"} if grammar is CORE else ANY_ACTION)
        world.check()
    return world
