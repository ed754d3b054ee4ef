"""Which touched keys of an operation matter: those that a table beside it, under its own conditions, can join.

A term of the delta joins the operation's change with the other leaves of its block, each at the old or the new state
or as a change. A row that any of these has is in the table now or among the changes since the old frontier, so keys
that match neither come to nothing wherever they are used: (ΔD ⋉ (S ∪ past S)) ⋈ S = ΔD ⋈ S.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import product

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import (
    BUFFERED,
    Column,
    Derived,
    Expr,
    Join,
    Operation,
    Predicate,
    Project,
    Relation,
    Scan,
    Version,
    leaves,
    operations,
)
from pytrickle.plan.postgres.in_place import entered
from pytrickle.plan.sql.dialect import quote
from pytrickle.plan.sql.types import is_collatable

MAX_CHANGED = 2
ADMITTED = "EXISTS (SELECT FROM {tables} WHERE {condition}{fence})"


@dataclass(frozen=True, slots=True)
class Semijoin:
    """Tables that admit some keys of an operation: `links` pair keys with their columns.

    `conditions` are theirs, each beside the aliases of those it is about.
    """

    links: tuple[tuple[str, Column], ...]
    scans: tuple[Scan, ...]
    conditions: tuple[tuple[tuple[str, ...], str], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that decide."""
        return tuple(dict.fromkeys(key for key, _ in self.links))

    def test(self, tables: Sequence[str], columns: Mapping[str, Expr], fence: str) -> str:
        """Write whether the tables, items of FROM, admit a row of the operation's input, whose `columns` are given."""
        equal = (f"({columns[key].sql}) = {_written(column)}" for key, column in self.links)
        condition = " AND ".join([*equal, *(f"({condition})" for _, condition in self.conditions)])
        return ADMITTED.format(tables=", ".join(tables), condition=condition, fence=fence)

    def parts(self) -> tuple["Semijoin", ...]:
        """Split it into tables that only the keys link: all of these parts must admit a row.

        Tested together, the changes of one would be paired with all changes of the others.
        """
        if len(self.scans) == 1:
            return (self,)
        # Imported where it is needed: most queries have no such tables, and every process would wait for it.
        import networkx

        linked = networkx.Graph()
        linked.add_nodes_from(scan.alias for scan in self.scans)
        for aliases, _ in self.conditions:
            networkx.add_path(linked, aliases)
        return tuple(self._part(aliases) for aliases in networkx.connected_components(linked))

    def _part(self, aliases: AbstractSet[str]) -> "Semijoin":
        return Semijoin(
            tuple(link for link in self.links if link[1][0] in aliases),
            tuple(scan for scan in self.scans if scan.alias in aliases),
            tuple(condition for condition in self.conditions if aliases >= set(condition[0])),
        )

    def variants(self, changed: frozenset[int]) -> tuple[tuple[Scan, ...], ...]:
        """Read every table as it is, and one that changed as what changed since the old frontier, too."""
        versions = (
            (Version.CURRENT, Version.PAST) if scan.relid in changed else (Version.CURRENT,) for scan in self.scans
        )
        return tuple(
            tuple(Scan(s.alias, s.relid, s.columns, v) for s, v in zip(self.scans, each, strict=True))
            for each in product(*versions)
        )


def admissions(
    rows: Relation, definition: Definition, changed: frozenset[int]
) -> dict[Operation, tuple[Semijoin, ...]]:
    """Find what admits the keys of each operation, one for each way in which the query uses it.

    `changed` are the sources with changes. An operation is left out where some use needs all of its keys.
    """
    found: dict[Operation, dict[Semijoin | None, None]] = {}
    inputs = (rows, *(operation.input for operation in operations(rows)))
    for block in (block for each in inputs for block in blocks_of(each)):
        for leaf in leaves(block):
            if isinstance(leaf, Derived):
                one = _Block.of(block, leaf, definition).admission(changed)
                found.setdefault(leaf.operation, {})[one] = None
    settled = ((operation, tuple(each for each in uses if each), len(uses)) for operation, uses in found.items())
    return {
        operation: uses
        for operation, uses, count in settled
        if len(uses) == count and len({each.keys for each in uses}) == 1
    }


def admitting(
    uses: Sequence[Semijoin],
    ranges: Mapping[int, ChangeRange],
    columns: Mapping[str, Expr],
    from_scan: Callable[[Scan], str],
) -> str:
    """Write whether any use admits a row of an operation's input, whose `columns` are given.

    A single test becomes a join. Of several, one on tables as they are is to be index lookups, never a hash of all.
    """
    changed = frozenset(relid for relid, change_range in ranges.items() if change_range.past_rows)
    parts = [[(part, part.variants(changed)) for part in use.parts()] for use in uses]
    alone = sum(len(variants) for use in parts for _, variants in use) == 1

    def fence(scans: tuple[Scan, ...]) -> str:
        return "" if alone or any(scan.version is not Version.CURRENT for scan in scans) else " OFFSET 0"

    def admits(part: Semijoin, variants: Sequence[tuple[Scan, ...]]) -> str:
        return " OR ".join(part.test(list(map(from_scan, scans)), columns, fence(scans)) for scans in variants)

    return " OR ".join(" AND ".join(f"({admits(*part)})" for part in use) for use in parts)


def admit(
    parts: Iterable[Relation],
    uses: Sequence[Semijoin],
    ranges: Mapping[int, ChangeRange],
    from_scan: Callable[[Scan], str],
    entries: dict[str, str],
) -> tuple[Project, ...]:
    """Drop the changes of an operation's input whose keys nothing beside the operation can join.

    Changes of a table are tested once, whatever joins them: in one of the `entries` of the WITH list.
    """

    def admitted_in(block: Project) -> Project:
        join, keys = block.input, dict(block.columns)
        assert isinstance(join, Join)
        test = admitting(uses, ranges, keys, from_scan)
        exprs = [keys[key] for key in uses[0].keys]
        scan = buffered(join, exprs)
        if scan is None:
            return replace(block, input=replace(join, predicates=(*join.predicates, predicate(test, exprs))))
        name = entered(entries, admitted(from_scan(scan), join, scan.alias, test), "pgt_admitted")
        return replace(block, input=reading(join, scan, name))

    return tuple(admitted_in(block) for part in parts for block in blocks_of(part))


def predicate(test: str, exprs: Sequence[Expr]) -> Predicate:
    """Make a condition of a test of some expressions."""
    columns = frozenset(column for expr in exprs for column in expr.columns)
    tables = frozenset(alias for expr in exprs for alias in expr.tables)
    return Predicate(Expr(test, tables, columns, holds_query=True))


def buffered(join: Join, exprs: Sequence[Expr]) -> Scan | None:
    """Return the leaf that some expressions are made of if it is one, and reads changes."""
    found = [leaf for leaf in leaves(join) if any(leaf.alias in expr.tables for expr in exprs)]
    return found[0] if len(found) == 1 and isinstance(found[0], Scan) and found[0].version in BUFFERED else None


def admitted(changes: str, join: Join, alias: str, test: str) -> str:
    """Read the changes of a leaf of a join that the conditions on it alone, and a test, admit."""
    own = [each.expr.sql for each in join.predicates if each.expr.tables == {alias} and not each.expr.holds_query]
    return f"SELECT * FROM {changes} WHERE {' AND '.join(f'({each})' for each in (*own, test))}"


def reading(join: Join, scan: Scan, entry: str) -> Join:
    """Have a leaf of a join read an entry."""
    return replace(join, inputs=tuple(replace(scan, entry=entry) if leaf == scan else leaf for leaf in join.inputs))


@dataclass(frozen=True, slots=True)
class _Block:
    """A block around an operation's leaf: classes of columns that are equal, and the conditions on single tables."""

    leaf: Derived
    scans: tuple[Scan, ...]
    classes: tuple[frozenset[Column], ...]
    local: tuple[tuple[str, str], ...]
    definition: Definition

    @classmethod
    def of(cls, block: Project, leaf: Derived, definition: Definition) -> "_Block":
        join = block.input
        assert isinstance(join, Join)
        every = tuple(each for each in leaves(join) if isinstance(each, Scan))
        local = tuple((t, p.expr.sql) for p in join.predicates if len(p.expr.tables) == 1 for t in p.expr.tables)
        # Within the operation's input the name of a table that it reads itself would mean another row.
        taken = {each.alias for each in leaves(leaf.operation.input)}
        scans = tuple(each for each in every if each.alias not in taken)
        return cls(leaf, scans, _classes(join, _comparable(leaf, every, definition)), local, definition)

    def admission(self, changed: frozenset[int]) -> Semijoin | None:
        """Prefer tables without changes, which are looked up once for each key."""
        quiet = tuple(scan for scan in self.scans if scan.relid not in changed)
        kept = self._restricting(quiet, changed) or self._restricting(self.scans, changed)
        return self._of(kept) if kept else None

    def _restricting(self, scans: tuple[Scan, ...], changed: frozenset[int]) -> tuple[Scan, ...]:
        """Keep tables that have conditions of their own, and those through which the keys reach them by indexes.

        The nearest come first, and those that would bring too many changed tables with them are left out.
        """
        paths: dict[str, tuple[Scan, ...]] = {self.leaf.alias: ()}
        while step := {
            scan.alias: (*paths[known], scan)
            for scan in scans
            for known in paths
            if scan.alias not in paths and self._leads(known, scan)
        }:
            paths |= step
        conditioned = {table for table, _ in self.local}
        wanted = (paths[scan.alias] for scan in scans if scan.alias in paths and scan.alias in conditioned)
        kept: dict[Scan, None] = {}
        for path in sorted(wanted, key=len):
            further = kept | dict.fromkeys(path)
            if sum(scan.relid in changed for scan in further) <= MAX_CHANGED:
                kept = further
        return tuple(kept)

    def _leads(self, known: str, scan: Scan) -> bool:
        indexed = self.definition.source(scan.relid).indexed
        return any(column in indexed for _, (_, column) in self._pairs({known}, scan))

    def _pairs(self, known: set[str], scan: Scan) -> list[tuple[Column, Column]]:
        """Pair columns of known leaves with columns of a table that equal them."""
        keys = self.leaf.operation.keys
        return [
            (one, other)
            for each in self.classes
            for one in sorted(each)
            for other in sorted(each)
            if one[0] in known and other[0] == scan.alias and (one[0] != self.leaf.alias or one[1] in keys)
        ]

    def _of(self, kept: tuple[Scan, ...]) -> Semijoin:
        own, known = self.leaf.alias, {self.leaf.alias}
        pairs: list[tuple[Column, Column]] = []
        for scan in kept:
            pairs += self._pairs(known, scan)
            known.add(scan.alias)
        links = tuple((one[1], other) for one, other in pairs if one[0] == own)
        joined = tuple(
            ((one[0], other[0]), f"{_written(one)} = {_written(other)}") for one, other in pairs if one[0] != own
        )
        local = tuple(((table,), sql) for table, sql in self.local if table in known - {own})
        return Semijoin(links, kept, joined + local)


def _comparable(leaf: Derived, scans: tuple[Scan, ...], definition: Definition) -> dict[Column, str]:
    """Return the types of columns, except for those whose equality a collation decides.

    'A' = 'a' = 'a' may hold where 'A' = 'a' does not, if only the first one is compared by a collation for which it is.
    """
    types = {(leaf.alias, name): each for name, each in zip(leaf.operation.columns, leaf.operation.types, strict=False)}
    for scan in scans:
        types |= {(scan.alias, column.name): column.type_name for column in definition.source(scan.relid).columns}
    return {column: name for column, name in types.items() if definition.bytewise or not is_collatable(name)}


def _classes(join: Join, types: dict[Column, str]) -> tuple[frozenset[Column], ...]:
    """Unite columns of one type that plain equalities equate: only within a type is that transitive."""
    classes: list[frozenset[Column]] = []
    for equal in (predicate.equality for predicate in join.predicates):
        if equal is None or equal.null_safe or equal.as_text or equal.left not in types:
            continue
        if types[equal.left] == types.get(equal.right):
            united = [each for each in classes if equal.left in each or equal.right in each]
            classes = [each for each in classes if each not in united]
            classes.append(frozenset({equal.left, equal.right}).union(*united))
    return tuple(classes)


def _written(column: Column) -> str:
    return ".".join(map(quote, column))
