"""Which aggregates and window functions show one of several equal values, and which may tell such values apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import compress

from sqlglot import exp

from pytrickle.errors import NotDifferentiable
from pytrickle.plan.algebra.construct import ROW
from pytrickle.plan.algebra.query import Call
from pytrickle.plan.algebra.relation import Derived
from pytrickle.plan.query.calls import function_name
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.operation import Rows
from pytrickle.plan.query.representatives import Representatives, differing, is_representative, representative_columns
from pytrickle.plan.sql.aggregates import Shows, showing

# The others are window functions.
CHOOSING = showing(Shows.CHOSEN)
PASSING = showing(Shows.PASSED, Shows.CHOSEN) | {"lag", "lead", "first_value", "last_value", "nth_value"}
COUNTING = showing(Shows.COUNTED) | {"row_number", "ntile"}
MODIFIERS = (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)


def mark_representatives(facts: Facts, leaf: Derived, rows: Rows, calls: Mapping[str, exp.Expr]) -> Derived:
    """Tell an operation which of its calls, columns over its arguments, show one of several equal values."""
    operation = leaf.operation
    sorts = dict(zip(operation.arguments, differing(facts, operation.input), strict=True))
    ambiguous = {name: sort for name, sort in sorts.items() if sort}
    representatives = {
        (ROW, name): sorts[name]
        for name in compress(operation.arguments, representative_columns(rows))
        if name in ambiguous
    }
    found = frozenset(name for name, call in calls.items() if shows_one(call, representatives, ambiguous))
    if not found:
        return leaf
    results = zip(operation.columns, differing(facts, operation), strict=True)
    shown = frozenset(each for each in results if each[0] in found and each[1])
    return replace(leaf, operation=replace(operation, representatives=operation.representatives | shown))


def shows_one(call: exp.Expr, representatives: Representatives, ambiguous: Mapping[str, str]) -> bool:
    """Whether a call shows one of several equal values; of the arguments `ambiguous`, equal values may look different.

    Raise NotDifferentiable where it may tell apart equal values of which one was kept.
    """
    values, others = _parts(call)
    for other in others:
        is_representative(other, representatives)
    name = function_name(_bare(call))
    flags = [is_representative(value, representatives) for value in values]
    passes = any(flags)
    chooses = any(column.name in ambiguous for value in values for column in value.find_all(exp.Column))
    distinct = _bare(call).find(exp.Distinct) is not None
    if (passes or (chooses and distinct)) and name not in PASSING | COUNTING:
        _refuse(name, distinct and not passes)
    return name not in COUNTING and (passes or (chooses and (distinct or name in CHOOSING)))


def representatives_at_top(
    calls: Iterable[Call], arguments: Representatives, ambiguous: Mapping[str, str]
) -> dict[str, str]:
    """Find the calls at the top of a query that show one of several equal values, with the types of these."""
    representatives = {name: type_name for (_, name), type_name in arguments.items()}
    found: dict[str, str] = {}
    for call in calls:
        if call.argument in representatives and call.function == "avg":
            _refuse(call.function, False)
        # Sums, and so averages, are made of all values.
        kinds = representatives if call.function in ("sum", "avg") else {**representatives, **ambiguous}
        if call.argument in kinds and call.function != "count":
            found[call.name] = kinds[str(call.argument)]
    return found


def _refuse(name: str, distinct: bool) -> None:
    what = "equal values, of which DISTINCT keeps one" if distinct else "one of several equal values"
    raise NotDifferentiable(f"{name}() over {what}, which may look different")


def _parts(call: exp.Expr) -> tuple[list[exp.Expr], list[exp.Expr]]:
    """Split a call into what it is computed of, and what chooses and sorts that."""
    values: list[exp.Expr] = []
    others: list[exp.Expr] = []
    node = call
    while isinstance(node, (exp.Window, *MODIFIERS, exp.WithinGroup)):
        outside = [child for child in node.iter_expressions() if child is not node.this]
        (values if isinstance(node, exp.WithinGroup) else others).extend(outside)
        node = node.this
    values += list(node.iter_expressions())
    sorts = [order for value in values for order in value.find_all(exp.Ordered)]
    return [inner for value in values for inner in _unsorted(value)], [*others, *sorts]


def _unsorted(value: exp.Expr) -> list[exp.Expr]:
    """Return what a call's argument is without its ORDER BY and DISTINCT."""
    match value:
        case exp.Order(this=None):
            return [each.this for each in value.expressions]
        case exp.Order():
            return _unsorted(value.this)
        case exp.Distinct():
            return list(value.expressions)
        case _:
            return [value]


def _bare(call: exp.Expr) -> exp.Expr:
    while isinstance(call, (exp.Window, exp.WithinGroup, *MODIFIERS)):
        call = call.this
    return call
