"""Many changes are read where they are joined, and in parallel; never where a condition could fail for others."""

from dataclasses import replace

import pytest

from pytrickle.catalog.definition import ChangeRange
from pytrickle.cut import Cut
from pytrickle.plan.algebra.relation import Equality, Expr, Join, Predicate, Scan, Version
from pytrickle.plan.placement import ALONE, Place, settings_of
from pytrickle.plan.postgres.in_place import MANY, open_changes, with_list

CHANGED, TABLE = Scan("d", 1, ("k",), Version.DELTA), Scan("t", 2, ("k",), Version.CURRENT)
JOINED = Predicate(Expr("d.k = t.k", frozenset({"d", "t"})), Equality(("d", "k"), ("t", "k")))
CUT = Cut("1:1:", None, None, None)


def ranges(rows: int) -> dict[int, ChangeRange]:
    return {number: ChangeRange(number, CUT, None, delta_rows=rows) for number in (1, 2)}


@pytest.mark.parametrize(
    ("condition", "rows", "expected"),
    [
        ("t.v > 1", MANY, {"pgt_delta_1"}),
        ("t.v > 1", MANY - 1, set()),
        ("1 / d.v > 1", MANY, set()),
        ("CAST(d.v AS integer) > 1", MANY, set()),
    ],
)
def test_changes_may_be_read_in_place_where_no_condition_can_fail(
    condition: str, rows: int, expected: set[str]
) -> None:
    join = Join((CHANGED, TABLE), (JOINED, Predicate(Expr(condition, frozenset({condition.split(".")[0][-1]})))))
    assert open_changes(join, ranges(rows)) == expected


def test_changes_that_an_entry_tests_are_not_read_in_place() -> None:
    join = Join((replace(CHANGED, entry="pgt_admitted_1"), TABLE), (JOINED,))
    assert open_changes(join, ranges(MANY)) == set()


def test_what_is_read_twice_is_computed_once() -> None:
    entries = {"pgt_delta_1": "SELECT 1 AS k", "pgt_delta_12": "SELECT 2 AS k"}
    both = frozenset(entries)
    assert with_list(entries, both, "SELECT * FROM pgt_delta_1, pgt_delta_12").count(" AS NOT MATERIALIZED (") == 2
    assert "pgt_delta_1 AS MATERIALIZED (" in with_list(entries, both, "SELECT * FROM pgt_delta_1 AS a, pgt_delta_1")
    assert " AS MATERIALIZED (" in with_list(entries | {"x": "SELECT * FROM pgt_delta_1"}, both, "SELECT * FROM x")
    assert with_list({}, frozenset(), "SELECT 1") == "SELECT 1"


def test_few_changes_are_looked_up_by_one_process() -> None:
    assert ALONE in settings_of(Place.INDEX, MANY - 1)
    assert ALONE not in settings_of(Place.INDEX, MANY)
