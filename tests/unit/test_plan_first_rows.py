"""ORDER BY ... LIMIT at the top of a query: what of it can be said over the rows that are shown."""

import pytest

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.query import Top
from pytrickle.plan.query.first_rows import cut_off, shown_rows
from pytrickle.plan.sql.dialect import parse_query, render


def top_of(text: str, *columns: str) -> Top | None:
    return cut_off(parse_query(text), columns, frozenset())[1]


def test_a_query_without_a_limit_is_its_own_body() -> None:
    query = parse_query("SELECT t.a FROM t ORDER BY t.a")
    assert cut_off(query, ("a",), frozenset()) == (query, None)


def test_the_body_has_neither_order_nor_bounds() -> None:
    body, top = cut_off(
        parse_query("SELECT t.a FROM t WHERE t.b ORDER BY t.a DESC LIMIT 3 OFFSET 1"), ("a",), frozenset()
    )
    assert render(body) == 'SELECT "t"."a" FROM "t" WHERE "t"."b"'
    assert top == Top(('"a" DESC',), "LIMIT 3 OFFSET 1", False, (("a", '"a" DESC'),))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("1", '"x"'),
        ("2 DESC", '"y" DESC'),
        ("t.a", '"x"'),
        ("t.a NULLS FIRST, 2", '"x" NULLS FIRST, "y"'),
        ("(t.b + 1)", '"y"'),
        ("(t.b + 1) * t.a", '"y" * "x"'),
        ("lower(t.a)", 'lower("x")'),
    ],
)
def test_what_is_shown_can_be_ordered_by(order: str, expected: str) -> None:
    top = top_of(f"SELECT t.a AS x, t.b + 1 AS y FROM t ORDER BY {order} LIMIT 1", "x", "y")
    assert top is not None
    assert ", ".join(top.ordering) == expected


@pytest.mark.parametrize("order", ["t.c", "t.b", "t.a + t.c", "(SELECT 1)", "count(*)", "row_number() OVER ()"])
def test_what_is_not_shown_cannot_by_itself(order: str) -> None:
    with pytest.raises(NotDifferentiable, match="what the query does not show"):
        top_of(f"SELECT t.a AS x, t.b + 1 AS y FROM t ORDER BY {order} LIMIT 1", "x", "y")


def test_an_aggregate_is_ordered_by_where_it_is_shown() -> None:
    top = top_of("SELECT t.a, count(*) AS n FROM t GROUP BY t.a ORDER BY (count(*)) DESC LIMIT 1", "a", "n")
    assert top is not None
    assert top.ordering == ('"n" DESC',)


def test_the_first_columns_are_indexed_that_are_plain() -> None:
    plain = top_of("SELECT t.a, t.b FROM t ORDER BY t.a, 2 DESC LIMIT 1", "a", "b")
    other = top_of("SELECT t.a, t.b FROM t ORDER BY t.a, lower(t.b) LIMIT 1", "a", "b")
    assert plain is not None and plain.indexed == (("a", '"a"'), ("b", '"b" DESC'))
    assert other is not None and other.indexed == (("a", '"a"'),)


def test_an_output_column_may_be_named_like_another_input_column() -> None:
    top = top_of("SELECT t.a AS b, t.b AS a FROM t ORDER BY t.a LIMIT 1", "b", "a")
    assert top is not None and top.ordering == ('"b"',)


def test_set_operations_are_ordered_by_position_or_name() -> None:
    top = top_of("SELECT t.a FROM t UNION SELECT u.b FROM u ORDER BY 1 DESC OFFSET 2", "a")
    assert top == Top(('"a" DESC',), "OFFSET 2", False, (("a", '"a" DESC'),))
    assert top_of("SELECT t.a FROM t UNION SELECT u.b FROM u ORDER BY a LIMIT 1", "a") is not None


@pytest.mark.parametrize("bounds", ["LIMIT (SELECT 1)", "LIMIT t.a", "OFFSET (SELECT 1)"])
def test_bounds_that_depend_on_rows_are_refused(bounds: str) -> None:
    with pytest.raises(NotDifferentiable, match="LIMIT by an expression"):
        top_of(f"SELECT t.a FROM t {bounds}", "a")


def test_ties_that_are_kept_are_not_broken() -> None:
    with_ties = top_of("SELECT t.a FROM t ORDER BY t.a FETCH FIRST 2 ROWS WITH TIES", "a")
    without = top_of("SELECT t.a FROM t ORDER BY t.a LIMIT 2", "a")
    assert with_ties is not None and with_ties.with_ties
    assert without is not None
    assert shown_rows(with_ties, "body", ('"a"',)) == f'SELECT "a" FROM body ORDER BY "a" {with_ties.bounds}'
    settled = 'ORDER BY "a", CAST(ROW("a") AS text) COLLATE "C" LIMIT 2'
    assert shown_rows(without, "body", ('"a"',)) == f'SELECT "a" FROM body {settled}'


def test_quoted_names_stay_quoted() -> None:
    top = top_of('SELECT t."a""b" FROM t ORDER BY t."a""b" LIMIT 1', 'a"b')
    assert top is not None and top.ordering == ('"a""b"',)
