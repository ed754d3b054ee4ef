"""Which subqueries show one row at most for what asks them, so that PostgreSQL need not read any further."""

from collections.abc import Iterable, Iterator

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.relation import Column, Derived, Equality, Join, Predicate, Scan, leaves
from pytrickle.plan.postgres.aggregate import INTEGERS
from pytrickle.plan.sql.types import has_one_text, is_collatable


def finds_one(leaf: Derived, conditions: Iterable[Predicate], join: Join, definition: Definition) -> bool:
    """Whether no two rows of an operation meet the conditions by which a join asks for them.

    So it is with distinct rows of which all columns are equated. Values that are equal to one value are equal to each
    other where both sides have one type, or are integers; not so where large integers are compared with floats.
    """
    if not isinstance(leaf.operation.construct, Distinct | Domain | Exists):
        return False
    types = _types(join, definition)
    equated = set[str]()
    for equality in (each.equality for each in conditions):
        for own, other in _sides(equality) if equality and not equality.as_text else ():
            if own[0] == leaf.alias and _agree(types.get(own, ""), types.get(other, "")):
                equated.add(own[1])
    return equated.issuperset(leaf.operation.columns)


def _sides(equality: Equality) -> Iterator[tuple[Column, Column]]:
    yield equality.left, equality.right
    yield equality.right, equality.left


def _agree(one: str, other: str) -> bool:
    same = one == other and has_one_text(one) and not is_collatable(one)
    return same or {one, other} <= INTEGERS


def _types(join: Join, definition: Definition) -> dict[Column, str]:
    """Return the types of the columns of a join's leaves, as far as they are known."""
    found: dict[Column, str] = {}
    for leaf in leaves(join):
        if isinstance(leaf, Scan):
            columns = definition.source(leaf.relid).columns
            found |= {(leaf.alias, each.name): each.type_name for each in columns}
        elif isinstance(leaf, Derived):
            pairs = zip(leaf.operation.columns, leaf.operation.types, strict=False)
            found |= {(leaf.alias, name): type_name for name, type_name in pairs}
    return found
