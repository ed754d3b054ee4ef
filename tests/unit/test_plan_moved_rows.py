"""Which terms may read the rows that another term found, because a total changed with which it compares them."""

from dataclasses import replace

from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.relation import Derived, Expr, Operation, Predicate, Scan, UnionAll, Version
from pytrickle.plan.postgres.eager_sum import Compared
from pytrickle.plan.postgres.moved_rows import Moved

TABLE, OTHER = (Scan(alias, relid, ("a",), Version.CURRENT) for alias, relid in (("t", 1), ("u", 2)))
TOTAL = Derived("d", Operation(Group(("count(*)",)), UnionAll(()), (), ()), Version.DELTA)
GREATER, SHORT = (Predicate(Expr(sql, frozenset({"t"}))) for sql in ("t.a > d.c0", "t.a < 9"))
ALONE = Moved(TABLE, Compared(TOTAL, (GREATER,)), (SHORT,), ())


def test_a_term_with_further_conditions_columns_and_tables_is_served() -> None:
    assert ALONE.serves(ALONE)
    assert ALONE.serves(replace(ALONE, own=(GREATER, SHORT), others=(OTHER,), scan=replace(TABLE, columns=("a", "b"))))


def test_a_term_that_needs_other_rows_is_not_served() -> None:
    assert not ALONE.serves(replace(ALONE, own=()))
    assert not ALONE.serves(replace(ALONE, scan=replace(TABLE, relid=3)))
    assert not ALONE.serves(replace(ALONE, compared=Compared(TOTAL, (SHORT,))))


def test_changes_find_their_rows_by_themselves_and_a_join_does_not_find_all() -> None:
    assert not ALONE.serves(replace(ALONE, others=(replace(OTHER, version=Version.DELTA),)))
    assert not replace(ALONE, others=(OTHER,)).serves(ALONE)
