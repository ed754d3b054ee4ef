"""The delta rules against a naive oracle: Z-sets as Counters, relations interpreted over them."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.algebra.constructs.distinct import Distinct
from pytrickle.plan.algebra.constructs.group import Group
from pytrickle.plan.algebra.delta import arrange, at, differentiate, unfold
from pytrickle.plan.algebra.relation import (
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
from tests.repeats import in_parts
from tests.unit.zset_oracle import (
    COLUMNS,
    OPERATIONS,
    SOURCES,
    Bag,
    State,
    add,
    bag_of,
    evaluate,
    minus,
    moved_sources,
)

values = st.sampled_from([None, None, 0, 1, 2])
rows = st.tuples(values, values)
bags = st.dictionaries(rows, st.integers(1, 3), max_size=4).map(Counter)
changes = st.dictionaries(rows, st.integers(-2, 2), max_size=3).map(Counter)


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
    return Derived(alias, _operation(draw, alias, draw(st.sampled_from(list(OPERATIONS)))))


def _operation(draw: st.DrawFn, alias: str, construct: Construct) -> Operation:
    blocks = []
    for side in range(draw(st.integers(1, 2))):
        inputs = tuple(_below(draw, f"{alias}{side}{i}") for i in range(draw(st.integers(1, 2))))
        aliases = tuple(leaf.alias for leaf in inputs)
        join = Join(inputs, _predicates(draw, aliases), draw(st.sampled_from([False, False, True])))
        columns = (("k", _column(draw, aliases)), ("v", _column(draw, aliases)), ("side", Expr(str(side), frozenset())))
        blocks.append(Project(join, columns))
    keys = OPERATIONS[construct][0]
    return Operation(construct, UnionAll(tuple(blocks)), (*COLUMNS, "side"), keys)


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


@in_parts(3)
@settings(max_examples=50)
@given(relations(), databases)
def test_the_terms_of_a_delta_add_up_to_new_minus_old(nth: int, node: Relation, database: dict[int, State]) -> None:
    terms = differentiate(node, moved_sources(database, Version.DELTA))
    expected = add(evaluate(at(node, Version.NEW), database), minus(evaluate(at(node, Version.OLD), database)))
    assert add(*(evaluate(term, database) for term in terms)) == expected


@in_parts(3)
@settings(max_examples=25)
@given(relations(), databases)
def test_terms_in_the_order_of_changes_add_up_too(nth: int, node: Relation, database: dict[int, State]) -> None:
    ranges = {relid: ChangeRange(relid, None, None, delta_rows=3 - relid) for relid in SOURCES}
    terms = differentiate(arrange(node, ranges), moved_sources(database, Version.DELTA))
    expected = add(evaluate(at(node, Version.NEW), database), minus(evaluate(at(node, Version.OLD), database)))
    assert add(*(evaluate(term, database) for term in terms)) == expected


def test_what_changed_most_is_never_taken_back() -> None:
    few, many = Scan("t1", 1, COLUMNS), Scan("t2", 2, COLUMNS)
    operation = Operation(Distinct(), Project(Join((few,)), ()), (), ("k",))
    join = Join((many, Derived("t3", operation), few))
    ranges = {1: ChangeRange(1, None, None, delta_rows=2), 2: ChangeRange(2, None, None, delta_rows=300)}
    parts = [
        part
        for term in differentiate(arrange(join, ranges), frozenset({1, 2}))
        for part in unfold(term, frozenset({1, 2}), frozenset())
    ]
    taken_back = {leaf.relid for part in parts for leaf in leaves(part) if getattr(leaf, "version", "") == "past"}
    assert len(parts) == 7 and taken_back == {1}


@in_parts(3)
@settings(max_examples=50)
@given(relations(), databases)
def test_unfolded_parts_add_up_to_the_terms(nth: int, node: Relation, database: dict[int, State]) -> None:
    past, future = moved_sources(database, Version.DELTA, Version.FUTURE), moved_sources(database, Version.FUTURE)
    for term in (*differentiate(node, frozenset(SOURCES)), at(node, Version.NEW), at(node, Version.OLD)):
        parts = unfold(term, past, future)
        assert add(*(evaluate(part, database) for part in parts)) == evaluate(term, database)


@in_parts(3)
@settings(max_examples=25)
@given(relations(), databases)
def test_unfolded_parts_read_no_old_and_no_new_state(nth: int, node: Relation, database: dict[int, State]) -> None:
    everything = frozenset(SOURCES)
    parts = (part for term in differentiate(node, everything) for part in unfold(term, everything, everything))
    found = [leaf for part in parts for leaf in leaves(part)]
    versions = {leaf.version for leaf in found if isinstance(leaf, Scan)}
    assert versions <= {Version.CURRENT, Version.DELTA, Version.PAST, Version.FUTURE}
    assert {leaf.version for leaf in found if isinstance(leaf, Derived)} <= {Version.NEW, Version.DELTA}


@in_parts(3)
@settings(max_examples=25)
@given(relations(), databases)
def test_a_source_without_changes_adds_no_terms(nth: int, node: Relation, database: dict[int, State]) -> None:
    changed = moved_sources(database, Version.DELTA)
    for term in differentiate(node, changed):
        (delta,) = (leaf for leaf in leaves(term) if getattr(leaf, "version", None) is Version.DELTA)
        assert relids(delta) & changed


@in_parts(3)
@settings(max_examples=33)
@given(relations(), databases)
def test_one_batch_equals_its_parts_in_turn(nth: int, node: Relation, database: dict[int, State]) -> None:
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
    assert add(*in_turn) == add(*(evaluate(term, at_once) for term in first))


@in_parts(3)
@settings(max_examples=50)
@given(st.data(), databases)
def test_the_keyed_rule_is_the_difference_of_the_results(
    nth: int, data: st.DataObject, database: dict[int, State]
) -> None:
    leaf = _derived(data.draw, "d")
    new, old = (evaluate(replace(leaf, version=version), database) for version in (Version.NEW, Version.OLD))
    assert evaluate(replace(leaf, version=Version.DELTA), database) == add(new, minus(old))


def _tables(current: Bag, new: Bag, old: Bag) -> State:
    """A source that is a table at every frontier: no row is there less than no times."""
    return State(current, add(new, minus(old)), add(current, minus(new)))


tables = st.fixed_dictionaries({relid: st.builds(_tables, bags, bags, bags) for relid in SOURCES})


def _antijoin(left: Leaf, right: Leaf, column: str) -> tuple[Project, Project]:
    """L - L * distinct(keys of R): the rows of L that have no partner."""
    key = Expr(f'"{right.alias}"."{column}"', frozenset({right.alias}))
    pairs = Project(Join((right,)), (("k", key), ("v", key), ("side", Expr("0", frozenset()))))
    keys = Derived("keys", Operation(Distinct(), pairs, (*COLUMNS, "side"), COLUMNS))
    tie = Predicate(Expr("=", frozenset({left.alias, "keys"})), Equality((left.alias, "k"), ("keys", "k")))
    columns = tuple((name, Expr(f'"{left.alias}"."{name}"', frozenset({left.alias}))) for name in COLUMNS)
    return Project(Join((left,)), columns), Project(Join((left, keys), (tie,), negated=True), columns)


@in_parts(3)
@settings(max_examples=50)
@given(tables, st.sampled_from(COLUMNS), st.booleans())
def test_an_antijoin_is_everything_minus_what_has_a_partner(
    nth: int, database: dict[int, State], column: str, nested: bool
) -> None:
    left, right = Scan("l", 1, COLUMNS), Scan("r", 2, COLUMNS)
    blocks: tuple[Project, ...] = _antijoin(left, right, column)
    if nested:
        # The antijoin's own rows, grouped, are one side of a further one.
        sided = tuple(replace(block, columns=(*block.columns, ("side", Expr("0", frozenset())))) for block in blocks)
        inner = Operation(Group(("count(*)",)), UnionAll(sided), (*COLUMNS, "side"), ("k",))
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
        assert bag_of(at(node, version), database) == expected(version)
    terms = differentiate(node, moved_sources(database, Version.DELTA))
    moved = add(expected(Version.NEW), minus(expected(Version.OLD)))
    assert add(*(bag_of(term, database) for term in terms)) == moved


def _unmatched(left: Bag, right: Bag, column: str) -> Bag:
    partners = {row[COLUMNS.index(column)] for row in right} - {None}
    return Counter({row: n for row, n in left.items() if row[0] not in partners})


def test_nodes_are_hashed_once_and_as_they_compare() -> None:
    counted: list[str] = []

    class Noted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            counted.append(str(self))
            return str.__hash__(self)

    scan = Scan(Noted("x"), 1, ("a",))
    nodes = [Join((scan,)), Project(scan, ()), UnionAll((scan,)), Operation(Distinct(), scan, ("a",), ("a",))]
    nodes.append(Derived("d", nodes[-1]))  # type: ignore[arg-type]
    for node in nodes:
        same = replace(node)
        assert same == node and hash(same) == hash(node) and {node: 1}[same]
        before = len(counted)
        assert hash(node) == hash(node) and len(counted) == before > 0
    assert len(set(nodes)) == len(nodes) and Join((scan,)) != Join((scan,), negated=True)
