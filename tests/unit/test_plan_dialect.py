"""Constructs that the parser is shown as something else are written as they were."""

import pytest
from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.sql.dialect import parse_query, render


@pytest.mark.parametrize(
    "text",
    [
        'SELECT XMLELEMENT(NAME "It""s", XMLATTRIBUTES("i" AS "z"), "b") AS "x", XMLPI(NAME "php") FROM "t"',
        'SELECT "f"."a" FROM "t", ROWS FROM(generate_series(1, "t"."i"), unnest("t"."l")) AS "f"("a", "b")',
        'SELECT "x" || \'ROWS FROM(\' || \'XMLPI(NAME a\' AS "y" FROM "t"',
        'SELECT "t"."i" FROM ("t" JOIN "s" USING ("i") AS "x" LEFT JOIN "u" USING ("i"))',
    ],
)
def test_what_is_read_is_written_as_it_was(text: str) -> None:
    assert render(parse_query(text)) == text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ('SELECT 1 = ANY ("t"."k") AS "x" FROM "t"', 'SELECT 1 = ANY("g"."k0") AS "x" FROM "t"'),
        ('SELECT ("t"."k")."x" FROM "t"', 'SELECT ("g"."k0")."x" FROM "t"'),
        ('SELECT ("t"."k").* FROM "t"', 'SELECT ("g"."k0").* FROM "t"'),
        ('SELECT (("t"."k")."x")."y" FROM "t"', 'SELECT (("g"."k0")."x")."y" FROM "t"'),
    ],
)
def test_arrays_and_rows_stay_in_parentheses_whatever_comes_into_them(text: str, written: str) -> None:
    tree = parse_query(text)
    (parenthesis,) = (node for node in tree.find_all(exp.Paren) if isinstance(node.this, exp.Column))
    parenthesis.replace(exp.column("k0", table="g", quoted=True))
    assert render(tree) == written


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT JSON_ARRAYAGG(t.x RETURNING json) AS v FROM public.t", "does not know, at RETURNING\n"),
        (
            "SELECT q.a FROM t, JSON_TABLE(t.j, '$[*]' AS p COLUMNS (a integer PATH '$.a')) q",
            "^JSON_TABLE, whose answer",
        ),
        ("SELECT 1 1", "does not know\n"),
    ],
)
def test_the_word_at_which_the_parser_gave_up_is_named(query: str, reason: str) -> None:
    with pytest.raises(NotDifferentiable, match=reason):
        parse_query(query)
