"""Operations as SQL: what is written around their rows, and when the rows are sorted first."""

import re
from importlib import import_module
from pkgutil import iter_modules

import pytest

from pytrickle.plan.algebra import constructs
from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.folded import Folded
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.constructs.set_operation import SetOperation
from pytrickle.plan.algebra.constructs.window import Window
from pytrickle.plan.algebra.relation import Join, Operation, Project, Scan
from pytrickle.plan.sql.copies import copies

INPUT = Project(Join((Scan("t1", 1, ("a",)),)), ())
LEFT, RIGHT = "count(*) FILTER (WHERE d.side = 0)", "count(*) FILTER (WHERE d.side = 1)"


def written(construct: Construct, arguments: str, keys: str, exact: bool = True) -> str:
    """Apply a construct to the rows `r`, on one line."""
    operation = Operation(construct, INPUT, tuple(arguments.split()), tuple(keys.split()), exact)
    return re.sub(r"\s+", " ", operation.result("r"))


@pytest.mark.parametrize(
    ("construct", "arguments", "keys", "text"),
    [
        (Group(()), "", "", "SELECT 1 AS one FROM ( r ) AS d GROUP BY ()"),
        (
            Window(("rank() OVER (ORDER BY d.a0)",), ("d.a0",)),
            "k0 a0",
            "k0",
            "SELECT d.a0, rank() OVER (ORDER BY d.a0) AS w0 FROM ( SELECT * FROM ( r ) AS d "
            'ORDER BY k0, d.a0, CAST(ROW(k0, a0) AS text) COLLATE "C" ) AS d',
        ),
        (SetOperation("union", True), "k0 side", "k0", "SELECT d.k0 FROM ( r ) AS d GROUP BY d.k0"),
        (
            SetOperation("intersect", False),
            "k0 side",
            "k0",
            f"SELECT g.k0 FROM (SELECT d.k0, least({LEFT}, {RIGHT}) AS n FROM ( r ) AS d GROUP BY d.k0) AS g, "
            + copies("g.n"),
        ),
    ],
)
def test_a_construct_is_written_around_its_rows(construct: Construct, arguments: str, keys: str, text: str) -> None:
    assert written(construct, arguments, keys) == text


def test_rows_are_sorted_where_equal_arguments_may_look_different() -> None:
    assert 'ORDER BY k0, CAST(ROW(k0) AS text) COLLATE "C"' in written(Distinct(), "k0", "k0", exact=False)
    assert "ORDER BY" not in written(Exists(), "k0", "k0", exact=False)


def test_a_sum_of_rows_has_no_text_of_its_own() -> None:
    with pytest.raises(TypeError):
        written(Folded(), "a0", "")


def test_every_construct_but_a_sum_is_keyed() -> None:
    modules = [import_module(f"{constructs.__name__}.{each.name}") for each in iter_modules(constructs.__path__)]
    found = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    kinds = {each for each in found if issubclass(each, Construct) and each is not Construct}
    assert len(kinds) == len(modules)
    assert [each.__name__ for each in kinds if each.linear is not Construct.linear] == ["Folded"]
