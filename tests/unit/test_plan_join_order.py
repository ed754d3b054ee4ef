"""The conditions of a compiled join, as PostgreSQL's planner shall see them."""

from pytrickle.plan.algebra.relation import Equality, Expr, Join, Predicate, Scan, Version
from pytrickle.plan.postgres.join_order import conditions


def equal(left: str, right: str, column: str) -> Predicate:
    text = f"{left}.{column} = {right}.{column}"
    return Predicate(Expr(text, frozenset({left, right})), Equality((left, column), (right, column)))


def test_of_the_equalities_between_two_sets_of_changes_one_counts() -> None:
    changed, past = Scan("d", 1, (), Version.DELTA), Scan("p", 2, (), Version.PAST)
    table = Scan("t", 3, (), Version.CURRENT)
    alone = Predicate(Expr("d.x > 1", frozenset({"d"})))
    predicates = (equal("d", "p", "a"), equal("d", "t", "a"), equal("p", "d", "b"), equal("t", "d", "b"), alone)
    assert conditions(Join((changed, past, table), predicates)) == [
        "d.a = p.a",
        "d.a = t.a",
        "CASE WHEN p.b = d.b THEN true END",
        "t.b = d.b",
        "d.x > 1",
    ]
