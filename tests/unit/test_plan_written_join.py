"""Queries in FROM, written to be read as they are."""

from typing import Any, cast

from sqlglot import exp

from pytrickle.plan.algebra.constructs.folded import TABLE
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.queries import Queries
from pytrickle.plan.query.written_join import WrittenJoin
from pytrickle.plan.sql.dialect import parse_query
from tests.unit.chain import definition


def test_a_query_gets_an_alias_that_no_leaf_has() -> None:
    """Those of leaves are t1, t2 and so on, as a user may call a subquery, too."""
    facts = Facts(definition(), cast(Any, None))
    first = facts.alias()
    item = parse_query("SELECT t1.n FROM (SELECT 1 AS n) AS t1").args["from_"].this
    assert isinstance(item, exp.Subquery)
    found = WrittenJoin.of_query(item, (), {}, facts)
    assert found is not None
    assert found.names.keys() == {"t1"} == {first}
    assert (found.text, found.aliases) == ('(SELECT 1 AS "n") AS "t2" ("n")', {"t2"})


def test_all_that_a_query_joins_is_named_when_it_is_read() -> None:
    """Joins come in parentheses; each table may be another one by then, and a named query is written out."""
    text = (
        "WITH w AS (SELECT b.k FROM public.b) SELECT x.n FROM"
        " (SELECT count(*) AS n FROM ((public.a JOIN w ON a.k = w.k) JOIN public.c ON c.k = a.k)) AS x"
    )
    query, context = Queries(Facts(definition(), cast(Any, None))).unwrapped(parse_query(text), Context({}, {}))
    found = WrittenJoin.of_query(query.args["from_"].this, (), context.ctes, Facts(definition(), cast(Any, None)))
    assert found is not None
    assert [TABLE.format(relid=relid) in found.text for relid in (1, 2, 3)] == [True] * 3
    assert '(SELECT "b"."k" FROM' in found.text
