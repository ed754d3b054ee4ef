"""Delta terms with operations translated to Spark joins: outer, semi and anti joins, and what is computed below."""

import re
from dataclasses import replace

import pytest

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.single import Single
from pytrickle.plan.algebra.delta import differentiate
from pytrickle.plan.algebra.relation import (
    Derived,
    Expr,
    Function,
    Join,
    Operation,
    Predicate,
    Project,
    Relation,
    Scan,
    Shown,
    UnionAll,
    Version,
)
from pytrickle.plan.query.block import to_expr
from pytrickle.plan.spark.leaves import Computed, Frame, SparkTerm, reads_of
from pytrickle.plan.spark.query import spark_query
from pytrickle.plan.spark.terms import spark_terms
from pytrickle.plan.sql.dialect import parse_query
from tests.unit.chain import CHAIN, definition, equal

EXISTS = Exists()


def reading(table: str, columns: str = "kjx") -> Scan:
    return Scan(f"t_{table}", CHAIN.index(table) + 1, tuple(columns))


def column(alias: str, name: str) -> Expr:
    return Expr(f'"{alias}"."{name}"', frozenset({alias}), shown=Shown((alias, name)))


def distinct(relation: Relation, construct: Construct = EXISTS, alias: str = "keys") -> Derived:
    """The distinct rows of a relation with one column, k0."""
    return Derived(alias, Operation(construct, relation, ("k0",), ("k0",)))


def keys_of(table: str, expression: str | None = None) -> Derived:
    """The distinct keys of a table, or the distinct values of an expression over it."""
    scan = reading(table)
    key = column(scan.alias, "k") if expression is None else to_expr(parse_query(f"SELECT {expression}").selects[0])
    return distinct(Project(Join((scan,)), (("k0", key),)))


def left_join() -> UnionAll:
    """a LEFT JOIN b ON a.j = b.k: the pairs, and the rows of `a` less those whose key `b` has."""
    a, b = Scan("a", 1, tuple("kjx")), Scan("b", 2, tuple("kjx"))
    null = ("r1", Expr("CAST(NULL AS int)", frozenset()))
    shown = ("r0", column("a", "x"))
    return UnionAll(
        (
            Project(Join((a, b), (equal(("a", "j"), ("b", "k")),)), (shown, ("r1", column("b", "x")))),
            Project(Join((a,)), (shown, null)),
            Project(Join((a, keys_of("b")), (equal(("a", "j"), ("keys", "k0")),), negated=True), (shown, null)),
        )
    )


def translated(relation: Relation, changed: set[int], **about: str) -> tuple[SparkTerm, ...]:
    found = {number: ChangeRange(number, None, None, int(number in changed), 0) for number in range(1, 5)}
    return spark_terms(differentiate(relation, frozenset(changed)), definition(**about), found) or ()


def test_an_outer_join_subtracts_what_finds_a_partner() -> None:
    terms = translated(left_join(), {1, 2})
    assert [term.negated for term in terms] == [False, False, False, True, True]
    assert [len(term.leaves) for term in terms] == [2, 2, 1, 2, 2]
    assert [is_delta(term.leaves[0].frames[0]) for term in terms] == [False, False, False, False, True]
    assert all("changes_" in frame.sql for term in terms[:4] for frame in term.leaves[0].frames)
    assert all(term.keys[1] for term in terms if len(term.leaves) > 1)


def test_the_terms_of_an_outer_join_read_each_side_once() -> None:
    texts = {frame.sql for frame in reads_of(translated(left_join(), {1, 2}))}
    # Of `a` the table and its changes, before and within the delta; of `b` both and, for distinct keys, both again.
    assert sum(f'"public"."{table}" AS "{table}"' in text for text in texts for table in "ab") == 2
    assert sum('AS "t_b"' in text for text in texts) == 2
    assert not any("SELECT DISTINCT" in text for text in texts)
    assert len(texts) == 6


def test_the_old_state_of_an_operation_is_its_new_state_less_its_changes() -> None:
    block = Project(
        Join((keys_of("b"), Scan("a", 1, tuple("kjx"))), (equal(("a", "j"), ("keys", "k0")),)),
        (("r0", column("a", "x")),),
    )
    by_keys, by_rows = translated(block, {1, 2})
    assert [is_delta(frame) for frame in by_keys.leaves[0].frames] == [True]
    assert [(frame.negated, is_delta(frame)) for frame in by_rows.leaves[1].frames] == [(False, False), (True, True)]
    (alone,) = translated(block, {1})
    assert len(alone.leaves[1].frames) == 1


def test_a_negated_leaf_changes_the_sign_of_all_that_it_reads() -> None:
    block = left_join().inputs[0]
    assert isinstance(block, Project)
    join = block.input
    assert isinstance(join, Join)
    a, b = join.inputs
    assert isinstance(b, Scan)
    negated = replace(block, input=replace(join, inputs=(a, replace(b, negated=True))))
    _, term = translated(negated, {1, 2})
    assert [frame.negated for frame in term.leaves[0].frames] == [True]
    assert [frame.negated for frame in term.leaves[1].frames] == [False, True]


def is_delta(frame: Frame | Computed) -> bool:
    """Whether a frame is the delta of the keys, computed by Spark."""
    return isinstance(frame, Computed) and (frame.alias, frame.version) == ("keys", Version.DELTA)


def joined_with(leaf: Derived | Function, as_text: bool = False) -> Project:
    on = equal(("a", "j"), (leaf.alias, "k0"), as_text)
    return Project(Join((Scan("a", 1, tuple("kjx")), leaf), (on,)), (("r0", column("a", "x")),))


@pytest.mark.parametrize(
    ("base_type", "expression", "as_text", "possible"),
    [
        ("int4", '"t_b"."k"', False, True),
        ("int4", '("t_b"."k")', False, True),
        ("int4", '"t_b"."k" + 1', False, False),
        ("float8", '"t_b"."k"', False, False),
        ("varchar", 'CAST(("t_b"."k") AS TEXT)', True, True),
        ("int4", 'CAST(("t_b"."k") AS TEXT)', True, False),  # the other side is no text
        ("bpchar", 'CAST("t_b"."k" AS TEXT)', True, False),
    ],
)
def test_the_key_of_an_operation_is_known_by_the_column_that_it_shows(
    base_type: str, expression: str, as_text: bool, possible: bool
) -> None:
    relation = joined_with(keys_of("b", expression), as_text)
    assert bool(translated(relation, {1, 2}, base_type=base_type)) == possible


@pytest.mark.parametrize(
    ("type_name", "possible"),
    [("bigint", True), ("integer[]", False), ("numeric(8,2)", False), ("text", False), ("public.mood", False)],
)
def test_a_computed_key_is_known_by_its_type_unless_a_collation_decides(type_name: str, possible: bool) -> None:
    computed = keys_of("b", '"t_b"."k" + 1')
    typed = replace(computed, operation=replace(computed.operation, types=(type_name,)))
    assert bool(translated(joined_with(typed), {1, 2})) == possible


def test_a_key_is_followed_through_operations_and_unions() -> None:
    below = keys_of("b")
    again = distinct(Project(Join((below,)), (("k0", column("keys", "k0")),)), Distinct(), "outer")
    assert translated(joined_with(again), {1, 2})
    arms = tuple(Project(Join((reading(t),)), (("k0", column(f"t_{t}", "k")),)) for t in "bc")
    assert translated(joined_with(distinct(UnionAll(arms))), {1, 3})
    computed = Project(Join((reading("c"),)), (("k0", Expr('"t_c"."k" + 1', frozenset({"t_c"}))),))
    assert not translated(joined_with(distinct(UnionAll((arms[0], computed)))), {1, 3})


def test_what_cannot_be_read_alone_stays_in_postgres() -> None:
    scalar = distinct(Project(Join((reading("b"),)), (("k0", column("t_b", "k")),)), Single())
    assert not translated(joined_with(scalar), {1, 2})
    series = Function("f", 'generate_series(1, "a"."j")', frozenset({("a", "j")}), ("k0",))
    assert not translated(joined_with(series), {1})


def test_an_operation_over_what_has_to_be_joined_before_stays_in_postgres() -> None:
    """Both sides of its input are one input of no join that Spark could do."""
    between = Predicate(Expr('"t_b"."x" ~ "t_c"."x"', frozenset({"t_b", "t_c"})))
    link = equal(("t_b", "k"), ("t_c", "k"))
    for predicates, kind in (((link,), Computed), ((link, between), Frame)):
        input_ = Project(Join((reading("b"), reading("c")), predicates), (("k0", column("t_b", "k")),))
        (term,) = translated(joined_with(distinct(input_)), {2})
        assert [type(frame) for frame in term.leaves[0].frames] == [kind]


def test_what_is_kept_in_memory_below_an_operation_is_small() -> None:
    """Of whole tables one passes by; of the rest the changes are kept, and the keys that they touch."""
    input_ = Project(
        Join((reading("b"), reading("c")), (equal(("t_b", "k"), ("t_c", "k")),)), (("k0", column("t_b", "k")),)
    )
    terms = translated(joined_with(distinct(input_)), {2})
    now, changed = spark_query(terms, None, 1).template.split("LEFT SEMI JOIN")
    assert [re.findall(r"BROADCAST\((\w+)\)", part) for part in (now, changed)] == [["t0", "k", "t1"], ["t0", "t0"]]


def test_without_a_join_there_is_nothing_for_spark_to_do_but_an_operation() -> None:
    alone = Project(Join((keys_of("b"),)), (("r0", column("keys", "k0")),))
    (term,) = translated(alone, {2})
    assert [is_delta(frame) for frame in term.leaves[0].frames] == [True]
    keys = keys_of("b")
    inexact = replace(keys, operation=replace(keys.operation, exact=False))
    assert not translated(replace(alone, input=Join((inexact,))), {2}, base_type="float8")
