"""GROUPING SETS, ROLLUP and CUBE against what the manual says they are short for."""

import pytest
from sqlglot import exp

from pytrickle.plan.query.grouping_sets import grouping_sets, is_simple
from pytrickle.plan.sql.dialect import parse_query


def select(clause: str) -> exp.Select:
    found = parse_query(f"SELECT 1 FROM t {clause}")
    assert isinstance(found, exp.Select)
    return found


def sets(clause: str) -> list[str]:
    return ["".join(key.sql() for key in keys) or "-" for keys in grouping_sets(select(clause))]


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("", ["-"]),
        ("GROUP BY ()", ["-"]),
        ("GROUP BY a, (b), c", ["abc"]),
        ("GROUP BY a, a", ["a"]),
        ("GROUP BY GROUPING SETS ((a, b), (a), ())", ["ab", "a", "-"]),
        ("GROUP BY GROUPING SETS (a, a, ())", ["a", "a", "-"]),
        ("GROUP BY ROLLUP (a, b, c)", ["abc", "ab", "a", "-"]),
        ("GROUP BY ROLLUP (a, (b, c), d)", ["abcd", "abc", "a", "-"]),
        ("GROUP BY CUBE (a, b)", ["ab", "a", "b", "-"]),
        ("GROUP BY CUBE ((a, b), c)", ["abc", "ab", "c", "-"]),
        ("GROUP BY a, CUBE (b, c), GROUPING SETS ((d), (e))", ["abcd", "abce", "abd", "abe", "acd", "ace", "ad", "ae"]),
        ("GROUP BY GROUPING SETS (a, ROLLUP (b, c), CUBE (d))", ["a", "bc", "b", "-", "d", "-"]),
        ("GROUP BY GROUPING SETS (a, GROUPING SETS ((b), (c)))", ["a", "b", "c"]),
        ("GROUP BY ROLLUP (a), ROLLUP (b)", ["ab", "a", "b", "-"]),
        ("GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (a, c)", ["ab", "a", "-", "abc", "ac"]),
        ("GROUP BY DISTINCT ROLLUP (a, b), ROLLUP (b, a)", ["ab", "a", "b", "-"]),
        ("GROUP BY ALL ROLLUP (a), ROLLUP (a)", ["a", "a", "a", "-"]),
    ],
)
def test_grouping_sets_are_those_of_the_manual(clause: str, expected: list[str]) -> None:
    found = sorted("".join(sorted(keys)) for keys in sets(clause))
    assert found == sorted("".join(sorted(keys)) for keys in expected)


def test_expressions_stand_for_themselves() -> None:
    assert sets("GROUP BY ROLLUP ((a + 1))") == ["a + 1", "-"]


@pytest.mark.parametrize(
    ("clause", "simple"),
    [("", True), ("GROUP BY a, (a + 1)", True), ("GROUP BY (a, b)", False), ("GROUP BY a, CUBE (b)", False)],
)
def test_a_plain_list_is_simple(clause: str, simple: bool) -> None:
    assert is_simple(select(clause)) is simple
