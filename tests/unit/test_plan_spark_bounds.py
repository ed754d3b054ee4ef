"""How many digits numbers can have, as PostgreSQL's types and operators say."""

import pytest
from sqlglot import exp

from pytrickle.plan.spark.bounds import Bounds, bounds_of
from pytrickle.plan.sql.dialect import parse_query

TYPES = {"i": "integer", "b": "bigint", "s": "smallint", "m": "numeric(15,2)", "f": "numeric(3,6)", "n": "numeric",
         "t": "text", "w": "numeric(3,-2)"}  # fmt: skip


def bounds(text: str) -> Bounds | None:
    query = parse_query(f"SELECT {text}")
    assert isinstance(query, exp.Select)
    return bounds_of(query.selects[0], lambda column: TYPES[column.name])


@pytest.mark.parametrize(
    ("text", "digits", "scale"),
    [
        ("m", 13, 2),
        ("f", 0, 6),
        ("m * m", 26, 4),
        ("m + f", 14, 6),
        ("m - (f * 10.05)", 14, 8),
        ("CAST((1) AS DECIMAL) - m", 14, 2),
        ("(- m)", 13, 2),
        ("CAST(n AS DECIMAL(9, 3))", 6, 3),
        ("CASE WHEN t = 'a' THEN m ELSE CAST((0) AS DECIMAL) END", 13, 2),
        ("3000000000 * m", 32, 2),
        ("123456789012345678901234", 24, 0),
    ],
)
def test_a_numeric_has_at_most_so_many_digits(text: str, digits: int, scale: int) -> None:
    found = bounds(text)
    assert found
    assert (found.type_name, found.digits, found.scale) == ("numeric", digits, scale)


@pytest.mark.parametrize(
    ("text", "type_name"),
    [("i", "integer"), ("i + s", "integer"), ("s * s", "smallint"), ("i - b", "bigint"), ("i * 3000000000", "bigint")],
)
def test_a_whole_number_has_the_digits_of_its_type(text: str, type_name: str) -> None:
    assert bounds(text) == bounds(f"CAST(t AS {type_name})")


@pytest.mark.parametrize("text", ["n", "w", "t", "m + n", "m / 2", "round(m, 1)", "1e5", "m || t", "'5'", "- t"])
def test_of_all_else_nothing_is_known(text: str) -> None:
    assert bounds(text) is None


@pytest.mark.parametrize(
    ("text", "fixed", "nan"),
    [
        ("m", True, True),
        ("CAST(i AS DECIMAL)", True, False),
        ("CASE WHEN true THEN m ELSE 0.5 END", False, True),
        ("CASE WHEN true THEN 0.25 ELSE 0.50 END + CAST(i AS DECIMAL)", True, False),
    ],
)
def test_it_is_known_whether_all_digits_are_shown_and_nan_may_come(text: str, fixed: bool, nan: bool) -> None:
    found = bounds(text)
    assert found
    assert (found.fixed, found.nan) == (fixed, nan)
