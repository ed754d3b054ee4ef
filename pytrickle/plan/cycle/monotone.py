"""Queries that only gain rows when what they read gains rows: those that may stand in a cycle."""

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.domain import Domain
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.constructs.set_operation import SetOperation
from pytrickle.plan.algebra.constructs.single import Single
from pytrickle.plan.algebra.constructs.window import Window
from pytrickle.plan.algebra.query import Query
from pytrickle.plan.algebra.relation import Derived, Join, Operation, Project, Relation, Scan, UnionAll, leaves, relids
from pytrickle.plan.analysis import Analysis
from pytrickle.plan.sql.types import is_exact

ARTICLES = {Group.label: "an aggregate", Window.label: "a window function", Single.label: "a scalar subquery"}

WANTING = (
    "rows kept for want of a match (NOT EXISTS, NOT IN, an outer join, or EXISTS or IN that is no condition of its own,"
    " as under OR)"
)


def obstacle(shape: Analysis, growing: frozenset[int]) -> str | None:
    """Say which part of a query may lose rows when some of its sources only gain rows, or None.

    A fixed point is the least one, and is reached from below, because every query of its cycle is monotone (Tarski, A
    Lattice-theoretical Fixpoint Theorem and its Applications, 1955). What cannot be told counts as an obstacle: a query
    without algebra, and duplicates removed where equal values may differ, as 1.0 and 1.00 do, so that one gives way.
    """
    query = shape.query
    if query is None:
        return shape.full_reason
    if growing.isdisjoint(relids(query.rows)):
        return None
    if query.top:
        return "LIMIT"
    return _above(shape, query) or _below(query.rows, growing)


def endless(queries: Mapping[int, Query]) -> tuple[int, ...]:
    """Return the relids of a way around a cycle on which nothing removes duplicates; empty if there is none.

    There a row that leads back to itself would come once more with every round.
    """
    graph = {relid: _with_duplicates(query) & queries.keys() for relid, query in queries.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return tuple(reversed(error.args[1]))
    return ()


def _above(shape: Analysis, query: Query) -> str | None:
    aggregate = query.aggregate
    if aggregate is None:
        return None
    types = dict(shape.grouped.types) if shape.grouped else {}
    if found := _inexact(types[key] for key in aggregate.keys if not is_exact(types[key], shape.definition)):
        return found
    if aggregate.calls or not aggregate.grouped:
        return ARTICLES[Group.label]
    return "a group key that is not shown" if set(aggregate.keys) - {key for key, _ in aggregate.shown_keys} else None


def _inexact(types: Iterable[str]) -> str | None:
    found = next(iter(types), None)
    return f"duplicates removed by a column of type {found}, whose equal values may differ" if found else None


def _below(node: Relation, growing: frozenset[int]) -> str | None:
    """Find what is taken away, or computed from all rows at once, where it depends on what grows.

    Rows are taken away where they have a match: what is matched is an operation. Whether a row of a growing source has
    a match among what does not grow is settled when it comes: R - R * M = R * (1 - M) gains rows with R.
    """
    if growing.isdisjoint(relids(node)):
        return None
    match node:
        case Join() if not growing.isdisjoint(_excluded(node)):
            return WANTING
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            found = [reason for reason in (_below(child, growing) for child in inputs) if reason]
            # What has no match for a subquery goes by the name of the subquery.
            return min(found, key=lambda reason: reason == WANTING, default=None)
        case Project(input=child):
            return _below(child, growing)
        case Derived(operation=operation):
            return _operation(operation) or _below(operation.input, growing)
        case _:
            return None


def _excluded(node: Join) -> frozenset[int]:
    operations = (leaf.operation for leaf in leaves(node) if isinstance(leaf, Derived) and leaf.excludes)
    return frozenset().union(*(relids(operation.input) for operation in operations))


def _operation(operation: Operation) -> str | None:
    if operation.linear:
        return None
    groups_alone = isinstance(operation.construct, Group) and operation.columns == operation.keys != ()
    if not (_is_monotone(operation.construct) or groups_alone):
        return ARTICLES.get(operation.name, operation.name.upper())
    return None if operation.exact else "duplicates removed by a column whose equal values may differ"


def _is_monotone(construct: Construct) -> bool:
    match construct:
        case Distinct() | Domain() | Exists() | SetOperation(operator="union" | "intersect"):
            return True
        case _:
            return False


def _removes_duplicates(construct: Construct) -> bool:
    match construct:
        case SetOperation(distinct=False):
            return False
        case _:
            return _is_monotone(construct) or isinstance(construct, Group)


def _with_duplicates(query: Query) -> frozenset[int]:
    """Return the sources whose rows reach the result each for itself."""
    return frozenset() if query.aggregate else _each_for_itself(query.rows)


def _each_for_itself(node: Relation) -> frozenset[int]:
    found: frozenset[int] = frozenset()
    for leaf in leaves(node):
        match leaf:
            case Scan(relid=relid):
                found |= {relid}
            case Derived(operation=operation) if not _removes_duplicates(operation.construct):
                found |= _each_for_itself(operation.input)
    return found
