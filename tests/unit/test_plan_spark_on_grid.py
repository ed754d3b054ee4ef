"""A numeric on a grid of digits is known to what computes it by its structure, not by its text."""

from typing import Any

import pytest

from pytrickle.plan.algebra.relation import Derived, Expr
from pytrickle.plan.spark.on_grid import OntoGrid, PutOntoGrid
from pytrickle.plan.spark.reads import Reads
from tests.unit.chain import definition, ranges
from tests.unit.test_plan_spark_operations import keys_of

NUMBER = Expr('"keys"."k0" * 2', frozenset({"keys"}))


class Asked(Exception):
    """What an operation was asked for."""


class Noting:
    """Stands for the operations; notes what columns of which grids it is asked for."""

    def compute(self, derived: Derived, asked: Any, where: str, grids: Any) -> None:
        raise Asked(dict(asked), dict(grids))


@pytest.mark.parametrize("structured", [True, False])
def test_an_operation_is_told_which_of_its_columns_are_on_a_grid(structured: bool) -> None:
    put = PutOntoGrid.of(NUMBER, "ceil", 4, 2)
    assert put.grid == OntoGrid(NUMBER.sql, "ceil", 4, 2)
    leaf = keys_of("b")
    reads = Reads(definition(), ranges(2), Noting())  # type: ignore[arg-type]
    name = reads.column(leaf.alias, "", put if structured else Expr(put.sql, put.tables))
    with pytest.raises(Asked) as found:
        reads.leaf(leaf, "")
    assert found.value.args == ({put.sql: name}, {name: put.grid} if structured else {})
