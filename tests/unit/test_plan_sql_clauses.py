"""Clauses that the planner does not look at are refused, and what it does look at is where the parser keeps it."""

import pytest
from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.sql.clauses import KNOWN
from pytrickle.plan.sql.dialect import parse_query


@pytest.mark.parametrize(
    ("query", "clause"),
    [
        ("SELECT a FROM t QUALIFY a > 1", "the clause qualify of select"),
        ("SELECT a FROM (SELECT a FROM t SORT BY a) AS x", "the clause sort of select"),
        ("SELECT a FROM t ORDER BY a FETCH FIRST 50 PERCENT ROWS WITH TIES", "the clause percent of limitoptions"),
    ],
)
def test_a_clause_that_the_planner_does_not_know_is_refused(query: str, clause: str) -> None:
    with pytest.raises(NotDifferentiable, match=clause):
        parse_query(query)


@pytest.mark.parametrize("limit", ["LIMIT 2", "FETCH FIRST (2) ROWS WITH TIES"])
def test_rows_are_counted_where_the_planner_looks(limit: str) -> None:
    found = parse_query(f"SELECT a FROM t ORDER BY a OFFSET 1 {limit}").args["limit"]
    assert isinstance(found, exp.Limit | exp.Fetch)
    assert (found.args.get("count") or found.expression).unnest().name == "2"


def test_all_known_clauses_are_clauses_of_the_parser() -> None:
    """A name that the parser gives up says that it keeps the clause elsewhere now; two are the dialect's own."""
    unknown = {node.__name__: names - node.arg_types.keys() for node, names in KNOWN.items()}
    assert {name: names for name, names in unknown.items() if names} == {
        "Join": {"using_alias"},
        "Lateral": {"joins"},
    }
