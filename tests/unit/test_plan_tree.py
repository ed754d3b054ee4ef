"""The tree that explain draws: every node with its rows, those of unknown classes by their names."""

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytrickle.catalog.definition import ChangeRange, Definition, Source
from pytrickle.plan.algebra.relation import Equality, Expr, Join, Predicate, Project, Scan, UnionAll, Version
from pytrickle.plan.explain import _terms
from pytrickle.plan.tree import Part, RelationTree


def source(relid: int, name: str, rows: int) -> Source:
    return Source(relid, "public", name, "r", (), ("k",), f"changes_{relid}", frozenset(), 1, rows)


SOURCES = (source(1, "orders", 1000), source(2, "lines", 5000))
DEFINITION = Definition(1, "public", "report", "", (), SOURCES, (), frozenset(), frozenset(), None)
RANGES = {1: ChangeRange(1, None, None, 6, 2), 2: ChangeRange(2, None, None, 0, 0)}
ORDERS, LINES = Scan("t1", 1, ("k",)), Scan("t2", 2, ("k",))
EQUAL = Predicate(Expr("t1.k = t2.k", frozenset({"t1", "t2"})), Equality(("t1", "k"), ("t2", "k")))
POSITIVE = Predicate(Expr("t1.k > 0", frozenset({"t1"})))


@dataclass(frozen=True)
class Aggregation:
    input: Any
    name: str = "aggregate"


@dataclass(frozen=True)
class Derived:
    alias: str
    operation: Any
    version: Version
    negated: bool = False


@dataclass(frozen=True)
class Sample:
    inputs: tuple[Any, ...]


def drawn(node: Any) -> list[str]:
    return list(RelationTree(DEFINITION, RANGES).part(node).lines())


def test_a_join_is_drawn_with_its_condition_and_the_versions_of_its_leaves() -> None:
    node = Project(Join((replace(ORDERS, version=Version.DELTA), LINES), (EQUAL, POSITIVE)), ())
    assert drawn(node) == [
        "join on orders.k = lines.k and 1 condition, about 6 rows",
        "├─ Δpublic.orders, 6 rows",
        "└─ new public.lines, about 5,000 rows",
    ]


def test_what_is_taken_back_beyond_a_cut_is_counted() -> None:
    assert drawn(replace(ORDERS, version=Version.OLD)) == [
        "old public.orders less 8 buffered changes, about 1,000 rows"
    ]
    assert drawn(ORDERS) == ["new public.orders less 2 buffered changes, about 1,000 rows"]
    assert drawn(replace(ORDERS, version=Version.PAST)) == ["public.orders, 8 rows"]


def test_a_cross_join_multiplies_and_a_union_adds() -> None:
    union = UnionAll((Join((ORDERS, LINES)), LINES))
    assert drawn(union)[:2] == ["union, about 5,005,000 rows", "├─ join, about 5,000,000 rows"]


def test_nodes_of_unknown_classes_are_drawn_by_name_with_their_inputs() -> None:
    below = Derived("d1", Aggregation(Project(Join((LINES,)), ())), Version.DELTA)
    on = Predicate(Expr("", frozenset()), Equality(("t1", "k"), ("d1", "n")))
    assert drawn(Join((ORDERS, below, Sample((LINES,))), (on,))) == [
        "join on orders.k = aggregate.n, about 5,000,000 rows",
        "├─ new public.orders less 2 buffered changes, about 1,000 rows",
        "├─ Δaggregate, about 5,000 rows",
        "│  └─ new public.lines, about 5,000 rows",
        "└─ sample, about 5,000 rows",
        "   └─ new public.lines, about 5,000 rows",
    ]
    assert _terms(UnionAll((Join((ORDERS, below)), LINES)), DEFINITION) == [
        "new orders ⋈ Δaggregate(new lines)",
        "new lines",
    ]


def test_what_is_taken_away_has_a_sign_and_an_operation_is_read_as_a_whole() -> None:
    below = Derived("d1", Aggregation(Project(Join((LINES,)), ())), Version.DELTA)
    on = Predicate(Expr("", frozenset()), Equality(("t1", "k"), ("d1", "n")))
    node = Project(Join((ORDERS, below), (on,), negated=True), ())
    assert list(RelationTree(DEFINITION, RANGES, "PostgreSQL").part(node).lines()) == [
        "− join on orders.k = aggregate.n, about 1,000 rows",
        "├─ new public.orders less 2 buffered changes, about 1,000 rows [PostgreSQL]",
        "└─ Δaggregate, about 5,000 rows [PostgreSQL]",
        "   └─ new public.lines, about 5,000 rows",
    ]
    assert _terms(node, DEFINITION) == ["− new orders ⋈ Δaggregate(new lines)"]


parts = st.recursive(
    st.builds(Part, st.text("abc"), st.none() | st.integers(0, 9), st.none() | st.just("Spark")),
    lambda below: st.builds(Part, st.text("abc"), parts=st.lists(below, max_size=3).map(tuple), counted=st.booleans()),
)


@given(parts)
def test_a_tree_is_read_back_from_its_description_and_has_a_line_for_every_part(tree: Part) -> None:
    assert Part.of(tree.data()) == tree
    assert len(list(tree.lines())) == _count(tree)


def _count(tree: Part) -> int:
    return 1 + sum(_count(part) for part in tree.parts)
