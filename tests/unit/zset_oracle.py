"""A naive oracle for the delta rules: Z-sets as Counters, relations and operations interpreted over them."""

import re
from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import Any

from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.exists import Exists
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.constructs.set_operation import SetOperation
from pytrickle.plan.algebra.delta import at, differentiate
from pytrickle.plan.algebra.relation import (
    Derived,
    Expr,
    Join,
    Operation,
    Predicate,
    Project,
    Relation,
    Scan,
    UnionAll,
    Version,
)

COLUMNS = ("k", "v")
SOURCES = (1, 2, 3)
Row = tuple[tuple[tuple[str, str], Any], ...]
ZSet = Counter[Row]
Bag = Counter[tuple[Any, ...]]


class State:
    """One source: what the snapshot shows, and what neither frontier, or only the new one, covers."""

    def __init__(self, current: Bag, delta: Bag, future: Bag) -> None:
        past = add(delta, future)
        self.versions: dict[Version, Bag] = {
            Version.CURRENT: net(current),
            Version.DELTA: net(delta),
            Version.FUTURE: net(future),
            Version.PAST: past,
            Version.OLD: add(current, minus(past)),
            Version.NEW: add(current, minus(future)),
        }


def evaluate(node: Relation, database: dict[int, State]) -> ZSet:
    """Interpret a relation; a row is its columns, named (alias, column), in order."""
    match node:
        case Scan(alias=alias, relid=relid, version=version, negated=negated):
            bag = database[relid].versions[version]
            named = {
                tuple(((alias, name), value) for name, value in zip(COLUMNS, row, strict=True)): row for row in bag
            }
            return Counter({key: -bag[row] if negated else bag[row] for key, row in named.items()})
        case Derived(negated=negated):
            bag = _derived_rows(node, database)
            return minus(bag) if negated else bag
        case UnionAll(inputs=inputs):
            return add(*(evaluate(child, database) for child in inputs))
        case Join(inputs=inputs, predicates=predicates, negated=negated):
            product = reduce(_times, (evaluate(child, database) for child in inputs))
            kept: ZSet = Counter({row: weight for row, weight in product.items() if _holds(dict(row), predicates)})
            return net(minus(kept) if negated else kept)
        case Project(input=child, columns=columns):
            result: ZSet = Counter()
            for row, weight in evaluate(child, database).items():
                known = dict(row)
                result[tuple((("", name), _value(expr, known)) for name, expr in columns)] += weight
            return net(result)


def _times(left: ZSet, right: ZSet) -> ZSet:
    return Counter({one + other: x * y for one, x in left.items() for other, y in right.items()})


def _holds(row: dict[tuple[str, str], Any], predicates: tuple[Predicate, ...]) -> bool:
    """NULL equals nothing, itself included."""
    pairs = [(row[p.equality.left], row[p.equality.right]) for p in predicates if p.equality]
    return all(left is not None and left == right for left, right in pairs)


def _value(expr: Expr, row: dict[tuple[str, str], Any]) -> Any:
    if not expr.tables:
        return int(expr.sql)
    alias, column = re.findall(r'"(\w+)"', expr.sql)
    return row[alias, column]


def _derived_rows(node: Derived, database: dict[int, State]) -> ZSet:
    """The state of an operation, or its delta by the keyed rule: op(NEW|K) - op(OLD|K) with OLD = NEW - DELTA."""
    operation = node.operation
    if node.version is not Version.DELTA:
        return _under(node.alias, _apply(operation, bag_of(at(operation.input, node.version), database)))
    changed = moved_sources(database, Version.DELTA)
    delta = add(*(bag_of(term, database) for term in differentiate(operation.input, changed)))
    touched = {_key(operation, row) for row in delta}
    new = bag_of(at(operation.input, Version.NEW), database)
    now: Bag = Counter({row: weight for row, weight in new.items() if _key(operation, row) in touched})
    before = add(now, minus(delta))
    return _under(node.alias, add(_apply(operation, now), minus(_apply(operation, before))))


def bag_of(node: Relation, database: dict[int, State]) -> Bag:
    return Counter({tuple(value for _, value in row): n for row, n in evaluate(node, database).items()})


def _under(alias: str, bag: Bag) -> ZSet:
    named = {row: tuple(((alias, name), value) for name, value in zip(COLUMNS, row, strict=True)) for row in bag}
    return Counter({named[row]: n for row, n in bag.items()})


def _key(operation: Operation, row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(row[operation.arguments.index(key)] for key in operation.keys)


def _apply(operation: Operation, rows: Bag) -> Bag:
    """Apply an operation to each partition that has rows; without keys there is always one."""
    groups: dict[tuple[Any, ...], Bag] = {} if operation.keys else {(): Counter()}
    for row, weight in rows.items():
        groups.setdefault(_key(operation, row), Counter())[row] += weight
    function = OPERATIONS[operation.construct][1]
    return add(*(function(key, group) for key, group in groups.items()))


def _totals(group: Bag) -> tuple[int, int]:
    """Count the rows and sum their values."""
    present = net(group)
    return sum(present.values()), sum(n * (row[1] or 0) for row, n in present.items())


def _sides(group: Bag) -> tuple[int, int]:
    counts = [sum(n for row, n in group.items() if row[2] == side) for side in (0, 1)]
    return counts[0], counts[1]


def _is_left_alone(group: Bag) -> bool:
    left, right = _sides(group)
    return left > 0 >= right


def _times_of(row: tuple[Any, ...], n: int) -> Bag:
    return Counter({row: n} if n > 0 else {})


# What each operation is keyed by, and its rows for one partition.
OPERATIONS: dict[Construct, tuple[tuple[str, ...], Callable[[tuple[Any, ...], Bag], Bag]]] = {
    Distinct(): (COLUMNS, lambda key, group: _times_of(key, int(sum(group.values()) > 0))),
    Group(("count(*)",)): (("k",), lambda key, group: _times_of((*key, _totals(group)[0]), int(bool(net(group))))),
    Group(("sum(d.v)",)): (("k",), lambda key, group: _times_of((*key, _totals(group)[1]), int(bool(net(group))))),
    Group(("count(*)", "sum(d.v)")): ((), lambda _, group: _times_of(_totals(group), 1)),
    Exists(): ((), lambda _, group: _times_of((1, 1), int(sum(group.values()) > 0))),
    SetOperation("intersect", True): (COLUMNS, lambda key, group: _times_of(key, int(min(_sides(group)) > 0))),
    SetOperation("intersect", False): (COLUMNS, lambda key, group: _times_of(key, min(_sides(group)))),
    SetOperation("except", True): (
        COLUMNS,
        lambda key, group: _times_of(key, int(_sides(group)[0] > 0 >= _sides(group)[1])),
    ),
    SetOperation("except", False): (COLUMNS, lambda key, group: _times_of(key, _sides(group)[0] - _sides(group)[1])),
}


def add(*bags: Counter[Any]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for bag in bags:
        for row, weight in bag.items():
            total[row] += weight
    return net(total)


def net(bag: Counter[Any]) -> Counter[Any]:
    return Counter({row: weight for row, weight in bag.items() if weight})


def minus(bag: Counter[Any]) -> Counter[Any]:
    return Counter({row: -weight for row, weight in bag.items()})


def moved_sources(database: dict[int, State], *versions: Version) -> frozenset[int]:
    return frozenset(relid for relid, state in database.items() if any(state.versions[version] for version in versions))
