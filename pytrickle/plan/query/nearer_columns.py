"""References of a subquery to rows further around, read from the rows right around it where both are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from pytrickle.plan.query.block import Block
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.mixed_equality import have_one_collation, types_among
from pytrickle.plan.query.scope import standing_for
from pytrickle.plan.sql.types import is_exact


def with_nearer_columns(facts: Facts, block: Block, context: Context) -> Context:
    """Have columns of the rows around a block stand for its own columns, which its conditions equate with them.

    In `FROM o WHERE o.uid = u.id AND o.at < (SELECT max(p.at) FROM p WHERE p.uid = u.id)` the subquery is then tied to
    o alone. For a row of the block both columns are one value if equal values of their type are the same.
    """
    found = dict(_equated(facts, block, context))
    return replace(context, outer=standing_for(context.outer, found)) if found else context


def _equated(facts: Facts, block: Block, context: Context) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """List columns of the rows around a block with the columns of the block that have the same values."""
    own, around = block.aliases, {leaf.alias for leaf in context.around}
    for predicate in block.predicates:
        if not isinstance(predicate, exp.EQ):
            continue
        left, right = predicate.this.unnest(), predicate.expression.unnest()
        for outer, inner in ((left, right), (right, left)):
            pair = (outer, inner)
            if not (_is_column(outer) and outer.table in around - own and _is_column(inner) and inner.table in own):
                continue
            leaves = (*context.around, *block.leaves)
            one, other = types_among(facts, leaves, pair)
            if one == other and is_exact(one, facts.definition) and have_one_collation(facts, leaves, pair):
                yield pair


def _is_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column)
