"""Random rows, batches and queries through Spark itself: differential = recomputed, for the whole grammar."""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import pytrickle
from pytrickle.compute.spark.run import SparkEngine
from pytrickle.plan.placement import Place
from pytrickle.plan.refresh_plan import RefreshPlan
from tests.conftest import Database
from tests.equivalence import selects
from tests.equivalence.grammar import CORE, WHOLE
from tests.equivalence.runs import Size, disable_jit, play
from tests.repeats import first

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

JOINS = replace(WHOLE, kinds=((selects.plain, 3), (selects.grouped, 1)))
GRAMMARS = {"core": CORE, "joins": JOINS, "whole": WHOLE}
SMALL, LARGE = Size(queries=20, batches=3), Size(queries=50, batches=5)


@pytest.mark.parametrize(("seed", "size"), first(0, ((0, SMALL), *((seed, LARGE) for seed in range(1, 3))), then=0))
def test_random_stream_tables_equal_their_queries_through_spark(
    db: Database, spark: "SparkSession", seed: int, size: Size
) -> None:
    disable_jit(db)
    with pytrickle.connect(db.dsn, spark, direct_delta_rows=0) as client:
        world = play(db, client, 1000 + seed, WHOLE, size)
        told = f"{len(world.differential)} of {len(world.queries)} refreshed differentially; {dict(world.actions)}"
        print(f"seed {1000 + seed}: {told}")


# Worlds in which Spark has something to join, as is asserted.
JOINING = (("core", 1), ("joins", 2), ("whole", 1), ("joins", 4))


@pytest.mark.parametrize(("grammar", "seed"), first(0, JOINING, then=1))
def test_spark_joins_what_postgres_does_not(
    db: Database, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch, grammar: str, seed: int
) -> None:
    disable_jit(db)
    places = counted_places(monkeypatch)
    with pytrickle.connect(db.dsn, spark, small_delta_rows=0, direct_delta_rows=0) as client:
        play(db, client, 2000 + seed, GRAMMARS[grammar], Size(queries=16, batches=2)).verify()
    assert places[Place.SPARK]
    print(f"seed {2000 + seed}: {dict(places)}")


def counted_places(monkeypatch: pytest.MonkeyPatch) -> Counter[Place]:
    """Count from now on where differential refreshes are computed."""
    places: Counter[Place] = Counter()
    compute = SparkEngine.compute

    def counted(engine: SparkEngine, plan: RefreshPlan, *arguments: Any) -> Any:
        places.update([plan.placement.place] if plan.placement.place else [])
        return compute(engine, plan, *arguments)

    monkeypatch.setattr(SparkEngine, "compute", counted)
    return places
