"""How many rows Spark is expected to read, by which it plans once or again after every stage."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from pytrickle.compute.spark.run import FEW_ROWS, SparkEngine
from pytrickle.plan.spark.leaves import SparkTerm, rows_read
from tests.unit.test_plan_spark_operations import joined_with, keys_of, left_join, translated

ADAPTIVE = "spark.sql.adaptive.enabled"


def test_the_rows_below_operations_count() -> None:
    alone = rows_read(translated(left_join(), {1}))
    computed = rows_read(translated(joined_with(keys_of("b")), {2}))
    assert alone is not None and alone > 100
    assert computed is not None and computed > 100


def test_how_many_rows_postgresql_computes_nobody_knows() -> None:
    keys = keys_of("b")
    keyless = replace(keys, operation=replace(keys.operation, keys=()))
    terms = translated(joined_with(keyless), {1, 2})
    assert terms
    assert rows_read(terms) is None


@pytest.mark.parametrize(("rows", "replanned"), [(1, "false"), (FEW_ROWS, "true"), (None, "true")])
def test_spark_plans_a_join_again_only_where_it_may_be_large(rows: int | None, replanned: str) -> None:
    def with_rows(term: SparkTerm) -> SparkTerm:
        return replace(term, leaves=tuple(replace(leaf, rows=rows) for leaf in term.leaves))

    terms = tuple(map(with_rows, translated(left_join(), {1})))
    settings: dict[str, str] = {}
    session: Any = SimpleNamespace(conf=SimpleNamespace(set=settings.__setitem__))
    plan: Any = SimpleNamespace(join=terms)
    SparkEngine(session, session, owned=True)._tune(plan)
    assert settings == {ADAPTIVE: replanned, "spark.sql.codegen.wholeStage": "true"}
