"""Names and what they stand for."""

import pytest
from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import own_column
from pytrickle.plan.query.scope import HOISTED, MERGED, SUBQUERY, first_named, renamed, resolve, tables_of
from pytrickle.plan.sql.dialect import parse_query, render


def expression(text: str) -> exp.Expr:
    found: exp.Expr = parse_query(f"SELECT {text} AS x").selects[0].unalias()
    return found


L, R = own_column("t1", "k"), own_column("t2", "k")
BOTH = expression("t1.k + t2.k")
NAMES = {"l": {"k": L, "sum": BOTH}, "r": {"k": R}}


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("l.k", '"t1"."k"'),
        ("l.k = r.k", '"t1"."k" = "t2"."k"'),
        ("l.sum * 2", '("t1"."k" + "t2"."k") * 2'),
        ("lower(l.k)", 'lower("t1"."k")'),
        ("CASE WHEN l.k > 1 THEN r.k END", 'CASE WHEN "t1"."k" > 1 THEN "t2"."k" END'),
        ("1", "1"),
    ],
)
def test_names_are_replaced_and_expressions_keep_their_parentheses(text: str, resolved: str) -> None:
    assert render(resolve(expression(text), NAMES)) == resolved


def test_resolving_changes_neither_the_expression_nor_the_names() -> None:
    text = expression("l.sum + l.k")
    before = render(text), render(BOTH)
    resolve(text, NAMES)
    assert (render(text), render(BOTH)) == before


def test_inner_names_hide_outer_ones() -> None:
    outer = {"l": {"k": own_column("t9", "k")}, "o": {"v": own_column("t9", "v")}}
    assert render(resolve(expression("l.k + o.v"), NAMES, outer)) == '"t1"."k" + "t9"."v"'


@pytest.mark.parametrize(
    "text", ["x.k", "l.v", "k", "l.*", "s.l.k", "(SELECT 1)", "EXISTS (SELECT 1)", "count(*) OVER ()"]
)
def test_what_is_not_visible_is_refused(text: str) -> None:
    with pytest.raises(NotDifferentiable):
        resolve(expression(text), NAMES)


def test_the_columns_of_a_single_source_need_no_alias() -> None:
    hidden = {"l": NAMES["l"], HOISTED: {"s0": L}}
    assert render(resolve(expression("k"), {"l": NAMES["l"]})) == '"t1"."k"'
    assert render(resolve(expression("k"), hidden)) == '"t1"."k"'


def test_merged_columns_are_named_without_an_alias() -> None:
    both = expression("coalesce(t1.k, t2.k)")
    names = {**NAMES, MERGED: {"k": both}}
    assert render(resolve(expression("k"), names)) == '(coalesce("t1"."k", "t2"."k"))'
    assert render(resolve(expression("l.k"), names)) == '"t1"."k"'
    assert first_named(names, "k") == both
    assert first_named(NAMES, "k") == L
    with pytest.raises(NotDifferentiable, match="USING"):
        first_named(NAMES, "z")


def test_sublinks_that_were_taken_out_stay() -> None:
    marker = exp.column("s0", table=SUBQUERY)
    assert resolve(marker, {}) == marker


def test_an_alias_list_names_the_first_columns() -> None:
    assert list(renamed({"a": L, "b": R}, [])) == ["a", "b"]
    assert renamed({"a": L, "b": R}, ["x"]) == {"x": L, "b": R}


def test_the_tables_of_an_expression_are_its_leaves() -> None:
    assert tables_of(BOTH) == {"t1", "t2"}
    assert tables_of(expression("1 + 1")) == frozenset()
