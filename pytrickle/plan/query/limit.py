"""LIMIT and OFFSET below the top of a query: the first rows, where they are the same whenever they are chosen."""

from __future__ import annotations

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.query.block import Block, aliased
from pytrickle.plan.query.context import Context
from pytrickle.plan.query.decorrelate import columns_around, decorrelate_by_domain
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.first_rows import CLAUSES
from pytrickle.plan.query.guard import any_fails
from pytrickle.plan.query.recursion import Recursion
from pytrickle.plan.query.scope import tables_of
from pytrickle.plan.query.select_clauses import refuse_limited_sets
from pytrickle.plan.query.set_operation import Bounds, first_rows
from pytrickle.plan.query.unique_rows import finds_one_row
from pytrickle.plan.sql.dialect import render

Blocks = tuple[Block, ...]
Orders = list[exp.Expr]


def limited(recursion: Recursion, query: exp.Expr, context: Context) -> Blocks:
    """Read a query with LIMIT, OFFSET or FETCH below the top."""
    bounds, bare = Bounds.of(query), _without(query, *CLAUSES)
    if bounds.limit is None and not bounds.offset:
        return recursion.derived(bare, context)
    refuse_limited_sets(query, recursion.facts.definition)
    order = query.args.get("order")
    if order is None:
        return _alike(recursion.facts, recursion.derived(bare, context), context, bounds)
    orders = [each.copy() for each in order.expressions]
    sorts_hidden = isinstance(query, exp.Select) and not query.args.get("distinct")
    blocks = (
        _with_hidden(recursion, bare, orders, context) if sorts_hidden else _shown(recursion, bare, orders, context)
    )
    items = list(blocks[0].names[""].items())
    rows = tuple((block, tuple(block.names[""].values())) for block in blocks)
    fails, computed = any_fails(recursion.facts, rows), columns_around(rows)
    decorrelated = decorrelate_by_domain(recursion.facts, context.block, blocks, "LIMIT", fails, computed)
    total = finds_one_row(recursion.facts, blocks, _sorting_columns(recursion.facts, blocks[0], len(orders)))
    return (first_rows(recursion.facts, decorrelated, items, orders, bounds, total),)


def _sorting_columns(facts: Facts, block: Block, orders: int) -> frozenset[tuple[str, str]]:
    """Return the columns of sources, never NULL, among what a block shows first, which sorts it."""
    shown = (each.unnest() for each in list(block.names[""].values())[:orders])
    columns = (each for each in shown if isinstance(each, exp.Column) and facts.never_null(each, block))
    return frozenset((each.table, each.name) for each in columns)


def _without(query: exp.Expr, *clauses: str) -> exp.Expr:
    result = query.copy()
    for clause in clauses:
        result.set(clause, None)
    return result


def _with_hidden(recursion: Recursion, query: exp.Expr, orders: Orders, context: Context) -> Blocks:
    """Have a SELECT show what it sorts by, before its own columns."""
    result = _without(query, "order")
    added = [aliased(each.this, f"\x00order{i}") for i, each in enumerate(orders)]
    result.set("expressions", [*added, *result.expressions])
    return recursion.derived(result, context)


def _shown(recursion: Recursion, query: exp.Expr, orders: Orders, context: Context) -> Blocks:
    """DISTINCT and set operations sort by what they show."""
    chooses = isinstance(query, exp.Select) and query.args["distinct"].args.get("on")
    blocks = recursion.derived(query if chooses else _without(query, "order"), context)
    names = list(blocks[0].names[""])
    found = [names[_position(each.this, query, names)] for each in orders]
    return tuple(
        block.named({"": {**{f"\x00order{i}": columns[name] for i, name in enumerate(found)}, **columns}})
        for block in blocks
        for columns in [block.names[""]]
    )


def _position(wanted: exp.Expr, query: exp.Expr, names: list[str]) -> int:
    bare = wanted.unnest()
    shown = [item.unalias().unnest() for item in query.selects] if isinstance(query, exp.Select) else []
    if isinstance(bare, exp.Literal) and bare.is_int:
        return int(bare.name) - 1
    if bare in shown:
        return shown.index(bare)
    if not shown and isinstance(bare, exp.Column) and not bare.table and bare.name in names:
        return names.index(bare.name)
    raise NotDifferentiable("LIMIT below the top of the query, with DISTINCT and ORDER BY what it does not show")


def _alike(facts: Facts, blocks: Blocks, context: Context, bounds: Bounds) -> Blocks:
    """Without an order any rows may be kept, which does not matter where all of them are the same."""
    names = blocks[0].names[""]
    texts = {tuple(render(column) for column in block.names[""].values()) for block in blocks}
    own = frozenset[str]().union(*(block.aliases for block in blocks))
    if len(texts) > 1 or any(tables_of(column) & own for column in names.values()):
        raise NotDifferentiable("LIMIT below the top of the query, without ORDER BY")
    bare = tuple(block.named({"": {"one": exp.Literal.number(1)}}) for block in blocks)
    decorrelated = decorrelate_by_domain(facts, context.block, bare, "LIMIT")
    kept = first_rows(facts, decorrelated, list(bare[0].names[""].items()), [], bounds)
    return (kept.named({"": names}),)
