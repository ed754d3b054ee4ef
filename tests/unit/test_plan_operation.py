"""Operations as SQL: every construct is written around its rows, and says of which columns its result consists."""

import re

import pytest

from pytrickle.plan.algebra import construct as constructs
from pytrickle.plan.algebra.construct import (
    Construct,
    Distinct,
    DistinctOn,
    Domain,
    Exists,
    FirstRows,
    Folded,
    Group,
    SetOperation,
    Single,
    Window,
)
from pytrickle.plan.algebra.relation import Join, Operation, Project, Scan
from pytrickle.plan.postgres.operation import result

INPUT = Project(Join((Scan("t1", 1, ("a",)),)), ())
LEFT, RIGHT = "count(*) FILTER (WHERE d.side = 0)", "count(*) FILTER (WHERE d.side = 1)"


def written(construct: Construct, arguments: str, keys: str) -> str:
    """Apply a construct to the rows `r`, on one line."""
    operation = Operation(construct, INPUT, tuple(arguments.split()), tuple(keys.split()))
    return re.sub(r"\s+", " ", result(operation, "r"))


@pytest.mark.parametrize(
    ("construct", "arguments", "keys", "text"),
    [
        (Distinct(), "k0 k1", "k0 k1", "SELECT DISTINCT d.k0, d.k1 FROM ( r ) AS d"),
        (Domain(), "k0", "k0", "SELECT DISTINCT d.k0 FROM ( r ) AS d"),
        (Exists(), "k0", "k0", "SELECT DISTINCT d.k0 FROM ( r ) AS d"),
        (Exists(), "", "", "SELECT 1 AS one FROM ( r ) AS d LIMIT 1"),
        (Group(("sum(d.a0)",)), "k0 a0", "k0", "SELECT d.k0, sum(d.a0) AS c0 FROM ( r ) AS d GROUP BY d.k0"),
        (Group(()), "", "", "SELECT 1 AS one FROM ( r ) AS d GROUP BY ()"),
        (
            Window(("rank() OVER (ORDER BY d.a0)",), ("d.a0",)),
            "k0 a0",
            "k0",
            "SELECT d.a0, rank() OVER (ORDER BY d.a0) AS w0 FROM ( SELECT * FROM ( r ) AS d "
            "ORDER BY k0, d.a0, CAST(ROW(k0, a0) AS text) ) AS d",
        ),
        (SetOperation("union", True), "k0 side", "k0", "SELECT d.k0 FROM ( r ) AS d GROUP BY d.k0"),
        (
            SetOperation("except", True),
            "k0 side",
            "k0",
            f"SELECT d.k0 FROM ( r ) AS d GROUP BY d.k0 HAVING {LEFT} > 0 AND {RIGHT} = 0",
        ),
        (
            SetOperation("intersect", False),
            "k0 side",
            "k0",
            f"SELECT g.k0 FROM (SELECT d.k0, least({LEFT}, {RIGHT}) AS n FROM ( r ) AS d GROUP BY d.k0) AS g, "
            "generate_series(1, g.n) AS e (pgt_n)",
        ),
        (
            DistinctOn(("a0",), ("d.o0 DESC",), ()),
            "k0 o0 a0",
            "k0",
            "SELECT DISTINCT ON (d.k0) d.a0 FROM ( r ) AS d ORDER BY d.k0, d.o0 DESC, CAST(ROW(k0, o0, a0) AS text)",
        ),
        (
            FirstRows(("a0",), ("d.o0",), 3, 1, True),
            "k0 o0 a0",
            "k0",
            "SELECT e.k0, e.a0 FROM (SELECT d.*, rank() OVER (PARTITION BY d.k0 ORDER BY d.o0) AS pgt_place "
            "FROM ( r ) AS d) AS e WHERE e.pgt_place > 1 AND e.pgt_place <= 4",
        ),
        (
            Single(),
            "k0 v",
            "k0",
            "SELECT DISTINCT ON (d.k0) d.k0, d.v, count(*) OVER (PARTITION BY d.k0) AS n FROM ( r ) AS d "
            "ORDER BY d.k0, CAST(ROW(k0, v) AS text)",
        ),
    ],
)
def test_a_construct_is_written_around_its_rows(construct: Construct, arguments: str, keys: str, text: str) -> None:
    assert written(construct, arguments, keys) == text


def test_rows_are_sorted_where_equal_arguments_may_look_different() -> None:
    operation = Operation(Distinct(), INPUT, ("k0",), ("k0",), exact=False)
    assert "ORDER BY k0, CAST(ROW(k0) AS text)" in result(operation, "r")
    assert "ORDER BY" not in result(Operation(Exists(), INPUT, ("k0",), ("k0",), exact=False), "r")


def test_a_sum_of_rows_has_no_text_of_its_own() -> None:
    with pytest.raises(TypeError):
        written(Folded(), "a0", "")


def test_every_construct_but_a_sum_is_keyed() -> None:
    found = [each for each in vars(constructs).values() if isinstance(each, type) and issubclass(each, Construct)]
    assert [each.__name__ for each in found if each.linear is not Construct.linear] == ["Folded"]
