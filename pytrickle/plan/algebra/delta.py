"""Delta rules: how the change of a relation follows from the changes of its sources."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import product
from math import prod

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.relation import (
    Derived,
    Function,
    Join,
    Operation,
    Project,
    Relation,
    Scan,
    UnionAll,
    Version,
    relids,
)

MAX_PARTS = 64
Kept = Collection[Operation]
# Tells which leaves of a join are read at the old state as they are.
Folding = Callable[[Join], Collection[str]]


def no_folding(join: Join) -> Collection[str]:
    """Multiply everything out."""
    return ()


def at(node: Relation, version: Version) -> Relation:
    """Read every leaf of a relation at one version."""
    match node:
        case Scan() | Derived():
            return replace(node, version=version)
        case Function():
            return node
        case Join(inputs=inputs):
            return replace(node, inputs=tuple(at(child, version) for child in inputs))
        case UnionAll(inputs=inputs):
            return UnionAll(tuple(at(child, version) for child in inputs))
        case Project(input=child):
            return replace(node, input=at(child, version))


def arrange(node: Relation, ranges: Mapping[int, ChangeRange]) -> Relation:
    """Order the leaves of joins by their changes, fewest first, and operations before all, as differentiate goes.

    A term of the delta takes the changes of every leaf before its own back, so many changes are best never taken back.
    About as many are in the query's own order: so the next refresh, with about as many, has the same plan.

    >>> join = Join((Scan("l", 1, ()), Scan("r", 2, ())))
    >>> ranges = {1: ChangeRange(1, None, None, 9), 2: ChangeRange(2, None, None, 3)}
    >>> [leaf.alias for leaf in arrange(join, ranges).inputs]
    ['r', 'l']
    """
    match node:
        case UnionAll(inputs=inputs):
            return UnionAll(tuple(arrange(child, ranges) for child in inputs))
        case Project(input=child):
            return replace(node, input=arrange(child, ranges))
        case Join(inputs=inputs):
            return replace(node, inputs=tuple(sorted(inputs, key=lambda each: _changes(each, ranges))))
        case _:
            return node


def _changes(node: Relation, ranges: Mapping[int, ChangeRange]) -> int:
    return ranges[node.relid].past_class if isinstance(node, Scan) and node.relid in ranges else -1


def differentiate(node: Relation, changed: frozenset[int]) -> tuple[Relation, ...]:
    """d(R1 * ... * Rn) = sum over i of R1@OLD * ... * dRi * ... * Rn@NEW; linear operators apply to each term.

    Return the terms of the delta as ordinary relations; a term whose source has no change is dropped. The identity is
    the telescoping form of d(L * R) = dL * R' + L * dR (checked by brute force in tests/unit/test_plan_delta.py).

    >>> left, right = Scan("l", 1, ("k",)), Scan("r", 2, ("k",))
    >>> [[leaf.version.value for leaf in term.inputs] for term in differentiate(Join((left, right)), frozenset({1, 2}))]
    [['delta', 'new'], ['old', 'delta']]
    >>> differentiate(Join((left, right)), frozenset())
    ()
    """
    match node:
        case Scan(relid=relid):
            return (replace(node, version=Version.DELTA),) if relid in changed else ()
        case Derived(operation=operation):
            return (replace(node, version=Version.DELTA),) if relids(operation.input) & changed else ()
        case Function():
            return ()
        case UnionAll(inputs=inputs):
            return tuple(term for child in inputs for term in differentiate(child, changed))
        case Project(input=child):
            return tuple(replace(node, input=term) for term in differentiate(child, changed))
        case Join(inputs=inputs):
            return tuple(
                replace(node, inputs=(*before, term, *after))
                for i, child in enumerate(inputs)
                for term in differentiate(child, changed)
                for before in [tuple(at(other, Version.OLD) for other in inputs[:i])]
                for after in [tuple(at(other, Version.NEW) for other in inputs[i + 1 :])]
            )


def unfold(
    node: Relation,
    past: frozenset[int],
    future: frozenset[int],
    kept: Kept = frozenset(),
    fold: Folding = no_folding,
) -> tuple[Relation, ...]:
    """OLD = CURRENT - PAST and NEW = CURRENT - FUTURE, multiplied out over joins.

    `past` and `future` name the sources that have changes beyond the old and the new frontier; for the others the
    correction is empty and dropped. Multiplied out, each part joins plain tables (which have indexes) or buffered
    changes (which are few), never a union of both, through which PostgreSQL finds no index. But sources that `fold`
    names are read at the old state as they are. Of operations that are `kept` the old state is stored: OLD is read as
    it is, and NEW = OLD + DELTA.

    >>> old = Scan("l", 1, (), Version.OLD)
    >>> [(leaf.version.value, leaf.negated) for leaf in unfold(old, frozenset({1}), frozenset())]
    [('current', False), ('past', True)]
    """
    match node:
        case Scan():
            return _unfold_scan(node, past, future)
        case Derived():
            return _unfold_kept(node, past) if node.operation in kept else _unfold_derived(node, past)
        case Function():
            return (node,)
        case UnionAll(inputs=inputs):
            return tuple(part for child in inputs for part in unfold(child, past, future, kept, fold))
        case Project(input=child):
            return tuple(replace(node, input=part) for part in unfold(child, past, future, kept, fold))
        case Join(inputs=inputs):
            folded = fold(node)
            unfolded = (
                (child,) if _is_among(child, folded) else unfold(child, past, future, kept, fold) for child in inputs
            )
            return tuple(replace(node, inputs=parts) for parts in product(*unfolded))


def unfold_all(
    nodes: tuple[Relation, ...],
    ranges: Mapping[int, ChangeRange],
    kept: Kept = frozenset(),
    most: int = MAX_PARTS,
    fold: Folding = no_folding,
) -> tuple[Relation, ...]:
    """Unfold relations over what the old and the new frontier leave out, each unless that makes too many parts."""
    past = frozenset(relid for relid, change_range in ranges.items() if change_range.past_rows)
    future = frozenset(relid for relid, change_range in ranges.items() if change_range.future_rows)
    result: list[Relation] = []
    for node in nodes:
        parts = unfold(node, past, future, kept, fold)
        result += parts if len(parts) <= most else [_current_where_possible(node, past, future)]
    return tuple(result)


def least_parts(node: Relation, ranges: Mapping[int, ChangeRange], fold: Folding = no_folding) -> int:
    """Count the parts that `unfold_all` makes of a relation, without making them; one where they would be too many.

    >>> join = Join((Scan("l", 1, (), Version.OLD), Scan("r", 2, (), Version.OLD), Scan("s", 1, (), Version.NEW)))
    >>> least_parts(join, {1: ChangeRange(1, None, None, 9), 2: ChangeRange(2, None, None)})
    2
    """
    found = _least(node, ranges, fold)
    return found if found <= MAX_PARTS else 1


def _least(node: Relation, ranges: Mapping[int, ChangeRange], fold: Folding) -> int:
    match node:
        case Scan(version=Version.OLD, relid=relid):
            return 2 if ranges[relid].past_rows else 1
        case Scan(version=Version.NEW, relid=relid):
            return 2 if ranges[relid].future_rows else 1
        case Derived(version=Version.OLD, operation=operation):
            return 2 if any(ranges[relid].past_rows for relid in relids(operation.input)) else 1
        case Join(inputs=inputs):
            folded = fold(node)
            return prod(_least(child, ranges, fold) for child in inputs if not _is_among(child, folded))
        case UnionAll(inputs=inputs):
            return sum(_least(child, ranges, fold) for child in inputs)
        case Project(input=child):
            return _least(child, ranges, fold)
        case _:
            return 1


def _is_among(node: Relation, folded: Collection[str]) -> bool:
    return isinstance(node, Scan) and node.alias in folded


def blocks_of(node: Relation) -> tuple[Project, ...]:
    """List the blocks of a relation in sum-of-products form."""
    match node:
        case UnionAll(inputs=inputs):
            return tuple(block for child in inputs for block in blocks_of(child))
        case Project():
            return (node,)
        case _:
            raise TypeError(f"a {type(node).__name__} is not a sum of products")


def _unfold_scan(node: Scan, past: frozenset[int], future: frozenset[int]) -> tuple[Scan, ...]:
    current = replace(node, version=Version.CURRENT)
    match node.version:
        case Version.OLD:
            correction, pending = Version.PAST, node.relid in past
        case Version.NEW:
            correction, pending = Version.FUTURE, node.relid in future
        case _:
            return (node,)
    return (current, replace(node, version=correction, negated=True)) if pending else (current,)


def _unfold_derived(node: Derived, past: frozenset[int]) -> tuple[Derived, ...]:
    """The new state of a derived relation is computed as it is; its old one is OLD = NEW - DELTA."""
    if node.version is not Version.OLD:
        return (node,)
    new = replace(node, version=Version.NEW)
    if not relids(node.operation.input) & past:
        return (new,)
    return (new, replace(node, version=Version.DELTA, negated=not node.negated))


def _unfold_kept(node: Derived, past: frozenset[int]) -> tuple[Derived, ...]:
    """The old state of a kept operation is stored; the new one is NEW = OLD + DELTA."""
    if node.version is not Version.NEW:
        return (node,)
    old = replace(node, version=Version.OLD)
    return (old, replace(node, version=Version.DELTA)) if relids(node.operation.input) & past else (old,)


def _current_where_possible(node: Relation, past: frozenset[int], future: frozenset[int]) -> Relation:
    match node:
        case Scan(relid=relid, version=version):
            needed = past if version is Version.OLD else future if version is Version.NEW else frozenset({relid})
            return node if relid in needed else at(node, Version.CURRENT)
        case Project(input=child):
            return replace(node, input=_current_where_possible(child, past, future))
        case Join(inputs=inputs):
            return replace(node, inputs=tuple(_current_where_possible(each, past, future) for each in inputs))
        case UnionAll(inputs=inputs):
            return UnionAll(tuple(_current_where_possible(each, past, future) for each in inputs))
        case _:
            return node
