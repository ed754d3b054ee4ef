"""NULLs that stand in for values, and arms that stand alone: they need the collation of what they are a part of.

Which collation decides a comparison depends on what is compared: of another one, a condition would mean something else
for these rows than for all others.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from pytrickle.plan.algebra.relation import Derived, Operation, Relation, UnionAll
from pytrickle.plan.query.block import Block, collated, null_of, project, sum_of
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import Names, columns_named

Blocks = tuple[Block, ...]


def nulls_of(facts: Facts, node: Relation | Operation) -> tuple[exp.Expr, ...]:
    """Write NULL for every column of a relation, or of an operation."""
    return tuple(map(null_of, facts.types_of(node), facts.collations_of(node)))


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


def in_one_collation(facts: Facts, arms: list[Blocks]) -> list[Blocks]:
    """Give the columns of a set operation's arms the collations of its own, wherever they have others."""
    collations = facts.collations_of(union_of(arms))
    return [tuple(_collated(facts, block, collations) for block in arm) for arm in arms] if any(collations) else arms


def union_of(arms: list[Blocks]) -> Relation:
    """Write the arms of a set operation as a relation, to be asked for its columns."""
    return UnionAll(tuple(project(_free(arm[0]), tuple(arm[0].names[""].values())) for arm in arms))


def _collated(facts: Facts, block: Block, collations: tuple[str | None, ...]) -> Block:
    names, columns = tuple(block.names[""]), tuple(block.names[""].values())
    own = facts.collations_of(project(_free(block), columns))
    missing = (name if name != mine else None for name, mine in zip(collations, own, strict=True))
    return block.named({"": dict(zip(names, map(collated, columns, missing), strict=True))})


def _free(block: Block) -> Block:
    return replace(block, predicates=(), negated=False)
