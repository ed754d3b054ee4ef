"""Delta terms translated to Spark joins: the order of the leaves, carriers, and what stays in PostgreSQL."""

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from pytrickle.catalog.definition import ChangeRange, Definition, SourceColumn
from pytrickle.plan.algebra.delta import differentiate
from pytrickle.plan.algebra.relation import Expr, Join, Predicate, Project, Scan, Version
from pytrickle.plan.missing_index import missing_indexes
from pytrickle.plan.query.block import Block, project
from pytrickle.plan.spark.leaves import NothingToJoin
from pytrickle.plan.spark.query import BROADCAST_ROWS, BROADCAST_TABLE, spark_query
from pytrickle.plan.spark.reads import CTID
from pytrickle.plan.spark.sub_join import JOINED
from pytrickle.plan.spark.terms import Wanted, spark_terms
from pytrickle.plan.sql.dialect import parse_query
from tests.unit.chain import CHAIN, chain, definition, equal, ranges


def links() -> list[Predicate]:
    return [equal((one, "j"), (other, "k")) for one, other in pairwise(CHAIN)]


def typed(type_name: str) -> Definition:
    """The four tables, with a column x of a type."""
    base = {"integer": "int4", "bigint": "int8", "timestamp without time zone": "timestamp"}
    own = base.get(type_name, type_name.partition("(")[0])
    columns = (*definition().sources[0].columns[:2], SourceColumn("x", type_name, own, True))
    return replace(definition(), sources=tuple(replace(each, columns=columns) for each in definition().sources))


@pytest.mark.parametrize("changed", [1, 2, 3, 4])
def test_every_leaf_but_the_delta_has_a_key_to_an_earlier_one(changed: int) -> None:
    """Without one Spark would multiply the delta by a whole table."""
    terms = differentiate(chain(), frozenset({changed}))
    (term,) = spark_terms(terms, definition(), ranges(changed)) or ()
    assert f"changes_{changed}" in term.leaves[0].frames[0].sql
    assert [bool(keys) for keys in term.keys] == [False, True, True, True]


def test_a_leaf_without_any_key_comes_as_a_cross_join() -> None:
    terms = differentiate(chain(equal(("a", "j"), ("b", "k"))), frozenset({1}))
    (term,) = spark_terms(terms, definition(), ranges(1)) or ()
    assert sorted(bool(keys) for keys in term.keys) == [False, False, False, True]


def test_terms_share_the_text_of_every_table_they_both_read() -> None:
    terms = spark_terms(differentiate(chain(), frozenset({1, 2, 3, 4})), definition(), ranges(1)) or ()
    whole = {frame.sql for term in terms for leaf in term.leaves for frame in leaf.frames if not frame.weighted}
    assert len(terms) == 4
    assert len(whole) == 4


@pytest.mark.parametrize(("rows", "changes", "asked"), [(100, 1, False), (10**6, 1, True), (10**6, 10**6, False)])
def test_a_large_table_is_asked_only_for_the_rows_that_the_delta_joins(rows: int, changes: int, asked: bool) -> None:
    known = definition()
    known = replace(known, sources=tuple(replace(source, estimated_rows=rows) for source in known.sources))
    changed = ranges(2) | {2: ChangeRange(2, None, None, changes, 0)}
    (term,) = spark_terms(differentiate(chain(), frozenset({2})), known, changed) or ()
    texts = [" ".join(frame.sql for frame in leaf.frames) for leaf in term.leaves]
    assert ["EXISTS" in text for text in texts] == [False, asked, asked, asked]
    assert term.reached == (frozenset("acd") if asked else frozenset())


def test_a_key_that_may_be_null_is_no_reason_to_compare_all_rows_with_all() -> None:
    known = definition()
    known = replace(known, sources=tuple(replace(source, estimated_rows=10**6) for source in known.sources))
    first, *others = (equal((one, "j"), (other, "k")) for one, other in pairwise(CHAIN))
    assert first.equality
    null_safe = Predicate(first.expr, replace(first.equality, null_safe=True))
    (term,) = spark_terms(differentiate(chain(null_safe, *others), frozenset({2})), known, ranges(2)) or ()
    assert term.reached == frozenset("cd")


def test_a_table_is_reached_by_way_of_rows_that_were_there_before_the_changes() -> None:
    """What joined the changes may be gone since, or may have come since."""
    known = definition()
    known = replace(known, sources=tuple(replace(source, estimated_rows=10**6) for source in known.sources))
    terms = spark_terms(differentiate(chain(), frozenset({1, 2})), known, ranges(1) | {2: ranges(2)[2]}) or ()
    texts = {leaf.frames[0].sql for term in terms for leaf in term.leaves if "EXISTS" in leaf.frames[0].sql}
    by_way_of_b = [text for text in texts if "UNION ALL" in text]
    assert by_way_of_b and all("changes_1" in text and "changes_2" in text for text in by_way_of_b)


@pytest.mark.parametrize(("changes", "looked_up"), [(1, True), (10**5, False)])
def test_an_index_finds_the_rows_that_few_changes_join(changes: int, looked_up: bool) -> None:
    known = definition()
    sources = (replace(source, estimated_rows=10**6, indexed=frozenset("k")) for source in known.sources)
    known = replace(known, sources=tuple(sources))
    changed = ranges(1) | {1: ChangeRange(1, None, None, changes, 0)}
    (term,) = spark_terms(differentiate(chain(), frozenset({1})), known, changed) or ()
    assert term.reached == frozenset("bcd")
    assert [leaf.frames[0].looked_up for leaf in term.leaves] == [False, *[looked_up] * 3]
    assert all(leaf.frames[0].parts == 0 for leaf in term.leaves if leaf.frames[0].looked_up)


def test_a_table_with_many_rows_for_each_change_is_read_whole() -> None:
    """Of the orders of a tenth of all customers there are a tenth of all orders, however few the customers."""
    known = definition()
    rows = {1: 1_000, 2: 10**6}
    sources = (replace(each, estimated_rows=rows.get(each.relid, 10**6)) for each in known.sources)
    known = replace(known, sources=tuple(sources))
    for changes, asked in ((10, True), (500, False)):
        changed = ranges(1) | {1: ChangeRange(1, None, None, changes, 0)}
        (term,) = spark_terms(differentiate(chain(), frozenset({1})), known, changed) or ()
        assert term.reached == (frozenset("bcd") if asked else frozenset())


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
    assert bool(spark_terms(terms, definition(base_type, deterministic), ranges(1))) == possible


def test_null_finds_null_as_a_text_that_no_value_has() -> None:
    links = [equal((one, "j"), (other, "k")) for one, other in pairwise(CHAIN)]
    first = links[0].equality
    assert first is not None
    null_safe = replace(links[0], equality=replace(first, null_safe=True))
    (term,) = spark_terms(differentiate(chain(null_safe, *links[1:]), frozenset({1})), definition(), ranges(1)) or ()
    assert ["coalesce" in leaf.frames[0].sql for leaf in term.leaves] == [True, True, False, False]


TEXTS = '"a"."x" || "b"."x"'
LESS = '"a"."x" < "b"."x"'


def reading_both(sql: str) -> Expr:
    return Expr(sql, frozenset({"a", "b"}), frozenset({("a", "x"), ("b", "x")}))


def showing(sql: str) -> Project:
    return Project(chain().input, (("r0", reading_both(sql)),))


@pytest.mark.parametrize(
    ("block", "base_type"),
    [
        (showing(TEXTS), "text"),
        (showing('"a"."x" / "b"."x"'), "integer"),
        (showing('round("a"."x" * "b"."x")'), "integer"),
        (showing('"a"."x" * "b"."x"'), "bigint"),
        (showing('"a"."x" * "b"."x"'), "numeric(20,2)"),
        (showing('"a"."x" + "b"."x"'), "numeric"),
        (showing('CASE WHEN "a"."x" > 0 THEN 1 / "b"."x" ELSE 0 END'), "integer"),
        (chain(*links(), Predicate(reading_both(LESS))), "text"),
        (chain(*links(), Predicate(reading_both(LESS))), "double precision"),
        (chain(*links(), Predicate(reading_both(LESS))), "numeric"),
    ],
)
def test_leaves_of_an_expression_that_only_postgres_evaluates_are_joined_there(block: Project, base_type: str) -> None:
    known = typed(base_type)
    terms = differentiate(block, frozenset({1, 4}))
    assert spark_terms(terms, known, ranges(1)) == NothingToJoin(JOINED)
    for term in spark_terms(terms, known, ranges(1), wanted=Wanted(sub_joins=True)) or ():
        assert term.together == (frozenset("ab"),)
        assert len(term.leaves) == 3
        assert all(term.keys[1:])


@pytest.mark.parametrize(
    ("block", "base_type"),
    [
        (showing('"a"."x" + "b"."x" * 3'), "integer"),
        (showing('"a"."x" * "b"."x"'), "numeric(17,2)"),
        (showing(LESS), "date"),
        (chain(*links(), Predicate(reading_both(LESS))), "timestamp without time zone"),
        (chain(*links(), Predicate(reading_both(LESS + ' OR lower("a"."x") LIKE \'b%\''))), "uuid"),
    ],
)
def test_spark_evaluates_what_is_on_its_list(block: Project, base_type: str) -> None:
    (term,) = spark_terms(differentiate(block, frozenset({1})), typed(base_type), ranges(1)) or ()
    assert (len(term.leaves), term.together) == (4, ())


def test_rows_are_compared_with_all_others_only_where_spark_is_asked_for() -> None:
    apart = chain(Predicate(reading_both(LESS)), *links()[1:])
    terms = differentiate(apart, frozenset({1}))
    assert spark_terms(terms, typed("integer"), ranges(1)) == NothingToJoin(JOINED)
    (term,) = spark_terms(terms, typed("integer"), ranges(1), wanted=Wanted(sub_joins=True)) or ()
    assert [len(tests) for tests in term.tests] == [0, 1, 0, 0]


def test_terms_share_the_large_part_of_a_sub_join() -> None:
    """Of b and c joined: as both are now, which is the new state, and what the old one lacks of it; and two changes."""
    shown = Expr('"b"."x" || "c"."x"', frozenset({"b", "c"}), frozenset({("b", "x"), ("c", "x")}))
    block = Project(chain().input, (("r0", shown),))
    found = {number: ChangeRange(number, None, None, 1, 0) for number in range(1, 5)}
    terms = differentiate(block, frozenset({1, 2, 3, 4}))
    joined = spark_terms(terms, typed("text"), found, wanted=Wanted(sub_joins=True)) or ()
    pairs = [leaf for term in joined for leaf in term.leaves if " || " in leaf.frames[0].sql]
    assert [len(leaf.frames) for leaf in pairs] == [1, 1, 1, 2]
    assert [leaf.multiplies for leaf in pairs] == [False, True, True, False]
    new, _, _, old = pairs
    assert new.frames[0] == old.frames[0]


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
    block = project(Block((Scan("a", 1, ("k",)), Scan("b", 2, ("k",))), (on,), {}), ())
    assert isinstance(block.input, Join)
    (predicate,) = block.input.predicates
    assert (predicate.equality.null_safe if predicate.equality else None) == null_safe


@pytest.mark.parametrize(
    ("rows", "changes", "kept"),
    [
        (50, 100, "t1, t2, t3"),
        (BROADCAST_ROWS - 1, 2 * BROADCAST_ROWS, "t1, t2, t3"),
        (200, 100, "t0"),
        (BROADCAST_ROWS, 2 * BROADCAST_ROWS, None),
        (0, 100, "t0"),
        (0, 2 * BROADCAST_ROWS, None),
    ],
)
def test_every_task_keeps_what_has_fewer_rows_as_far_as_that_is_known(
    rows: int, changes: int, kept: str | None
) -> None:
    """Zero rows are those of a table that was never analyzed."""
    known = definition()
    known = replace(known, sources=tuple(replace(source, estimated_rows=rows) for source in known.sources))
    changed = ranges(2) | {2: ChangeRange(2, None, None, changes, 0)}
    terms = spark_terms(differentiate(chain(), frozenset({2})), known, changed) or ()
    assert re.findall(r"BROADCAST\(([^)]*)\)", spark_query(terms, None, changes).template) == ([kept] if kept else [])


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ({1: 50, 2: 60, 3: 10, 4: 20}, "t0, t2, t3"),
        ({1: 50, 2: 10**6, 3: 10**6}, "t0"),
        ({1: BROADCAST_TABLE, 2: BROADCAST_TABLE + 1, 3: 0}, "t0"),
        ({1: 0, 2: 0, 3: 0}, ""),
    ],
)
def test_of_whole_tables_the_small_ones_are_kept_and_the_largest_passes_by(rows: dict[int, int], kept: str) -> None:
    known = definition()
    sized = tuple(replace(source, estimated_rows=rows.get(source.relid, 10**6)) for source in known.sources)
    terms = spark_terms((chain(),), replace(known, sources=sized), ranges(0)) or ()
    assert re.findall(r"BROADCAST\(([^)]*)\)", spark_query(terms, None, None).template) == ([kept] if kept else [])
    assert "BROADCAST" not in spark_query(terms, None, None, table_rows=0).template


@pytest.mark.parametrize(("changes", "parts"), [(199_999, 0), (200_000, 2), (10**7, 16)])
def test_many_changes_are_read_in_parts_of_the_buffer(changes: int, parts: int) -> None:
    changed = ranges(2) | {2: ChangeRange(2, None, None, changes, 0, pages=500)}
    (term,) = spark_terms(differentiate(chain(), frozenset({2})), definition(), changed) or ()
    (frame,) = term.leaves[0].frames
    assert (frame.parts, frame.pages, frame.weighted, CTID in frame.sql) == (parts, 500, True, parts > 0)
