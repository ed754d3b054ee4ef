"""The delta rules against a naive oracle: Z-sets as Counters, relations interpreted over them."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytrickle.plan.algebra import (
    Derived,
    Equality,
    Expr,
    Join,
    Leaf,
    Operation,
    Predicate,
    Project,
    Relation,
    Scan,
    UnionAll,
    Version,
    leaves,
    relids,
)
from pytrickle.plan.delta import at, differentiate, unfold

COLUMNS = ("k", "v")
SOURCES = (1, 2, 3)
Row = tuple[tuple[tuple[str, str], Any], ...]
ZSet = Counter[Row]
Bag = Counter[tuple[Any, ...]]

values = st.sampled_from([None, None, 0, 1, 2])
rows = st.tuples(values, values)
bags = st.dictionaries(rows, st.integers(1, 3), max_size=4).map(Counter)
changes = st.dictionaries(rows, st.integers(-2, 2), max_size=3).map(Counter)


class State:
    """One source: what the snapshot shows, and what neither frontier, or only the new one, covers."""

    def __init__(self, current: Bag, delta: Bag, future: Bag) -> None:
        past = _sum(delta, future)
        self.versions: dict[Version, Bag] = {
            Version.CURRENT: _net(current),
            Version.DELTA: _net(delta),
            Version.FUTURE: _net(future),
            Version.PAST: past,
            Version.OLD: _sum(current, _negated(past)),
            Version.NEW: _sum(current, _negated(future)),
        }


states = st.builds(State, bags, changes, changes)
unchanged = st.builds(State, bags, st.just(Counter()), st.just(Counter()))
databases = st.fixed_dictionaries({relid: st.one_of(states, states, unchanged) for relid in SOURCES})


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    """Draw a union of joins of up to three leaves, self-joins included, some of them negated.

    Some inputs are joins or unions themselves, others operations over such a relation.
    """
    return UnionAll(tuple(_project(draw, number) for number in range(draw(st.integers(1, 2)))))


def _project(draw: st.DrawFn, number: int) -> Project:
    inputs = tuple(_input(draw, f"t{number}{i}") for i in range(draw(st.sampled_from([1, 1, 2, 2, 3]))))
    aliases = tuple(dict.fromkeys(leaf.alias for child in inputs for leaf in leaves(child)))
    columns = tuple((f"r{i}", _column(draw, aliases)) for i in range(2))
    return Project(Join(inputs, _predicates(draw, aliases), draw(st.booleans())), columns)


def _derived(draw: st.DrawFn, alias: str) -> Derived:
    """Draw an operation over one or two joins, which may contain operations themselves; its columns are COLUMNS."""
    return Derived(alias, _operation(draw, alias, draw(st.sampled_from(sorted(OPERATIONS)))))


def _operation(draw: st.DrawFn, alias: str, name: str) -> Operation:
    blocks = []
    for side in range(draw(st.integers(1, 2))):
        inputs = tuple(_below(draw, f"{alias}{side}{i}") for i in range(draw(st.integers(1, 2))))
        aliases = tuple(leaf.alias for leaf in inputs)
        join = Join(inputs, _predicates(draw, aliases), draw(st.sampled_from([False, False, True])))
        columns = (("k", _column(draw, aliases)), ("v", _column(draw, aliases)), ("side", Expr(str(side), frozenset())))
        blocks.append(Project(join, columns))
    keys = OPERATIONS[name][0]
    return Operation(name, UnionAll(tuple(blocks)), (*COLUMNS, "side"), keys, "", "", COLUMNS)


def _below(draw: st.DrawFn, alias: str) -> Leaf:
    if len(alias) < 5 and draw(st.sampled_from([False, False, True])):
        return _derived(draw, alias)
    return Scan(alias, draw(st.sampled_from(SOURCES)), COLUMNS)


def _input(draw: st.DrawFn, alias: str) -> Relation:
    scan = Scan(alias, draw(st.sampled_from(SOURCES)), COLUMNS)
    match draw(st.sampled_from(["scan", "scan", "scan", "join", "union", "derived", "derived"])):
        case "derived":
            return _derived(draw, alias)
        case "join":
            other = Scan(f"{alias}x", draw(st.sampled_from(SOURCES)), COLUMNS)
            return Join((scan, other), _predicates(draw, (alias, other.alias)))
        case "union":
            return UnionAll((scan, replace(scan, relid=draw(st.sampled_from(SOURCES)))))
        case _:
            return scan


def _column(draw: st.DrawFn, aliases: tuple[str, ...]) -> Expr:
    alias = draw(st.sampled_from(aliases))
    return Expr(f'"{alias}"."{draw(st.sampled_from(COLUMNS))}"', frozenset({alias}))


def _predicates(draw: st.DrawFn, aliases: tuple[str, ...]) -> tuple[Predicate, ...]:
    pairs = draw(st.lists(st.tuples(st.sampled_from(aliases), st.sampled_from(aliases)), max_size=3))
    return tuple(
        Predicate(Expr("=", frozenset(pair)), Equality((pair[0], "k"), (pair[1], draw(st.sampled_from(COLUMNS)))))
        for pair in pairs
    )


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
            return _negated(bag) if negated else bag
        case UnionAll(inputs=inputs):
            return _sum(*(evaluate(child, database) for child in inputs))
        case Join(inputs=inputs, predicates=predicates, negated=negated):
            product = reduce(_times, (evaluate(child, database) for child in inputs))
            kept: ZSet = Counter({row: weight for row, weight in product.items() if _holds(dict(row), predicates)})
            return _net(_negated(kept) if negated else kept)
        case Project(input=child, columns=columns):
            result: ZSet = Counter()
            for row, weight in evaluate(child, database).items():
                known = dict(row)
                result[tuple((("", name), _value(expr, known)) for name, expr in columns)] += weight
            return _net(result)


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
        return _under(node.alias, _apply(operation, _bag(at(operation.input, node.version), database)))
    changed = _moved(database, Version.DELTA)
    delta = _sum(*(_bag(term, database) for term in differentiate(operation.input, changed)))
    touched = {_key(operation, row) for row in delta}
    new = _bag(at(operation.input, Version.NEW), database)
    now: Bag = Counter({row: weight for row, weight in new.items() if _key(operation, row) in touched})
    before = _sum(now, _negated(delta))
    return _under(node.alias, _sum(_apply(operation, now), _negated(_apply(operation, before))))


def _bag(node: Relation, database: dict[int, State]) -> Bag:
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
    function = OPERATIONS[operation.name][1]
    return _sum(*(function(key, group) for key, group in groups.items()))


def _totals(group: Bag) -> tuple[int, int]:
    """Count the rows and sum their values."""
    present = _net(group)
    return sum(present.values()), sum(n * (row[1] or 0) for row, n in present.items())


def _sides(group: Bag) -> tuple[int, int]:
    counts = [sum(n for row, n in group.items() if row[2] == side) for side in (0, 1)]
    return counts[0], counts[1]


def _times_of(row: tuple[Any, ...], n: int) -> Bag:
    return Counter({row: n} if n > 0 else {})


# What each operation is keyed by, and its rows for one partition.
OPERATIONS: dict[str, tuple[tuple[str, ...], Callable[[tuple[Any, ...], Bag], Bag]]] = {
    "distinct": (COLUMNS, lambda key, group: _times_of(key, int(sum(group.values()) > 0))),
    "count": (("k",), lambda key, group: _times_of((*key, _totals(group)[0]), int(bool(_net(group))))),
    "sum": (("k",), lambda key, group: _times_of((*key, _totals(group)[1]), int(bool(_net(group))))),
    "total": ((), lambda _, group: _times_of(_totals(group), 1)),
    "exists": ((), lambda _, group: _times_of((1, 1), int(sum(group.values()) > 0))),
    "intersect": (COLUMNS, lambda key, group: _times_of(key, int(min(_sides(group)) > 0))),
    "intersect all": (COLUMNS, lambda key, group: _times_of(key, min(_sides(group)))),
    "except": (COLUMNS, lambda key, group: _times_of(key, int(_sides(group)[0] > 0 >= _sides(group)[1]))),
    "except all": (COLUMNS, lambda key, group: _times_of(key, _sides(group)[0] - _sides(group)[1])),
}


def _sum(*bags: Counter[Any]) -> Counter[Any]:
    total: Counter[Any] = Counter()
    for bag in bags:
        for row, weight in bag.items():
            total[row] += weight
    return _net(total)


def _net(bag: Counter[Any]) -> Counter[Any]:
    return Counter({row: weight for row, weight in bag.items() if weight})


def _negated(bag: Counter[Any]) -> Counter[Any]:
    return Counter({row: -weight for row, weight in bag.items()})


def _moved(database: dict[int, State], *versions: Version) -> frozenset[int]:
    return frozenset(relid for relid, state in database.items() if any(state.versions[version] for version in versions))


@settings(max_examples=300, deadline=None)
@given(relations(), databases)
def test_the_terms_of_a_delta_add_up_to_new_minus_old(node: Relation, database: dict[int, State]) -> None:
    terms = differentiate(node, _moved(database, Version.DELTA))
    expected = _sum(evaluate(at(node, Version.NEW), database), _negated(evaluate(at(node, Version.OLD), database)))
    assert _sum(*(evaluate(term, database) for term in terms)) == expected


@settings(max_examples=300, deadline=None)
@given(relations(), databases)
def test_unfolded_parts_add_up_to_the_terms(node: Relation, database: dict[int, State]) -> None:
    past, future = _moved(database, Version.DELTA, Version.FUTURE), _moved(database, Version.FUTURE)
    for term in (*differentiate(node, frozenset(SOURCES)), at(node, Version.NEW), at(node, Version.OLD)):
        parts = unfold(term, past, future)
        assert _sum(*(evaluate(part, database) for part in parts)) == evaluate(term, database)


@settings(max_examples=150, deadline=None)
@given(relations(), databases)
def test_unfolded_parts_read_no_old_and_no_new_state(node: Relation, database: dict[int, State]) -> None:
    everything = frozenset(SOURCES)
    parts = (part for term in differentiate(node, everything) for part in unfold(term, everything, everything))
    found = [leaf for part in parts for leaf in leaves(part)]
    versions = {leaf.version for leaf in found if isinstance(leaf, Scan)}
    assert versions <= {Version.CURRENT, Version.DELTA, Version.PAST, Version.FUTURE}
    assert {leaf.version for leaf in found if isinstance(leaf, Derived)} <= {Version.NEW, Version.DELTA}


@settings(max_examples=150, deadline=None)
@given(relations(), databases)
def test_a_source_without_changes_adds_no_terms(node: Relation, database: dict[int, State]) -> None:
    changed = _moved(database, Version.DELTA)
    for term in differentiate(node, changed):
        (delta,) = (leaf for leaf in leaves(term) if getattr(leaf, "version", None) is Version.DELTA)
        assert relids(delta) & changed


@settings(max_examples=200, deadline=None)
@given(relations(), databases)
def test_one_batch_equals_its_parts_in_turn(node: Relation, database: dict[int, State]) -> None:
    """Moving to the new frontier and from there to all that is visible adds up to one move."""
    first = differentiate(node, frozenset(SOURCES))
    second_step = {
        relid: State(state.versions[Version.CURRENT], state.versions[Version.FUTURE], Counter())
        for relid, state in database.items()
    }
    at_once = {
        relid: State(state.versions[Version.CURRENT], state.versions[Version.PAST], Counter())
        for relid, state in database.items()
    }
    in_turn = [evaluate(term, database) for term in first] + [evaluate(term, second_step) for term in first]
    assert _sum(*in_turn) == _sum(*(evaluate(term, at_once) for term in first))


@settings(max_examples=300, deadline=None)
@given(st.data(), databases)
def test_the_keyed_rule_is_the_difference_of_the_results(data: st.DataObject, database: dict[int, State]) -> None:
    leaf = _derived(data.draw, "d")
    new, old = (evaluate(replace(leaf, version=version), database) for version in (Version.NEW, Version.OLD))
    assert evaluate(replace(leaf, version=Version.DELTA), database) == _sum(new, _negated(old))


def _tables(current: Bag, new: Bag, old: Bag) -> State:
    """A source that is a table at every frontier: no row is there less than no times."""
    return State(current, _sum(new, _negated(old)), _sum(current, _negated(new)))


tables = st.fixed_dictionaries({relid: st.builds(_tables, bags, bags, bags) for relid in SOURCES})


def _antijoin(left: Leaf, right: Leaf, column: str) -> tuple[Project, Project]:
    """L - L * distinct(keys of R): the rows of L that have no partner."""
    key = Expr(f'"{right.alias}"."{column}"', frozenset({right.alias}))
    pairs = Project(Join((right,)), (("k", key), ("v", key), ("side", Expr("0", frozenset()))))
    keys = Derived("keys", Operation("distinct", pairs, (*COLUMNS, "side"), COLUMNS, "", "", COLUMNS))
    tie = Predicate(Expr("=", frozenset({left.alias, "keys"})), Equality((left.alias, "k"), ("keys", "k")))
    columns = tuple((name, Expr(f'"{left.alias}"."{name}"', frozenset({left.alias}))) for name in COLUMNS)
    return Project(Join((left,)), columns), Project(Join((left, keys), (tie,), negated=True), columns)


@settings(max_examples=300, deadline=None)
@given(tables, st.sampled_from(COLUMNS), st.booleans())
def test_an_antijoin_is_everything_minus_what_has_a_partner(
    database: dict[int, State], column: str, nested: bool
) -> None:
    left, right = Scan("l", 1, COLUMNS), Scan("r", 2, COLUMNS)
    blocks: tuple[Project, ...] = _antijoin(left, right, column)
    if nested:
        # The antijoin's own rows, grouped, are one side of a further one.
        sided = tuple(replace(block, columns=(*block.columns, ("side", Expr("0", frozenset())))) for block in blocks)
        inner = Operation("count", UnionAll(sided), (*COLUMNS, "side"), ("k",), "", "", COLUMNS)
        blocks = _antijoin(Scan("o", 3, COLUMNS), Derived("n", inner), "v")
    node = UnionAll(blocks)

    def expected(version: Version) -> Bag:
        source = {relid: state.versions[version] for relid, state in database.items()}
        found = _unmatched(source[1], source[2], column)
        if not nested:
            return found
        groups = {row[0] for row in found}
        counts = {key: sum(n for row, n in found.items() if row[0] == key) for key in groups}
        return _unmatched(source[3], Counter(dict.fromkeys(counts.items(), 1)), "v")

    for version in (Version.OLD, Version.NEW, Version.CURRENT):
        assert _bag(at(node, version), database) == expected(version)
    terms = differentiate(node, _moved(database, Version.DELTA))
    moved = _sum(expected(Version.NEW), _negated(expected(Version.OLD)))
    assert _sum(*(_bag(term, database) for term in terms)) == moved


def _unmatched(left: Bag, right: Bag, column: str) -> Bag:
    partners = {row[COLUMNS.index(column)] for row in right} - {None}
    return Counter({row: n for row, n in left.items() if row[0] not in partners})
