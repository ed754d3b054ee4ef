"""How many rows Spark is expected to read, and how it reads and joins few of them."""

import re
from dataclasses import replace

import pytest

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.delta import differentiate
from pytrickle.plan.algebra.relation import Join, Project, Relation
from pytrickle.plan.postgres.consolidate import WEIGHT
from pytrickle.plan.spark import query as query_module
from pytrickle.plan.spark.expected_rows import FEW_BELOW
from pytrickle.plan.spark.leaves import FEW_ROWS, Computed, Frame, SparkTerm, reads_few, reads_of
from pytrickle.plan.spark.query import TOGETHER, SparkQuery, spark_query
from pytrickle.plan.spark.reads import PAGES_PER_PART
from pytrickle.plan.spark.terms import spark_terms
from pytrickle.plan.spark.together import MOST_COLUMNS, SMALL_ROWS, read_together
from tests.unit.chain import chain, definition, equal
from tests.unit.test_plan_spark_operations import (
    column,
    distinct,
    joined_with,
    keys_of,
    left_join,
    reading,
    translated,
)

ALL = frozenset({1, 2, 3, 4})


def terms_of(relation: Relation, rows: int, pages: int = 10, changes: int = 1) -> tuple[SparkTerm, ...]:
    """Translate the delta of a relation over tables of so many rows, all of which changed."""
    known = definition()
    sized = tuple(replace(source, estimated_rows=rows, pages=pages) for source in known.sources)
    ranges = {number: ChangeRange(number, None, None, changes, 0) for number in ALL}
    return spark_terms(differentiate(relation, ALL), replace(known, sources=sized), ranges) or ()


def of_few(terms: tuple[SparkTerm, ...]) -> SparkQuery:
    return spark_query(terms, None, 1, few=True)


@pytest.mark.parametrize(
    ("rows", "pages", "few"),
    [
        (FEW_ROWS // 4 - 2, 10, True),
        (FEW_ROWS // 4, 10, False),
        (0, 10, False),
        (100, 2 * PAGES_PER_PART, False),
    ],
    ids=["few", "many", "never analyzed", "wide"],
)
def test_rows_are_few_if_all_are_known_however_many_terms_read_them(rows: int, pages: int, few: bool) -> None:
    terms = terms_of(chain(), rows, pages)
    assert len(terms) == len(ALL)
    assert reads_few(terms) == few


def test_the_rows_below_operations_count() -> None:
    for relation, changed in ((left_join(), {1}), (joined_with(keys_of("b")), {2})):
        terms = translated(relation, changed)
        assert reads_few(terms)
        assert {frame.rows for frame in reads_of(terms)} == {1, 100}


def test_postgresql_computes_few_rows_of_small_tables_and_of_others_nobody_knows_how_many() -> None:
    keys = keys_of("b")
    keyless = replace(keys, operation=replace(keys.operation, keys=()))
    assert reads_few(translated(joined_with(keyless), {1, 2}))
    large = terms_of(joined_with(keyless), FEW_BELOW + 1)
    assert large
    assert not reads_few(large)


def test_of_few_rows_the_small_ones_are_read_together() -> None:
    assert set(of_few(terms_of(chain(), SMALL_ROWS)).frames) == {TOGETHER}
    large = of_few(terms_of(chain(), SMALL_ROWS + 1))
    assert len(large.frames) == len(ALL) + 1
    assert sum(frame.weighted for name, frame in large.frames.items() if name != TOGETHER) == 0
    assert TOGETHER in large.kept
    assert TOGETHER not in spark_query(terms_of(chain(), SMALL_ROWS), None, 1).frames


def test_of_few_reads_results_are_kept_in_memory() -> None:
    query = of_few(terms_of(chain(), SMALL_ROWS))
    assert (query.held, dict(query.computed)) == (False, {})


def test_what_is_used_many_times_is_taken_from_the_others_once_and_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query_module, "MANY_READS", 1)
    assert not spark_query(terms_of(chain(), SMALL_ROWS), None, 1).held
    query = of_few(terms_of(chain(), SMALL_ROWS))
    assert query.held
    uses = {name: query.template.count(f"{{{name}}}") for name in query.computed}
    assert uses
    assert all(times > 1 for times in uses.values())
    assert all(f"FROM {{{TOGETHER}}}" in text for text in query.computed.values())
    assert query.template.count(f"{{{TOGETHER}}}") + len(uses) == len(ALL) * 2


def test_what_is_read_together_names_each_column_once_and_marks_each_row() -> None:
    table, changes = Frame("SELECT 1", weighted=False, rows=1), Frame("SELECT 2", rows=2)
    found = read_together({table: ("c0", "c1"), changes: ()}, "all")
    assert found
    frame, parts = found
    assert re.findall(r"AS (r\w+)", frame.sql) == ["r0", "r0_c0", "r0_c1", "r0", "r1", f"r1_{WEIGHT}", "r1"]
    assert parts == {
        table: "(SELECT r0_c0 AS c0, r0_c1 AS c1 FROM {all} WHERE r0 = 1)",
        changes: f"(SELECT r1_{WEIGHT} AS {WEIGHT} FROM {{all}} WHERE r1 = 1)",
    }
    assert frame.rows == 3


@pytest.mark.parametrize(
    "frame",
    [
        Frame("s", rows=None),
        Frame("s", rows=SMALL_ROWS + 1),
        Frame("s", 10, 2, rows=1),
        Frame("s", looked_up=True, rows=1),
    ],
    ids=["unknown", "large", "in parts", "looked up"],
)
def test_a_frame_is_read_alone_if_it_may_be_large_or_is_read_otherwise(frame: Frame) -> None:
    small, other = Frame("SELECT 1", rows=1), Frame("SELECT 2", rows=1)
    assert read_together({small: ("c0",), frame: ("c0",)}, "all") is None
    found = read_together({small: ("c0",), frame: ("c0",), other: ()}, "all")
    assert found
    assert set(found[1]) == {small, other}


def test_no_more_columns_are_read_together_than_postgresql_has() -> None:
    columns = tuple(f"c{i}" for i in range(MOST_COLUMNS // 2))
    assert read_together({Frame("SELECT 1", rows=1): columns, Frame("SELECT 2", rows=1): columns}, "all") is None


def test_of_few_rows_the_tables_are_kept_in_memory_and_the_changes_pass_by() -> None:
    text = of_few(terms_of(chain(), 100)).template
    assert re.findall(r"BROADCAST\(([^)]*)\)", text) == ["t1, t2, t3"] * len(ALL)
    assert text.count("COALESCE(1)") == 1


@pytest.mark.parametrize(("tables", "kept"), [("b", True), ("bc", False)])
def test_what_a_join_may_multiply_is_not_kept_in_memory(tables: str, kept: bool) -> None:
    """How many rows it has nobody knows, however few are read."""
    on = (equal(("t_b", "k"), ("t_c", "k")),) if len(tables) > 1 else ()
    keys = distinct(Project(Join(tuple(map(reading, tables)), on), (("k0", column("t_b", "k")),)))
    by_rows = next(
        term for term in terms_of(joined_with(keys), 100) if not isinstance(term.leaves[0].frames[0], Computed)
    )
    assert ("SELECT /*+ BROADCAST(t1) */ t0." in of_few((by_rows,)).template.partition("AS t0")[0]) == kept
