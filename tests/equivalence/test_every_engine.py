"""The suites under each engine: `make test-soak PYTEST_ARGS="tests/equivalence/test_every_engine.py -k spark"`.

At every refresh it is checked who did it. That each engine computes the same is what these tests hold; that the rules
are right each suite holds by itself.
"""

from collections.abc import Iterable
from random import Random
from typing import Any

import pytest

from pytrickle.config import EngineName
from tests.conftest import Database
from tests.engines import ENGINES, client_under
from tests.equivalence.grammar import CORE, WHOLE
from tests.equivalence.runs import Size, disable_jit, play
from tests.equivalence.test_random_cuts import play_held_back
from tests.equivalence.test_scenarios import ALL, Case, play_case
from tests.nexmark.rounds import check_rounds as check_nexmark
from tests.repeats import first
from tests.tpch.rounds import check_rounds as check_tpch
from tests.tpch.test_tpch_placement import LEFT

pytestmark = pytest.mark.long

# Scenarios of values that are easily lost on the way, which are played through Spark in shorter runs too.
AWKWARD = ("S12", "H8")
GRAMMARS = {"core": CORE, "whole": WHOLE}


def soaked(values: Iterable[Any]) -> list[Any]:
    return first(0, values, then=0)


under_each = pytest.mark.parametrize("engine", soaked(ENGINES))


@pytest.mark.parametrize("name", first(0, AWKWARD, then=1))
def test_awkward_values_under_spark(db: Database, request: pytest.FixtureRequest, name: str) -> None:
    (case,) = (case for case in ALL if case.id == name)
    disable_jit(db)
    with client_under(EngineName.SPARK, db.dsn, request) as client:
        play_case(db, client, case)
        assert client.done_by["DIFFERENTIAL", "spark"]


@under_each
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.id)
def test_scenario_under(db: Database, request: pytest.FixtureRequest, case: Case, engine: EngineName) -> None:
    disable_jit(db)
    with client_under(engine, db.dsn, request) as client:
        play_case(db, client, case)


@under_each
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("grammar", GRAMMARS)
def test_random_queries_under(
    db: Database, request: pytest.FixtureRequest, grammar: str, seed: int, engine: EngineName
) -> None:
    disable_jit(db)
    with client_under(engine, db.dsn, request) as client:
        play(db, client, 3000 + seed, GRAMMARS[grammar], Size(queries=12, batches=3)).verify()


@under_each
@pytest.mark.parametrize("seed", range(3))
def test_random_cuts_under(db: Database, request: pytest.FixtureRequest, seed: int, engine: EngineName) -> None:
    with client_under(engine, db.dsn, request) as client:
        play_held_back(db, client, Random(3000 + seed))


@under_each
def test_tpch_under(db: Database, request: pytest.FixtureRequest, engine: EngineName) -> None:
    with client_under(engine, db.dsn, request) as client:
        check_tpch(db, client, 6)
        assert client.left == (LEFT if engine is EngineName.SPARK else set())
        assert client.done_by.keys() == {(action, done_by(engine)) for action in ("FULL", "DIFFERENTIAL")}


@under_each
def test_nexmark_under(db: Database, request: pytest.FixtureRequest, engine: EngineName) -> None:
    with client_under(engine, db.dsn, request) as client:
        check_nexmark(db, client, 1)
        assert client.done_by.keys() == {(action, done_by(engine)) for action in ("FULL", "DIFFERENTIAL")}


def done_by(engine: EngineName) -> str:
    return "spark" if engine is EngineName.SPARK else "postgres"
