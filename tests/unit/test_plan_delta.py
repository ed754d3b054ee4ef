"""The delta rules against a naive oracle: Z-sets as Counters, relations interpreted over them."""

import re
from collections import Counter
from dataclasses import replace
from functools import reduce
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pytrickle.plan.algebra import Equality, Expr, Join, Predicate, Project, Relation, Scan, UnionAll, Version, scans
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
    """Draw a union of joins of up to four scans, self-joins included; some inputs are joins or unions themselves."""
    return UnionAll(tuple(_project(draw, number) for number in range(draw(st.integers(1, 2)))))


def _project(draw: st.DrawFn, number: int) -> Project:
    inputs = tuple(_input(draw, f"t{number}{i}") for i in range(draw(st.integers(1, 4))))
    aliases = tuple(dict.fromkeys(leaf.alias for child in inputs for leaf in scans(child)))
    columns = tuple((f"r{i}", _column(draw, aliases)) for i in range(2))
    return Project(Join(inputs, _predicates(draw, aliases)), columns)


def _input(draw: st.DrawFn, alias: str) -> Relation:
    scan = Scan(alias, draw(st.sampled_from(SOURCES)), COLUMNS)
    match draw(st.sampled_from(["scan", "scan", "scan", "join", "union"])):
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
        case UnionAll(inputs=inputs):
            return _sum(*(evaluate(child, database) for child in inputs))
        case Join(inputs=inputs, predicates=predicates):
            product = reduce(_times, (evaluate(child, database) for child in inputs))
            return _net(Counter({row: weight for row, weight in product.items() if _holds(dict(row), predicates)}))
        case Project(input=child, columns=columns):
            result: ZSet = Counter()
            for row, weight in evaluate(child, database).items():
                known = dict(row)
                result[tuple((("", name), known[_named(expr)]) for name, expr in columns)] += weight
            return _net(result)


def _times(left: ZSet, right: ZSet) -> ZSet:
    return Counter({one + other: x * y for one, x in left.items() for other, y in right.items()})


def _holds(row: dict[tuple[str, str], Any], predicates: tuple[Predicate, ...]) -> bool:
    """NULL equals nothing, itself included."""
    pairs = [(row[p.equality.left], row[p.equality.right]) for p in predicates if p.equality]
    return all(left is not None and left == right for left, right in pairs)


def _named(expr: Expr) -> tuple[str, str]:
    alias, column = re.findall(r'"(\w+)"', expr.sql)
    return alias, column


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


@settings(max_examples=700, deadline=None)
@given(relations(), databases)
def test_the_terms_of_a_delta_add_up_to_new_minus_old(node: Relation, database: dict[int, State]) -> None:
    terms = differentiate(node, _moved(database, Version.DELTA))
    expected = _sum(evaluate(at(node, Version.NEW), database), _negated(evaluate(at(node, Version.OLD), database)))
    assert _sum(*(evaluate(term, database) for term in terms)) == expected


@settings(max_examples=700, deadline=None)
@given(relations(), databases)
def test_unfolded_parts_add_up_to_the_terms(node: Relation, database: dict[int, State]) -> None:
    past, future = _moved(database, Version.DELTA, Version.FUTURE), _moved(database, Version.FUTURE)
    for term in (*differentiate(node, frozenset(SOURCES)), at(node, Version.NEW), at(node, Version.OLD)):
        parts = unfold(term, past, future)
        assert _sum(*(evaluate(part, database) for part in parts)) == evaluate(term, database)


@settings(max_examples=200, deadline=None)
@given(relations(), databases)
def test_unfolded_parts_read_no_old_and_no_new_state(node: Relation, database: dict[int, State]) -> None:
    everything = frozenset(SOURCES)
    parts = (part for term in differentiate(node, everything) for part in unfold(term, everything, everything))
    versions = {leaf.version for part in parts for leaf in scans(part)}
    assert versions <= {Version.CURRENT, Version.DELTA, Version.PAST, Version.FUTURE}


@settings(max_examples=200, deadline=None)
@given(relations(), databases)
def test_a_source_without_changes_adds_no_terms(node: Relation, database: dict[int, State]) -> None:
    changed = _moved(database, Version.DELTA)
    for term in differentiate(node, changed):
        (delta,) = (leaf for leaf in scans(term) if leaf.version is Version.DELTA)
        assert delta.relid in changed


@settings(max_examples=300, deadline=None)
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
