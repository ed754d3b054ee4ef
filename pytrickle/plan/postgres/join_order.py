"""The order in which a compiled join reads its leaves, and what of it changes or keys lead to."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pytrickle.catalog.definition import ChangeRange
from pytrickle.plan.algebra.relation import (
    BUFFERED,
    Column,
    Derived,
    Function,
    Join,
    Leaf,
    Predicate,
    Project,
    Scan,
    Version,
    leaves,
)
from pytrickle.plan.postgres.buffer import is_netted
from pytrickle.plan.postgres.weight import has_weight
from pytrickle.plan.sql.dialect import quote
from pytrickle.plan.sql.types import has_one_text, is_collatable

SUBQUERY = "(\n{text}\n) AS {alias}"
# PostgreSQL takes the function for a hundred times as dear as others. It is never called, for the test holds then.
DEAR = "CASE WHEN {test} THEN true WHEN to_tsvector('') IS NULL THEN false END IS NOT NULL"
ASKED = "LATERAL (SELECT * FROM (\n{text}\n) AS {alias} WHERE {conditions} {fence}) AS {alias}"


@dataclass(slots=True)
class Reach:
    """The leaves of a join of which few rows are needed: those that conditions link to changes or to bound columns.

    What is written next can read the `aliases`. Of the `awaited` ones few rows are needed, too, but they are computed
    further right in FROM.
    """

    join: Join
    bound: frozenset[Column]
    aliases: set[str]
    tables: list[Scan]
    awaited: frozenset[str] = frozenset()

    @classmethod
    def of(cls, block: Project, ordered: list[Leaf], names: frozenset[str], known: frozenset[str]) -> "Reach":
        """Start from buffered changes, the aliases in `known` and what the columns that `names` binds are made of."""
        assert isinstance(block.input, Join)
        exprs = [expr for name, expr in block.columns if name in names]
        asked = {alias for expr in exprs for alias in expr.tables}
        start = {leaf.alias for leaf in ordered if has_weight(leaf) and stands_alone(leaf)}
        tables = [leaf for leaf in ordered if isinstance(leaf, Scan) and leaf.version is Version.CURRENT]
        start |= known | {leaf.alias for leaf in tables if leaf.alias in asked}
        self = cls(block.input, frozenset(expr.column for expr in exprs if expr.column), start, tables)
        self._go_on()
        self.awaited = frozenset(leaf.alias for leaf in ordered if leaf.alias in known and not stands_alone(leaf))
        self.aliases -= self.awaited
        return self

    def _go_on(self) -> None:
        """Go from what is reached to the tables that it leads to."""
        while step := {leaf.alias for leaf in self.tables if leaf.alias not in self.aliases and self.links(leaf)}:
            self.aliases |= step

    def links(self, leaf: Leaf) -> list[Predicate]:
        """List the conditions between a leaf and what is reached."""
        return links(leaf, self.join, self.aliases)

    def asked(self, leaf: Derived) -> list[Predicate]:
        """List those of the conditions to which PostgreSQL may restrict the rows below an operation.

        One that tells equal values apart, as a cast to text does, would take a part of a group for the whole.
        """
        return [each for each in self.links(leaf) if _keeps_groups(each, leaf)]

    def equated(self, leaf: Derived) -> list[Predicate]:
        """List the conditions that equate plain columns of a leaf with what is reached."""
        return [each for each in self.links(leaf) if _equates_column(each, leaf)]

    def take(self, leaf: Leaf) -> None:
        """A leaf that is linked to what is reached is reached from then on, and what a table leads to."""
        if leaf.alias in self.awaited or self.links(leaf):
            self.aliases.add(leaf.alias)
            if isinstance(leaf, Scan):
                self._go_on()

    def is_bound(self, leaf: Derived) -> frozenset[str]:
        """Return the entries of a derived leaf that bound columns show."""
        return frozenset(name for name in leaf.operation.entries if (leaf.alias, name) in self.bound)

    def entered(self, leaf: Derived) -> frozenset[str]:
        """Return the entries of a derived leaf that conditions link to what is reached."""
        read = frozenset[Column]().union(*(each.expr.columns for each in self.asked(leaf)))
        return frozenset(name for name in leaf.operation.entries if (leaf.alias, name) in read)


def _keeps_groups(predicate: Predicate, leaf: Derived) -> bool:
    """Whether a condition holds for all of an operation's rows that have equal entries, or for none of them."""
    operation, equality = leaf.operation, predicate.equality
    if operation.exact or operation.linear or (equality is not None and not equality.as_text):
        return True
    types = dict(zip(operation.columns, operation.types, strict=False))
    read = [each for each in operation.entries if (leaf.alias, each) in predicate.expr.columns]
    return all(has_one_text(name) and not is_collatable(name) for name in (types.get(each, "") for each in read))


def _equates_column(predicate: Predicate, leaf: Derived) -> bool:
    if predicate.equality is not None:
        return not predicate.equality.null_safe
    return predicate.fixed is not None and predicate.fixed[0] == leaf.alias


def fenced(text: str, leaf: Leaf, conditions: Collection[Predicate], one: bool = False) -> str:
    """Ask a subquery for what joins a row to its left; PostgreSQL takes the conditions down to where indexes are.

    Those that hold a subquery are left to the join: within, PostgreSQL may keep what it computed for the row before.
    Where there is `one` row at most, PostgreSQL reads no further than to that.
    """
    alias = quote(leaf.alias)
    taken = [each.expr.sql for each in conditions if not each.expr.holds_query]
    if not taken:
        return SUBQUERY.format(text=text, alias=alias)
    tests = " AND ".join(f"({condition})" for condition in taken)
    return ASKED.format(text=text, alias=alias, conditions=tests, fence="LIMIT 1" if one else "OFFSET 0")


def ordered_leaves(join: Join, first: frozenset[str] = frozenset(), then: Collection[str] = ()) -> list[Leaf]:
    """Order the leaves so that what is computed for a row comes after what it is computed from: changes first.

    `first` are aliases that stand before all leaves; those of `then` follow what is read as it is.
    """
    ready = [leaf for leaf in leaves(join) if stands_alone(leaf)]
    ready.sort(key=lambda leaf: not has_weight(leaf))
    named = {leaf.alias: leaf for leaf in leaves(join)}
    ready += [named[alias] for alias in then]
    waiting = [leaf for leaf in leaves(join) if not stands_alone(leaf) and leaf.alias not in then]
    while waiting:
        known = {leaf.alias for leaf in ready} | first
        possible = [leaf for leaf in waiting if not isinstance(leaf, Function) or leaf.tables <= known]
        linked = [leaf for leaf in possible if isinstance(leaf, Function) or links(leaf, join, known)]
        following = (linked or possible or waiting)[0]
        ready.append(following)
        waiting.remove(following)
    return ready


def stands_alone(leaf: Leaf) -> bool:
    """Whether a leaf is read as it is, a table or changes, rather than computed for what is to its left."""
    match leaf:
        case Scan(version=version):
            return version in BUFFERED or version is Version.CURRENT
        case Derived(version=version):
            return version is Version.DELTA
        case Function():
            return False


def links(leaf: Leaf, join: Join, known: set[str]) -> list[Predicate]:
    """List the predicates between a leaf and those already known."""
    return [
        predicate
        for predicate in join.predicates
        if leaf.alias in predicate.expr.tables
        and len(predicate.expr.tables) > 1
        and predicate.expr.tables <= known | {leaf.alias}
    ]


def conditions(join: Join, ranges: Mapping[int, ChangeRange]) -> list[str]:
    """Write the predicates of a join so that PostgreSQL expects enough rows where changes meet changes.

    PostgreSQL takes the columns of a key for independent, and expects 200 values where it has no statistics. So only
    the first of several equalities between the same two sets of changes shall count; else it expects one row, and runs
    through the next set of changes once for each row that there is. As it may expect one row of tables, too, where many
    changes of several sources are joined, the equalities of all of these but the first are written again as tests that
    seem dear. They are made for the rows alone that the equalities have found, so that the changes are hashed.
    """
    changed = {leaf.alias for leaf in leaves(join) if has_weight(leaf)}
    further_changes = frozenset(_many_changes(join, ranges)[1:])
    met: set[frozenset[str]] = set()
    written = []
    for predicate in join.predicates:
        equality, test, sides = predicate.equality, predicate.expr.sql, predicate.expr.tables
        further = equality is not None and sides <= changed and sides in met
        written.append(f"CASE WHEN {test} THEN true END" if further else test)
        if equality is not None and not equality.null_safe and not further and sides & further_changes:
            written.append(DEAR.format(test=test))
        if equality is not None:
            met.add(sides)
    return written


def _many_changes(join: Join, ranges: Mapping[int, ChangeRange]) -> tuple[str, ...]:
    buffered = (leaf for leaf in leaves(join) if isinstance(leaf, Scan) and leaf.version in BUFFERED)
    return tuple(leaf.alias for leaf in buffered if not is_netted(ranges[leaf.relid]))
