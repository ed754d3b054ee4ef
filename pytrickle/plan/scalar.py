"""Scalar subqueries: an aggregate over the rows that belong to a row, or the one row that there may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.aggregation import group
from pytrickle.plan.block import Block, null_of
from pytrickle.plan.correlate import Match, loosen_all
from pytrickle.plan.lift import GROUP, GroupLift, function_name
from pytrickle.plan.scope import Ctes, Names, resolve
from pytrickle.plan.selection import VALUE, single

if TYPE_CHECKING:
    from pytrickle.plan.reader import Reader

Case = tuple[Block, exp.Expr]


def scalar_cases(reader: Reader, block: Block, query: exp.Expr, ctes: Ctes, scope: Names) -> list[Case]:
    """List the cases of a scalar subquery's value: where it has a row, and where it has none."""
    query, ctes = reader.unwrapped(query, ctes)
    if isinstance(query, exp.Select) and reader.is_plain_aggregate(query):
        return _aggregate(reader, block, query, ctes, scope)
    return _single(reader, block, query, ctes, scope)


def _aggregate(reader: Reader, block: Block, query: exp.Select, ctes: Ctes, scope: Names) -> list[Case]:
    if len(query.selects) != 1:
        raise NotDifferentiable("a comparison of a row with a subquery")
    inner = reader.blocks(query, ctes, scope)
    lift = GroupLift([], inner[0].names if inner else {}, reader.definition.aggregates, False)
    lifted = lift.lift(query.selects[0].unalias())
    if not inner:
        raise NotDifferentiable("a subquery over nothing")
    found, loose = group(reader, lift, inner, scope)
    value = resolve(lifted, found.names, scope)
    if not loose.pairs and not loose.guards:
        return [(block.joined(found), value)]
    types = reader.types_of_leaf(found)
    empty = {f"c{i}": _of_nothing(call, types[f"c{i}"]) for i, call in enumerate(lift.calls.values())}
    without = resolve(lifted, {GROUP: empty}, scope)
    return _with_or_without(block, found, value, without)


def _single(reader: Reader, block: Block, query: exp.Expr, ctes: Ctes, scope: Names) -> list[Case]:
    limit, order = query.args.get("limit"), query.args.get("order")
    first = None
    if limit is not None:
        if query.args.get("offset") or not isinstance(limit, exp.Limit) or limit.expression.name != "1":
            raise NotDifferentiable("a scalar subquery with LIMIT other than 1")
        first = list(order.expressions) if order else None
        if first is None:
            raise NotDifferentiable("a scalar subquery with LIMIT 1 but no ORDER BY")
        return _first(reader, block, query, (ctes, scope), first)
    inner = reader.derived(query, ctes, scope)
    if any(len(each.names[""]) != 1 for each in inner):
        raise NotDifferentiable("a comparison of a row with a subquery")
    return _joined(reader, block, inner, [next(iter(each.names[""].values())) for each in inner], None)


def _first(
    reader: Reader, block: Block, query: exp.Expr, where: tuple[Ctes, Names], first: list[exp.Expr]
) -> list[Case]:
    ctes, scope = where
    if not isinstance(query, exp.Select) or reader.is_grouped(query) or query.args.get("distinct"):
        raise NotDifferentiable("a scalar subquery with LIMIT over groups")
    if len(query.selects) != 1:
        raise NotDifferentiable("a comparison of a row with a subquery")
    inner = reader.blocks(query, ctes, scope)
    values = [resolve(query.selects[0].unalias(), each.names, scope) for each in inner]
    return _joined(reader, block, inner, values, first)


def _joined(
    reader: Reader, block: Block, inner: tuple[Block, ...], values: list[exp.Expr], first: list[exp.Expr] | None
) -> list[Case]:
    named = tuple(each.named({**each.names, VALUE: {"v": value}}) for each, value in zip(inner, values, strict=True))
    loose = loosen_all(reader, named)
    if loose is None:
        raise NotDifferentiable("a scalar subquery tied to the rows around it by more than equalities")
    found, value = single(reader, loose, first)
    types = reader.types_of_leaf(found)
    return _with_or_without(block, found, value, null_of(types["v"]))


def _with_or_without(block: Block, found: Block, value: exp.Expr, without: exp.Expr) -> list[Case]:
    (leaf,) = found.leaves
    match = Match(leaf, found.predicates)  # type: ignore[arg-type]
    matched = match.within(block)
    cases = [(matched, value)] if matched else []
    return cases + [(each, without) for each in match.outside(block)]


def _of_nothing(call: exp.Expr, type_name: str) -> exp.Expr:
    """Return what an aggregate gives over no rows."""
    while isinstance(call, exp.Filter | exp.WithinGroup):
        call = call.this
    if function_name(call) in {"count", "regr_count"}:
        return exp.Cast(this=exp.Literal.number(0), to=exp.Var(this=type_name))
    return null_of(type_name)
