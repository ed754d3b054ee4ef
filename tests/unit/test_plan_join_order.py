"""The conditions of a compiled join, as PostgreSQL's planner shall see them."""

from pytrickle.catalog.definition import MOST_NETTED, ChangeRange
from pytrickle.plan.algebra.relation import Equality, Expr, Join, Predicate, Scan, Version
from pytrickle.plan.postgres.join_order import DEAR, conditions


def equal(left: str, right: str, column: str) -> Predicate:
    text = f"{left}.{column} = {right}.{column}"
    return Predicate(Expr(text, frozenset({left, right})), Equality((left, column), (right, column)))


def ranges(**rows: int) -> dict[int, ChangeRange]:
    """Return ranges of so many changes of the sources d and p."""
    return {number: ChangeRange(number, None, None, rows[name]) for number, name in ((1, "d"), (2, "p"))}


def test_of_the_equalities_between_two_sets_of_changes_one_counts() -> None:
    changed, past = Scan("d", 1, (), Version.DELTA), Scan("p", 2, (), Version.PAST)
    table = Scan("t", 3, (), Version.CURRENT)
    alone = Predicate(Expr("d.x > 1", frozenset({"d"})))
    predicates = (equal("d", "p", "a"), equal("d", "t", "a"), equal("p", "d", "b"), equal("t", "d", "b"), alone)
    assert conditions(Join((changed, past, table), predicates), ranges(d=5, p=5)) == [
        "d.a = p.a",
        "d.a = t.a",
        "CASE WHEN p.b = d.b THEN true END",
        "t.b = d.b",
        "d.x > 1",
    ]


def test_the_equalities_of_a_second_set_of_many_changes_are_written_again() -> None:
    """Those with tables, too: PostgreSQL may expect one row of these."""
    changed, past = Scan("d", 1, (), Version.DELTA), Scan("p", 2, (), Version.PAST)
    table = Scan("t", 3, (), Version.CURRENT)
    links = Equality(("d", "c"), ("p", "c"), null_safe=True)
    null_safe = Predicate(Expr("d.c IS NOT DISTINCT FROM p.c", frozenset({"d", "p"})), links)
    join = Join((changed, past, table), (equal("d", "t", "a"), equal("d", "p", "b")))
    many = ranges(d=MOST_NETTED + 1, p=MOST_NETTED + 1)
    assert conditions(join, many) == ["d.a = t.a", "d.b = p.b", DEAR.format(test="d.b = p.b")]
    by_table = Join((changed, past, table), (equal("d", "t", "a"), equal("t", "p", "b")))
    assert conditions(by_table, many) == ["d.a = t.a", "t.b = p.b", DEAR.format(test="t.b = p.b")]
    assert conditions(join, ranges(d=MOST_NETTED + 1, p=MOST_NETTED)) == ["d.a = t.a", "d.b = p.b"]
    assert conditions(Join((changed, past), (null_safe,)), many) == ["d.c IS NOT DISTINCT FROM p.c"]
