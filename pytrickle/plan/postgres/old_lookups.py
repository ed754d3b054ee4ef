"""Which tables a term of the delta looks up as they were, rather than now and once more to take their changes back.

OLD = CURRENT - PAST multiplies out to two parts for each table whose changes are taken back, and PostgreSQL plans all
of them: of seven tables 64 for the last. Where few changes are taken back of a table of which each row finds one by a
unique key, table and changes are read as one instead, by a lookup that costs hardly more.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import Folding
from pytrickle.plan.algebra.relation import BUFFERED, Derived, Function, Join, Leaf, Predicate, Scan, Version, leaves
from pytrickle.plan.postgres.equated import equated_columns
from pytrickle.plan.postgres.join_order import links, stands_alone

# Each lookup runs through so many changes, which takes about as long as to find the row by an index.
MOST_TAKEN_BACK = 64
# Where all sources together have more changes, a hash of the table is faster than a lookup for each.
MOST_CHANGES = 16_000
Lookups = dict[str, tuple[Predicate, ...]]


def take_back_few(ranges: Iterable[ChangeRange]) -> frozenset[int]:
    """Return the sources of which so few changes are taken back that a lookup may run through them."""
    ranges = tuple(ranges)
    if sum(each.past_rows for each in ranges) > MOST_CHANGES:
        return frozenset()
    return frozenset(each.relid for each in ranges if 0 < each.past_rows <= MOST_TAKEN_BACK)


def folding(definition: Definition, ranges: Mapping[int, ChangeRange]) -> Folding:
    """Return what names the tables of a join, before it is unfolded, that are looked up so, by their aliases."""
    few = take_back_few(ranges.values())

    def fold(join: Join) -> frozenset[str]:
        candidates = {scan.alias for scan in _old_scans(join) if scan.relid in few}
        return frozenset(_walk(join, candidates, _is_multiplied_out, definition)) if candidates else frozenset()

    return fold


def old_lookups(join: Join, definition: Definition) -> Lookups:
    """Return by which conditions each table of an unfolded join that is read at the old state is looked up, in order.

    Those tables are left out that no unique key leads to.
    """
    candidates = {scan.alias for scan in _old_scans(join)}
    return _walk(join, candidates, stands_alone, definition) if candidates else {}


def without(join: Join, lookups: Lookups) -> Join:
    """Leave out the conditions that lookups ask already: written twice, they seem to leave fewer rows than they do."""
    asked = {predicate for predicates in lookups.values() for predicate in predicates}
    return replace(join, predicates=tuple(each for each in join.predicates if each not in asked))


def _old_scans(join: Join) -> list[Scan]:
    return [leaf for leaf in leaves(join) if isinstance(leaf, Scan) and leaf.version is Version.OLD]


def _is_multiplied_out(leaf: Leaf) -> bool:
    return isinstance(leaf, Scan) or (isinstance(leaf, Derived) and leaf.version is Version.DELTA)


def _walk(join: Join, candidates: set[str], alone: Callable[[Leaf], bool], definition: Definition) -> Lookups:
    """Walk from the changes to all leaves that are read `alone`, and to the candidates that a unique key leads to.

    One through which others are reached is not looked up: PostgreSQL has to find it by what it finds of those.
    """
    found: Lookups = {}
    reached = {leaf.alias for leaf in leaves(join) if not isinstance(leaf, Function) and leaf.version in BUFFERED}
    waiting = [leaf for leaf in leaves(join) if leaf.alias not in reached and (leaf.alias in candidates or alone(leaf))]
    while waiting:
        keys = {leaf.alias: _key(leaf, join, reached, definition) for leaf in waiting if leaf.alias in candidates}
        keyed = [leaf for leaf in waiting if keys.get(leaf.alias)]
        linked = [leaf for leaf in waiting if alone(leaf) and links(leaf, join, reached)]
        others = [leaf for leaf in linked if leaf.alias not in candidates]
        following = next(iter(keyed or others or linked or filter(alone, waiting)), None)
        if following is None:
            break
        if key := keys.get(following.alias):
            found[following.alias] = key
        reached.add(following.alias)
        waiting.remove(following)
    return found


def _key(leaf: Leaf, join: Join, reached: set[str], definition: Definition) -> tuple[Predicate, ...]:
    """Return the equalities of a unique key with what is reached, if there is one."""
    if not isinstance(leaf, Scan):
        return ()
    equated = equated_columns(leaf, join, reached, definition)
    keys = (key for key in definition.source(leaf.relid).unique if key <= equated.keys())
    return tuple(equated[column] for column in sorted(next(keys, ())))
