"""What a condition always is, against three-valued logic worked out for every value of what is open in it."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from pytrickle.plan.sql.dialect import parse_query, render
from pytrickle.plan.sql.three_valued import conjuncts, decided, is_null, truth

TRUTHS = (True, False, None)
OPEN = ("x", "y")

constants = st.sampled_from(TRUTHS).map(truth)
variables = st.sampled_from(OPEN).map(exp.column)
conditions = st.recursive(
    constants | variables,
    lambda inner: st.one_of(
        inner.map(lambda a: exp.Not(this=exp.Paren(this=a))),
        inner.map(lambda a: exp.Paren(this=a)),
        st.builds(lambda a, b: exp.And(this=exp.Paren(this=a), expression=exp.Paren(this=b)), inner, inner),
        st.builds(lambda a, b: exp.Or(this=exp.Paren(this=a), expression=exp.Paren(this=b)), inner, inner),
        st.builds(
            lambda a, no: exp.Is(this=exp.Paren(this=a), expression=exp.Null(), **({"negate": True} if no else {})),
            inner,
            st.booleans(),
        ),
    ),
    max_leaves=8,
)


def value_of(node: exp.Expr, known: dict[str, bool | None]) -> Any:
    match node:
        case exp.Paren():
            return value_of(node.this, known)
        case exp.Null():
            return None
        case exp.Boolean():
            return node.this
        case exp.Column():
            return known[node.name]
        case exp.Not():
            inner = value_of(node.this, known)
            return None if inner is None else not inner
        case exp.Is():
            return (value_of(node.this, known) is None) is not bool(node.args.get("negate"))
    both = (value_of(node.this, known), value_of(node.expression, known))
    winner = isinstance(node, exp.Or)
    return winner if winner in both else None if None in both else not winner


@given(conditions)
def test_what_is_decided_is_so_whatever_the_open_parts_are(condition: exp.Expr) -> None:
    verdict = decided(condition)
    values = [value_of(condition, dict(zip(OPEN, each, strict=True))) for each in product(TRUTHS, repeat=len(OPEN))]
    assert verdict == "open" or all(value is verdict for value in values)


@given(conditions)
def test_the_conjuncts_are_true_where_the_condition_is(condition: exp.Expr) -> None:
    for each in product(TRUTHS, repeat=len(OPEN)):
        known = dict(zip(OPEN, each, strict=True))
        parts = [value_of(part, known) is True for part in conjuncts(condition)]
        assert all(parts) is (value_of(condition, known) is True)


def condition_of(text: str) -> exp.Expr:
    where: exp.Expr = parse_query(f"SELECT FROM t WHERE {text}").args["where"].this
    return where


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("NULL::integer = t.a", None),
        ("(t.a > (NULL)::text)", None),
        ("NOT (t.a <> NULL)", None),
        ("NULL::integer IS NULL", True),
        ("NULL::integer IS NOT NULL", False),
        ("NULL IS TRUE", "open"),
        ("t.a IS NOT DISTINCT FROM NULL", "open"),
        ("t.a IS NULL", "open"),
        ("1 = 1", "open"),
        ("false AND t.a", False),
        ("t.a OR (NOT false)", True),
        ("NULL OR t.a", "open"),
        ("NULL AND true", None),
        ("coalesce(NULL, true)", "open"),
        ("t.a < 0.2 * NULL::numeric", None),
        ("t.a < (0.2 * (NULL::numeric(15,2) + 1))", None),
        ("t.a < t.b * NULL::numeric", "open"),
        ("t.a < 2 * NULL::interval", None),
        ("t.a > (NULL::timestamp with time zone - '30 days'::interval)", None),
        ("t.a > (NULL::public.moment - '30 days'::interval)", "open"),
        ("t.a > (NULL::date - '30 days'::public.span)", "open"),
        ("t.a >= date_trunc('month'::text, NULL::timestamp without time zone)", None),
        ("t.a >= other.date_trunc('month'::text, NULL::timestamp without time zone)", "open"),
        ("t.a < 0.2 * 3", "open"),
    ],
)
def test_conditions_as_postgresql_prints_them(text: str, verdict: object) -> None:
    assert decided(condition_of(text)) is verdict or decided(condition_of(text)) == verdict


def test_conjuncts_come_in_order_without_parentheses() -> None:
    found = conjuncts(condition_of("((t.a = 1) AND ((t.b) AND (t.c OR t.d)))"))
    assert [render(part) for part in found] == ['"t"."a" = 1', '"t"."b"', '"t"."c" OR "t"."d"']


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(t.a = t.b AND t.c) OR (t.d AND (t.a = t.b))", ['"t"."a" = "t"."b"', '"t"."c" OR "t"."d"']),
        ("(t.a AND t.b) OR t.a OR (t.c AND t.a)", ['"t"."a"']),
        ("(t.a AND t.b) OR (t.c AND t.d)", ['("t"."a" AND "t"."b") OR ("t"."c" AND "t"."d")']),
    ],
)
def test_what_all_arms_of_an_or_have_in_common_stands_alone(text: str, parts: list[str]) -> None:
    assert [render(part) for part in conjuncts(condition_of(text))] == parts


@pytest.mark.parametrize(("text", "null"), [("NULL", True), ("((NULL)::int)::text", True), ("'x'::text", False)])
def test_null_of_any_type_is_null(text: str, null: bool) -> None:
    assert is_null(condition_of(text)) is null
