"""Groups below other parts of a query, as Spark computes them: what it reads of numbers, and when rows cancel out."""

import re
from dataclasses import replace

import pytest

from pytrickle.catalog.definition import Definition, SourceColumn
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.relation import Derived, Expr, Join, Operation, Predicate, Project, Scan, Shown, Version
from pytrickle.plan.spark.leaves import Computed, SparkTerm
from pytrickle.plan.spark.query import spark_query
from pytrickle.plan.spark.terms import Wanted, spark_terms
from tests.unit.chain import definition, ranges

CANCELLED = "HAVING sum(pgt_weight) <> 0\n) AS d\n) AS d GROUP BY pgt_side, k0_0"


def of_type(type_name: str) -> Definition:
    """Let x of every table be a numeric of some type."""
    known = definition()
    columns = (*known.sources[0].columns[:2], SourceColumn("x", type_name, "numeric", True))
    return replace(known, sources=tuple(replace(source, columns=columns) for source in known.sources))


def summed(version: Version = Version.NEW, argument: str = '"b"."x"') -> Project:
    """The sums of x for each k of `b`."""
    key = Expr('"b"."k"', frozenset({"b"}), shown=Shown(("b", "k")))
    columns = ("k0", key), ("a0", Expr(argument, frozenset({"b"})))
    rows = Project(Join((Scan("b", 2, tuple("kjx")),)), columns)
    operation = Operation(Group(("sum(d.a0)",)), rows, ("k0", "a0"), ("k0",), types=("integer", "numeric"))
    derived = Derived("g", operation, version=version)
    total = Expr('"g"."c0"', frozenset({"g"}), frozenset({("g", "c0")}), Shown(("g", "c0")))
    return Project(Join((derived,)), (("r0", total),))


def template(version: Version, known: Definition, changed: int = 0, argument: str = '"b"."x"') -> str:
    return written(summed(version, argument), known, changed)


def written(block: Project, known: Definition, changed: int = 0) -> str:
    terms = spark_terms((block,), known, ranges(changed), wanted=Wanted(whole=True))
    assert terms and isinstance(frame_of(terms), Computed)
    return spark_query(terms, None, None).template


def frame_of(terms: tuple[SparkTerm, ...]) -> object:
    (term,) = terms
    (leaf,) = term.leaves
    return leaf.frames[0]


def test_rows_of_tables_cancel_out_only_where_changes_are_among_them() -> None:
    whole, delta = template(Version.NEW, of_type("numeric")), template(Version.DELTA, of_type("numeric"), 2)
    assert CANCELLED in delta and CANCELLED not in whole
    assert "GROUP BY pgt_side, k0_0" in whole


def test_the_text_of_a_sum_is_written_only_where_it_is_shown() -> None:
    """What is only compared with something is a decimal as it is, and groups differ by nothing else."""
    block, text = summed(), "split_part(CAST(a0_0_s AS STRING)"
    enough = Predicate(Expr('"g"."c0" > 300', frozenset({"g"}), frozenset({("g", "c0")})))
    key = ("r1", Expr('"g"."k0"', frozenset({"g"}), frozenset({("g", "k0")}), Shown(("g", "k0"))))
    asked = replace(block, input=replace(block.input, predicates=(enough,)), columns=(key,))
    compared, shown = (written(each, of_type("numeric")) for each in (asked, block))
    assert "abs(a0_0_s)" in compared and text not in compared and "c0 HAVING" not in compared
    assert text in shown and "d GROUP BY k0_0, c0 HAVING" in shown


@pytest.mark.parametrize(
    ("type_name", "argument", "scale"),
    [
        ("numeric(15,2)", '"b"."x"', 2),
        ("numeric(28,12)", '"b"."x"', 12),
        ("numeric(5,0)", '"b"."x" + "b"."x"', 0),
        ("numeric(18,1)", '"b"."x"', None),
        ("numeric(28,13)", '"b"."x"', None),
        ("numeric", '"b"."x"', None),
        ("numeric(5,2)", '"b"."x" / 3', None),
        ("numeric(5,2)", 'CASE WHEN "b"."x" > 1 THEN "b"."x" ELSE 1.5 END', None),
    ],
)
def test_a_number_of_a_declared_scale_is_not_searched_for_its_point(
    type_name: str, argument: str, scale: int | None
) -> None:
    found = template(Version.NEW, of_type(type_name), argument=argument)
    assert ("split_part(a0_0," not in found) is (scale is not None)
    if scale is not None:
        assert re.search(rf"CASE WHEN NOT a0_0 = 10+ THEN {scale} END AS a0_0_scale", found)
