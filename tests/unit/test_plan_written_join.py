"""Queries in FROM, written to be read as they are."""

from typing import Any, cast

from sqlglot import exp

from pytrickle.plan.query.facts import Facts
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
