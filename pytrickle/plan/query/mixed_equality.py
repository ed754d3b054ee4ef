"""Equalities between values of different types, written so that what they hold for equal is one value.

PostgreSQL prints the casts of every comparison but those of IN, ANY and USING. Over different types equality is not
transitive: as double precision, the numerics 1 and 1.000000000000000000001 both equal 1, as numeric they differ. So
distinct values of one side serve as keys for the other only once they are of a type that is grouped as it is compared.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.relation import Derived, Function, Leaf, Project, Relation, Scan
from pytrickle.plan.query.block import Block, cast_to, project
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import tables_of

Leaves = Iterable[Leaf]


def equated(facts: Facts, leaves: Leaves, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Write `left = right`; a side that is compared as another type than its own is cast to that."""
    sides = (left, right)
    types = types_among(facts, leaves, sides)
    common = facts.key_types(*types)
    if common is None:
        raise NotDifferentiable(f"{types[0]} = {types[1]}, by which PostgreSQL cannot group")
    one, other = (
        each.copy() if own == wanted else cast_to(each, wanted)
        for each, own, wanted in zip(sides, types, common, strict=True)
    )
    return exp.EQ(this=one, expression=other)


def merged(facts: Facts, leaves: Leaves, side: str, left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Write the column that USING makes of two: the one that cannot be NULL, of the type that both have in common.

    An inner join shows the left one, unless the right one alone has that type already.
    """
    both = exp.Anonymous(this="COALESCE", expressions=[left.copy(), right.copy()])
    if side == "FULL":
        return both
    shown = {"LEFT": (left,), "RIGHT": (right,)}.get(side, (left, right))
    if _declared_alike(facts, leaves, (left, right)):
        return shown[0]
    *types, common = types_among(facts, leaves, (*shown, both))
    fitting = (each for each, own in zip(shown, types, strict=True) if own == common)
    return next(fitting, None) or cast_to(shown[0], common)


def types_among(facts: Facts, leaves: Leaves, expressions: tuple[exp.Expr, ...]) -> tuple[str, ...]:
    """Find the types of expressions over leaves, of which only those are read that the expressions need."""
    known = _declared(facts, leaves, expressions)
    if known is not None:
        return known
    return facts.types_of(_over_needed(leaves, expressions))


def have_one_collation(facts: Facts, leaves: Leaves, expressions: tuple[exp.Expr, ...]) -> bool:
    """Whether expressions over leaves, if they have collations at all, have the same."""
    return len(set(facts.collations_of(_over_needed(leaves, expressions)))) == 1


def _over_needed(leaves: Leaves, expressions: tuple[exp.Expr, ...]) -> Project:
    """Write expressions over those of the leaves that they need."""
    by_alias = {leaf.alias: leaf for leaf in leaves}
    needed = frozenset(table for each in expressions for table in tables_of(each))
    while more := frozenset[str]().union(*(_read_by(by_alias.get(alias)) for alias in needed)) - needed:
        needed |= more
    block = Block(tuple(leaf for alias, leaf in by_alias.items() if alias in needed), (), {})
    return project(block, tuple(each.copy() for each in expressions))


def refuse_unfit_keys(facts: Facts, node: Relation, names: Iterable[str], keys: Iterable[str]) -> None:
    """Refuse to group by types of which `=`, as generated SQL finds it, is not the equality that groups them.

    The columns of the relation have these names. Of a domain over an enumeration or a range there is no `=` or no hash.
    """
    columns = zip(facts.types_of(node), facts.domains_of(node), strict=True)
    known = dict(zip(names, columns, strict=True))
    for name, domain in (known[key] for key in keys):
        if facts.key_types(name, name) != (name, name):
            raise NotDifferentiable(f"a key of type {name}, by the equality of which PostgreSQL does not group")
        if domain and facts.probe.is_enumeration_or_range(name):
            raise NotDifferentiable(f"a key of domain {domain}, the values of which cannot be compared as such")


def _declared_alike(facts: Facts, leaves: Leaves, columns: tuple[exp.Expr, ...]) -> bool:
    types = _declared(facts, leaves, columns)
    return types is not None and len(set(types)) == 1


def _declared(facts: Facts, leaves: Leaves, expressions: tuple[exp.Expr, ...]) -> tuple[str, ...] | None:
    """Return the types of plain columns, of which the server need not be asked."""
    by_alias = {leaf.alias: leaf for leaf in leaves}
    found = [_type_of(facts, by_alias, each.unnest()) for each in expressions]
    known = tuple(each for each in found if each is not None)
    return known if len(known) == len(found) else None


def _type_of(facts: Facts, leaves: dict[str, Leaf], node: exp.Expr) -> str | None:
    if not isinstance(node, exp.Column):
        return None
    match leaves.get(node.table):
        case Scan(relid=relid):
            column = facts.definition.source(relid).column(node.name)
            return column.type_name if column else None
        case Derived(operation=operation):
            return dict(zip(operation.columns, operation.types, strict=False)).get(node.name)
        case _:
            return None


def _read_by(leaf: Leaf | None) -> frozenset[str]:
    return leaf.tables if isinstance(leaf, Function) else frozenset()
