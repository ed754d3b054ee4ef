"""Delta terms translated to Spark joins: the order of the leaves, carriers, and what stays in PostgreSQL."""

from dataclasses import replace
from itertools import pairwise

import pytest

from pytrickle.catalog.definition import Definition, Source, SourceColumn, Window
from pytrickle.plan.algebra import (
    Derived,
    Equality,
    Expr,
    Function,
    Join,
    Operation,
    Predicate,
    Project,
    Relation,
    Scan,
    UnionAll,
    Version,
)
from pytrickle.plan.block import Block, project
from pytrickle.plan.delta import differentiate
from pytrickle.plan.dialect import parse_query
from pytrickle.plan.placement import missing_indexes
from pytrickle.plan.spark_join import SparkTerm, spark_terms

CHAIN = "abcd"


def definition(
    base_type: str = "int4", deterministic: bool = True, indexed: frozenset[str] = frozenset()
) -> Definition:
    """Four tables `a` to `d` with columns k, j and x."""
    columns = tuple(SourceColumn(name, base_type, base_type, deterministic) for name in "kjx")
    sources = tuple(
        Source(
            number,
            "public",
            name,
            "TABLE",
            columns,
            tuple("kjx"),
            f"pgtrickle_changes.changes_{number}",
            indexed,
            10,
            100,
        )
        for number, name in enumerate(CHAIN, 1)
    )
    return Definition(1, "public", "st", "", (), sources, (("x", "integer"),), frozenset(), False, None)


def equal(left: tuple[str, str], right: tuple[str, str], as_text: bool = False) -> Predicate:
    return Predicate(Expr("...", frozenset({left[0], right[0]})), Equality(left, right, as_text))


def chain(*predicates: Predicate) -> Project:
    """Join all four tables, by default each to the next: a.j = b.k and so on."""
    links = tuple(equal((one, "j"), (other, "k")) for one, other in pairwise(CHAIN))
    scans = tuple(Scan(name, number, tuple("kjx")) for number, name in enumerate(CHAIN, 1))
    return Project(Join(scans, predicates or links), (("r0", Expr('"a"."x"', frozenset({"a"}))),))


def windows(changed: int) -> dict[int, Window]:
    return {number: Window(number, None, None, int(number == changed), 0) for number in range(1, 5)}


@pytest.mark.parametrize("changed", [1, 2, 3, 4])
def test_every_leaf_but_the_delta_has_a_key_to_an_earlier_one(changed: int) -> None:
    """Without one Spark would multiply the delta by a whole table."""
    terms = differentiate(chain(), frozenset({changed}))
    (term,) = spark_terms(terms, definition(), windows(changed)) or ()
    assert f"changes_{changed}" in term.leaves[0].frames[0].sql
    assert [bool(keys) for keys in term.keys] == [False, True, True, True]


def test_a_leaf_without_any_key_comes_as_a_cross_join() -> None:
    terms = differentiate(chain(equal(("a", "j"), ("b", "k"))), frozenset({1}))
    (term,) = spark_terms(terms, definition(), windows(1)) or ()
    assert sorted(bool(keys) for keys in term.keys) == [False, False, False, True]


def test_terms_share_the_text_of_every_table_they_both_read() -> None:
    terms = spark_terms(differentiate(chain(), frozenset({1, 2, 3, 4})), definition(), windows(1)) or ()
    whole = {frame.sql for term in terms for leaf in term.leaves for frame in leaf.frames if frame.pages is not None}
    assert len(terms) == 4
    assert len(whole) == 4


@pytest.mark.parametrize(
    ("base_type", "as_text", "deterministic", "possible"),
    [
        ("int8", False, True, True),
        ("numeric", False, True, True),
        ("varchar", True, True, True),
        ("text", True, False, False),
        ("numeric", True, True, False),  # '1.0' and '1.00' are equal numbers but different texts
        ("float8", False, True, False),
        ("bpchar", False, True, False),
        ("interval", False, True, False),
        ("mood", False, True, False),
    ],
)
def test_only_keys_with_a_carrier_are_joined_in_spark(
    base_type: str, as_text: bool, deterministic: bool, possible: bool
) -> None:
    links = [equal((one, "j"), (other, "k"), as_text) for one, other in pairwise(CHAIN)]
    terms = differentiate(chain(*links), frozenset({1}))
    assert (spark_terms(terms, definition(base_type, deterministic), windows(1)) is not None) == possible


def test_null_finds_null_as_a_text_that_no_value_has() -> None:
    links = [equal((one, "j"), (other, "k")) for one, other in pairwise(CHAIN)]
    first = links[0].equality
    assert first is not None
    null_safe = replace(links[0], equality=replace(first, null_safe=True))
    (term,) = spark_terms(differentiate(chain(null_safe, *links[1:]), frozenset({1})), definition(), windows(1)) or ()
    assert ["coalesce" in leaf.frames[0].sql for leaf in term.leaves] == [True, True, False, False]


def test_expressions_that_mix_sources_stay_in_postgres() -> None:
    mixed = Project(chain().input, (("r0", Expr('"a"."x" + "b"."x"', frozenset({"a", "b"}))),))
    assert spark_terms(differentiate(mixed, frozenset({1})), definition(), windows(1)) is None
    theta = Predicate(Expr('"a"."x" < "b"."x"', frozenset({"a", "b"})))
    assert spark_terms(differentiate(chain(theta), frozenset({1})), definition(), windows(1)) is None


@pytest.mark.parametrize(("base_type", "missing"), [("varchar", 0), ("text", 0), ("int4", 3)])
def test_an_index_serves_a_join_on_text_only_where_the_column_is_text(base_type: str, missing: int) -> None:
    links = [equal((one, "j"), (other, "k"), True) for one, other in pairwise(CHAIN)]
    block = chain(*links)
    join = block.input
    assert isinstance(join, Join)
    scans = [
        Scan(s.alias, s.relid, s.columns, Version.DELTA if s.alias == "a" else Version.CURRENT)
        for s in join.inputs
        if isinstance(s, Scan)
    ]
    indexed = definition(base_type, indexed=frozenset("k"))
    assert len(missing_indexes(Project(Join(tuple(scans), join.predicates), block.columns), indexed)) == missing


def reading(table: str, columns: str = "kjx") -> Scan:
    return Scan(f"t_{table}", CHAIN.index(table) + 1, tuple(columns))


def column(alias: str, name: str) -> Expr:
    return Expr(f'"{alias}"."{name}"', frozenset({alias}))


def distinct(relation: Relation, name: str = "exists", alias: str = "keys") -> Derived:
    """The distinct rows of a relation with one column, k0."""
    operation = Operation(name, relation, ("k0",), ("k0",), "SELECT DISTINCT d.k0 FROM", "AS d", ("k0",))
    return Derived(alias, operation)


def keys_of(table: str, expression: str | None = None) -> Derived:
    """The distinct keys of a table, or the distinct values of an expression over it."""
    scan = reading(table)
    key = column(scan.alias, "k") if expression is None else Expr(expression, frozenset({scan.alias}))
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
    found = {number: Window(number, None, None, int(number in changed), 0) for number in range(1, 5)}
    return spark_terms(differentiate(relation, frozenset(changed)), definition(**about), found) or ()


def test_an_outer_join_subtracts_what_finds_a_partner() -> None:
    terms = translated(left_join(), {1, 2})
    assert [term.negated for term in terms] == [False, False, False, True, True]
    assert [len(term.leaves) for term in terms] == [2, 2, 1, 2, 2]
    leading = [term.leaves[0].frames[0].sql for term in terms]
    assert ["pgt_delta_keys" in sql for sql in leading] == [False, False, False, False, True]
    assert all("changes_" in sql for sql in leading)
    assert all(term.keys[1] for term in terms if len(term.leaves) > 1)


def test_the_terms_of_an_outer_join_read_each_side_once() -> None:
    texts = {frame.sql for term in translated(left_join(), {1, 2}) for leaf in term.leaves for frame in leaf.frames}
    # Of `a` the table and its changes, before and within the delta; of `b` both and, as distinct keys, both again.
    assert sum(f'"public"."{table}" AS "{table}"' in text for text in texts for table in "ab") == 2
    assert sum("DISTINCT" in text for text in texts) == 2
    assert len(texts) == 6


def test_the_old_state_of_an_operation_is_its_new_state_less_its_changes() -> None:
    block = Project(
        Join((keys_of("b"), Scan("a", 1, tuple("kjx"))), (equal(("a", "j"), ("keys", "k0")),)),
        (("r0", column("a", "x")),),
    )
    by_keys, by_rows = translated(block, {1, 2})
    assert ["pgt_delta_keys" in frame.sql for frame in by_keys.leaves[0].frames] == [True]
    assert [(frame.negated, "pgt_delta_keys" in frame.sql) for frame in by_rows.leaves[1].frames] == [
        (False, False),
        (True, True),
    ]
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


def test_a_key_is_followed_through_operations_and_unions() -> None:
    below = keys_of("b")
    again = distinct(Project(Join((below,)), (("k0", column("keys", "k0")),)), "distinct", "outer")
    assert translated(joined_with(again), {1, 2})
    arms = tuple(Project(Join((reading(t),)), (("k0", column(f"t_{t}", "k")),)) for t in "bc")
    assert translated(joined_with(distinct(UnionAll(arms))), {1, 3})
    computed = Project(Join((reading("c"),)), (("k0", Expr('"t_c"."k" + 1', frozenset({"t_c"}))),))
    assert not translated(joined_with(distinct(UnionAll((arms[0], computed)))), {1, 3})


def test_what_cannot_be_read_alone_stays_in_postgres() -> None:
    scalar = distinct(Project(Join((reading("b"),)), (("k0", column("t_b", "k")),)), "scalar")
    assert not translated(joined_with(scalar), {1, 2})
    series = Function("f", 'generate_series(1, "a"."j")', frozenset({"a"}), ("k0",))
    assert not translated(joined_with(series), {1})


def test_without_a_join_there_is_nothing_for_spark_to_do() -> None:
    alone = Project(Join((keys_of("b"),)), (("r0", column("keys", "k0")),))
    assert not translated(alone, {2})


@pytest.mark.parametrize(
    ("condition", "null_safe"),
    [
        ("a.k = b.k", False),
        ("NOT a.k IS DISTINCT FROM b.k", True),
        ("NOT (a.k IS DISTINCT FROM b.k)", True),
        ("a.k IS DISTINCT FROM b.k", None),
        ("NOT a.k = b.k", None),
    ],
)
def test_equalities_are_told_by_whether_null_equals_null(condition: str, null_safe: bool | None) -> None:
    on = parse_query(f"SELECT 1 FROM a JOIN b ON {condition}").args["joins"][0].args["on"]
    block = project(Block((reading("a"), reading("b")), (on,), {}), ())
    assert isinstance(block.input, Join)
    (predicate,) = block.input.predicates
    assert (predicate.equality.null_safe if predicate.equality else None) == null_safe
