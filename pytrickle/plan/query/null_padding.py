"""NULLs that stand in for values, and arms that stand alone: they need the collation of what they are a part of.

Which collation decides a comparison depends on what is compared: with another one, a condition would mean something
else for these rows than for all others.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pytrickle.plan.algebra.relation import Derived, Function, Leaf, Operation, Relation, UnionAll
from pytrickle.plan.query.block import Block, collated, null_of, null_of_domain, project, sum_of
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import Names, columns_named, tables_of

Blocks = tuple[Block, ...]


def nulls_of(facts: Facts, node: Relation | Operation) -> tuple[exp.Expr, ...]:
    """Write NULL for every column of a relation, or of an operation."""
    columns = zip(facts.types_of(node), facts.domains_of(node), facts.collations_of(node), strict=True)
    return tuple(
        collated(null_of_domain(domain), collation) if domain else null_of(type_name, collation)
        for type_name, domain, collation in columns
    )


def nulls_of_leaf(facts: Facts, block: Block) -> dict[str, exp.Expr]:
    """Write NULL for every column of a block's first leaf, an operation."""
    leaf = block.leaves[0]
    assert isinstance(leaf, Derived)
    return dict(zip(leaf.operation.columns, nulls_of(facts, leaf.operation), strict=True))


def nulls_of_names(facts: Facts, blocks: Blocks) -> Names:
    """Write NULL for every visible column of some blocks that have the same names."""
    visible = columns_named(blocks[0].names)
    rows = [project(_free(block), tuple(block.names[a][c] for a, c in visible)) for block in blocks]
    result: dict[str, dict[str, exp.Expr]] = {alias: {} for alias in blocks[0].names}
    for (alias, column), null in zip(visible, nulls_of(facts, sum_of(tuple(rows))), strict=True):
        result[alias][column] = null
    return result


def in_one_collation(facts: Facts, arms: list[Blocks], around: tuple[Leaf, ...] = ()) -> list[Blocks]:
    """Give the columns of a set operation's arms the collations of its own, wherever they have others.

    `around` are the leaves that arms in a LATERAL subquery may refer to.
    """
    collations = facts.collations_of(union_of(arms, around))
    if not any(collations):
        return arms
    return [tuple(_collated(facts, block, collations, around) for block in arm) for arm in arms]


def union_of(arms: list[Blocks], around: tuple[Leaf, ...] = ()) -> Relation:
    """Write the arms of a set operation as a relation, to be asked for its columns."""
    return UnionAll(tuple(project(_free(arm[0], around), tuple(arm[0].names[""].values())) for arm in arms))


def beside(around: tuple[Leaf, ...], block: Block) -> Block:
    """Let a LATERAL block stand beside what it refers to, so that it can be asked for its types."""
    functions = [leaf.tables for leaf in block.leaves if isinstance(leaf, Function)]
    expressions = [column for columns in block.names.values() for column in columns.values()]
    reads = frozenset[str]().union(*functions, *map(tables_of, expressions))
    return block if reads <= block.aliases else replace(block, leaves=(*around, *block.leaves))


def _collated(facts: Facts, block: Block, collations: tuple[str | None, ...], around: tuple[Leaf, ...]) -> Block:
    names, columns = tuple(block.names[""]), tuple(block.names[""].values())
    own = facts.collations_of(project(_free(block, around), columns))
    missing = (name if name != mine else None for name, mine in zip(collations, own, strict=True))
    return block.named({"": dict(zip(names, map(collated, columns, missing), strict=True))})


def _free(block: Block, around: tuple[Leaf, ...] = ()) -> Block:
    return replace(beside(around, block), predicates=(), negated=False)
