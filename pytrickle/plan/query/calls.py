"""Aggregate calls: what is one, and whether its result depends on the order in which it takes its rows."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.sql.aggregates import ordered, unordered
from pytrickle.plan.sql.rounding import refuse_rounding

WRAPPERS = exp.Filter | exp.WithinGroup
UNORDERED, ORDERED = unordered(), ordered()
CALL_AROUND = "an aggregate of the query around it"


def is_call(node: exp.Expr, aggregates: frozenset[str]) -> bool:
    """Whether a node is an aggregate call with all that belongs to it."""
    if isinstance(node, WRAPPERS):
        return is_call(node.this, aggregates)
    if isinstance(node, exp.AggFunc):
        return True
    # With a schema it is no function of PostgreSQL's own, whatever its name.
    return isinstance(node, exp.Anonymous) and function_name(node) in aggregates and not _has_schema(node)


def bare_call(call: exp.Expr) -> exp.Expr:
    """Return a call without FILTER and WITHIN GROUP."""
    while isinstance(call, WRAPPERS):
        call = call.this
    return call


def function_name(node: exp.Expr) -> str:
    """Return the name of a called function, in small letters unless it is quoted."""
    if not isinstance(node, exp.Anonymous):
        return node.key.lower()
    name = str(node.this)
    return name if '"' in name else name.lower()


def is_own(name: str) -> bool:
    """Whether an aggregate is a user's own: its name has a schema, and what it depends on is not known."""
    return "." in name


def refuse_open_order(node: exp.Expr) -> None:
    """Refuse a call that depends on an order of rows which it does not say, and one of which nothing is known."""
    call = bare_call(node)
    name = function_name(call)
    settled = any(isinstance(inner, exp.Order | exp.Distinct) for inner in call.walk())
    if is_own(name):
        settled |= call is not node and isinstance(node.this if isinstance(node, exp.Filter) else node, exp.WithinGroup)
    if (name in ORDERED or is_own(name)) and not settled:
        raise NotDifferentiable(f"{name}() without ORDER BY, whose result depends on the order of rows")
    if name not in UNORDERED | ORDERED and not is_own(name):
        raise NotDifferentiable(f"the aggregate {name}()")


def refuse_rounding_calls(calls: Iterable[exp.Expr], types: tuple[str, ...]) -> None:
    """Refuse calls with results of some types that depend on the order in which rows are added up."""
    for call, type_name in zip(calls, types, strict=True):
        refuse_rounding(function_name(bare_call(call)), type_name)


def _has_schema(node: exp.Expr) -> bool:
    return isinstance(node.parent, exp.Dot) and node.parent.expression is node
