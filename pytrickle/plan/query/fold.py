"""Sums of too many products: folded into one leaf, which is as linear as they are."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.constructs.folded import Folded
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import Derived, Function, Leaf
from pytrickle.plan.algebra.relation import leaves as leaves_of
from pytrickle.plan.query.block import Block, null_of, own_column
from pytrickle.plan.query.derive import derive
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.operation import Rows
from pytrickle.plan.query.scope import columns_named, tables_of
from pytrickle.plan.query.written_join import WrittenJoin

# Over 100,000 rows, 300 of them changed, a delta of four LEFT JOINs multiplied out to 81 blocks took 3.5 s, folded
# after two of them 0.6 s; five took 2.8 s folded, six 7 s, more than a whole refresh.
MAX_BLOCKS = 16
MOST_PRODUCTS = 256
Blocks = tuple[Block, ...]


def fitting(facts: Facts, blocks: Blocks) -> Blocks:
    """Return a sum of blocks as it is, or folded where it has so many that what follows would multiply them further.

    Raise NotDifferentiable where PostgreSQL would take too long to plan it.
    """
    if sum(_products(block.leaves) for block in blocks) > MOST_PRODUCTS:
        raise NotDifferentiable(f"joins and subqueries that multiply out to over {MOST_PRODUCTS} products")
    return folded(facts, blocks) if len(blocks) > MAX_BLOCKS else blocks


def folded(facts: Facts, blocks: Blocks, joined: WrittenJoin | None = None) -> Blocks:
    """Read blocks as one leaf with their weights: d(sum of blocks) = sum of d(block).

    Blocks that refer to rows around them are left as they are: no leaf can be separated from those. They may stand for
    tables that are `joined`.
    """
    if not all(map(_is_closed, blocks)):
        return blocks
    visible = columns_named(blocks[0].names)
    names = tuple(f"a{i}" for i in range(len(visible)))
    rows: Rows = tuple(
        (block, tuple(_typed(block.names[alias][column]) for alias, column in visible)) for block in blocks
    )
    written = joined.rows(visible, names) if joined else None
    leaf = derive(facts, rows, names, (), Folded(written=written))
    shown: dict[str, dict[str, exp.Expr]] = {alias: {} for alias in blocks[0].names}
    for name, (alias, column) in zip(names, visible, strict=True):
        shown[alias][column] = own_column(leaf.alias, name)
    return (replace(blocks[0], leaves=(leaf,), predicates=(), names=shown, negated=False),)


def _products(leaves: tuple[Leaf, ...]) -> int:
    """Count the products that a block stands for once its folded leaves are multiplied out, if they have to be."""
    linear = (leaf.operation for leaf in leaves if isinstance(leaf, Derived) and leaf.operation.linear)
    found = [each for each in linear if not (isinstance(each.construct, Folded) and each.construct.written)]
    return prod(sum(_products(leaves_of(block)) for block in blocks_of(operation.input)) for operation in found)


def _is_closed(block: Block) -> bool:
    functions = [leaf.tables for leaf in block.leaves if isinstance(leaf, Function)]
    columns = [column for names in block.names.values() for column in names.values()]
    reads = frozenset[str]().union(*functions, *map(tables_of, (*columns, *block.predicates)))
    return reads <= block.aliases


def _typed(column: exp.Expr) -> exp.Expr:
    """Give an unknown truth value its type: PostgreSQL would take it for text."""
    return null_of("boolean") if isinstance(column, exp.Null) else column
