"""Four tables joined in a row, as a definition and as algebra."""

from itertools import pairwise

from pytrickle.catalog.definition import ChangeRange, Definition, Source, SourceColumn
from pytrickle.plan.algebra.relation import Equality, Expr, Join, Predicate, Project, Scan

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
    return Definition(1, "public", "st", "", (), sources, (("x", "integer"),), frozenset(), frozenset(), None)


def equal(left: tuple[str, str], right: tuple[str, str], as_text: bool = False) -> Predicate:
    return Predicate(Expr("...", frozenset({left[0], right[0]})), Equality(left, right, as_text))


def chain(*predicates: Predicate) -> Project:
    """Join all four tables, by default each to the next: a.j = b.k and so on."""
    links = tuple(equal((one, "j"), (other, "k")) for one, other in pairwise(CHAIN))
    scans = tuple(Scan(name, number, tuple("kjx")) for number, name in enumerate(CHAIN, 1))
    return Project(Join(scans, predicates or links), (("r0", Expr('"a"."x"', frozenset({"a"}))),))


def ranges(changed: int) -> dict[int, ChangeRange]:
    return {number: ChangeRange(number, None, None, int(number == changed), 0) for number in range(1, 5)}
