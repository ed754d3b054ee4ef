"""Which subqueries show one row at most for what asks them."""

import pytest

from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.relation import Derived, Equality, Expr, Join, Operation, Predicate, Scan
from pytrickle.plan.postgres.one_match import finds_one
from tests.unit.chain import chain, definition


def asked(
    construct: Construct, types: tuple[str, ...], by: str = "integer", as_text: bool = False, columns: str = "kj"
) -> bool:
    """Ask an operation with keys of some types for each of some columns of the table a, which are of one type."""
    keys = tuple(f"k{i}" for i in range(len(types)))
    leaf = Derived("e", Operation(construct, chain(), keys, keys, types=types))
    pairs = [Equality(("a", own), ("e", key), as_text) for own, key in zip(columns, keys, strict=False)]
    join = Join((Scan("a", 1, tuple("kjx")), leaf), tuple(Predicate(Expr("", frozenset("ae")), each) for each in pairs))
    return finds_one(leaf, join.predicates, join, definition(by))


@pytest.mark.parametrize("construct", [Distinct(), Domain(), Exists()])
def test_distinct_rows_of_which_all_columns_are_equated_are_one(construct: Construct) -> None:
    assert asked(construct, ("integer",)) and asked(construct, ("bigint", "integer"))
    assert not asked(construct, ("integer", "integer"), columns="k")


def test_values_that_equal_one_value_may_differ_where_the_types_do() -> None:
    """9007199254740993 and 9007199254740992 are one value of double precision."""
    assert not asked(Exists(), ("bigint",), by="double precision") and not asked(Exists(), ("numeric",))
    assert asked(Exists(), ("uuid",), by="uuid") and not asked(Exists(), ("text",), by="text")


def test_rows_that_are_compared_as_text_or_are_no_keys_may_be_several() -> None:
    assert not asked(Exists(), ("integer",), as_text=True)
    assert not asked(Group(("count(*)",)), ("integer",))
