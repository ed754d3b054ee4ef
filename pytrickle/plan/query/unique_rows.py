"""Blocks that have one row at most for each row around them, because a unique key is equated with what is known."""

from __future__ import annotations

from sqlglot import exp

from pytrickle.plan.algebra.relation import Scan
from pytrickle.plan.query.block import Block
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.scope import tables_of
from pytrickle.plan.sql.three_valued import is_quantified


def finds_one_row(facts: Facts, blocks: tuple[Block, ...], given: frozenset[tuple[str, str]] = frozenset()) -> bool:
    """Whether unique keys lead to every source of the only block there is, from its constants and the rows around.

    The values of the columns that are `given`, as (alias, column) pairs, are known, and none is NULL.
    """
    if len(blocks) != 1 or blocks[0].negated or not all(isinstance(leaf, Scan) for leaf in blocks[0].leaves):
        return False
    (block,) = blocks
    unknown = {leaf.alias: leaf for leaf in block.leaves if isinstance(leaf, Scan)}
    while unknown:
        found = [alias for alias, scan in unknown.items() if _is_found(facts, block, scan, frozenset(unknown), given)]
        if not found:
            return False
        for alias in found:
            del unknown[alias]
    return True


def _is_found(
    facts: Facts, block: Block, scan: Scan, unknown: frozenset[str], given: frozenset[tuple[str, str]]
) -> bool:
    """Whether the columns of a unique key are given, or equated with one value, not with an array, of what is known."""
    equated = {name for alias, name in given if alias == scan.alias}
    for predicate in block.predicates:
        if isinstance(predicate.unnest(), exp.EQ):
            node = predicate.unnest()
            for side, other in ((node.this, node.expression), (node.expression, node.this)):
                column = plain_column(side.unnest())
                known = not (tables_of(other) & unknown or other.find(exp.Query) or is_quantified(other.unnest()))
                if known and column is not None and column.table == scan.alias:
                    equated |= {column.name} if facts.compares_as_it_groups(column, block) else set()
    return any(key <= equated for key in facts.definition.source(scan.relid).keys)


def plain_column(side: exp.Expr) -> exp.Column | None:
    """Take a column out of the cast by which PostgreSQL compares a varchar: the texts are the same."""
    if isinstance(side, exp.Cast) and side.to.is_type(exp.DType.TEXT):
        side = side.this.unnest()
    return side if isinstance(side, exp.Column) else None
