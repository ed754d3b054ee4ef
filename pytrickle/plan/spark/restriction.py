"""Keys first: a table is asked only for the rows that changes join, directly or by way of other tables.

A row that a term joins, at the old state or at the new one, is in its table now or among the changes since the old
frontier. So a path of tables, each with these, leads to all rows that the term can join.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.relation import Predicate, Scan, Version
from pytrickle.plan.postgres.buffer import changes_query, netted_changes
from pytrickle.plan.postgres.from_item import table_name
from pytrickle.plan.sql.dialect import quote

EXISTS = "EXISTS (SELECT FROM {items} WHERE {tests})"
EVER = "SELECT {columns} FROM {table} UNION ALL SELECT {columns} FROM ({past}) AS p"
# A table is asked for the rows that changes join if it has at least so many rows, and so many for every one of them:
# with 20 for each a refresh was 1.4 times as fast as one that read the table whole, with 5 as fast, with 2 slower.
WORTH_ASKING = 100_000
ROWS_PER_JOINED = 5
# With so many, an index finds them sooner than all tasks together read the table.
ROWS_PER_LOOKUP = 20

Path = tuple[Scan, ...]


def asking_pays_off(rows: int, joined: int) -> bool:
    """Whether asking a table of so many rows for so many that changes join is expected to leave out most of them."""
    return rows >= max(WORTH_ASKING, ROWS_PER_JOINED * joined)


def paths(delta: Scan, scans: Sequence[Scan], equalities: Sequence[Predicate]) -> dict[str, Path]:
    """Follow equalities from the changes to tables; return the shortest path to each, by the table's alias.

    >>> from pytrickle.plan.algebra.relation import Expr
    >>> a, b, c = (Scan(alias, 1, ()) for alias in "abc")
    >>> equalities = [Predicate(Expr("a.k = b.k", frozenset("ab"))), Predicate(Expr("b.l = c.l", frozenset("bc")))]
    >>> ["".join(scan.alias for scan in path) for path in paths(a, [b, c], equalities).values()]
    ['a', 'ab', 'abc']
    """
    found: dict[str, Path] = {delta.alias: (delta,)}
    while step := {
        scan.alias: (*found[known], scan)
        for known in found
        for scan in scans
        if scan.alias not in found and any(each.expr.tables == {known, scan.alias} for each in equalities)
    }:
        found |= step
    return found


@dataclass(frozen=True, slots=True)
class Restriction:
    """Decides which tables are asked for the rows that changes join, and writes the condition."""

    definition: Definition
    ranges: Mapping[int, ChangeRange]

    def pays_off(self, path: Path) -> bool:
        """Whether asking the last table of a path is expected to leave out most of its rows."""
        return asking_pays_off(self._rows(path[-1]), self.joined_rows(path))

    def finds(self, path: Path, columns: Iterable[str]) -> bool:
        """Whether an index on one of these columns finds the rows of the last table, at less cost than a scan."""
        few = self.joined_rows(path) * ROWS_PER_LOOKUP <= self._rows(path[-1])
        return few and not self.definition.source(path[-1].relid).indexed.isdisjoint(columns)

    def joined_rows(self, path: Path) -> int:
        """Estimate how many rows of the last table join the changes: by each step as many times more as it has more
        rows than the table before."""
        expected = self.ranges[path[0].relid].delta_rows
        before = max(expected, self._rows(path[0]), 1)
        for scan in path[1:]:
            rows = self._rows(scan)
            expected, before = ceil(expected * max(1.0, rows / before)), max(rows, 1)
        return expected

    def condition(self, path: Path, tests: Iterable[str]) -> str:
        """Write that a row of the last table is joined by some change, where these tests hold along the path."""
        delta, *between = path[:-1]
        changes = netted_changes(self.definition.source(delta.relid), Version.DELTA, self.ranges[delta.relid])
        items = [f"({changes}) AS {quote(delta.alias)}", *map(self._ever, between)]
        return EXISTS.format(items=", ".join(items), tests=" AND ".join(tests))

    def _ever(self, scan: Scan) -> str:
        """Write all rows that a table has in the old state or in the new one, as an item of FROM."""
        source, change_range = self.definition.source(scan.relid), self.ranges[scan.relid]
        table, alias = table_name(source), quote(scan.alias)
        if not change_range.past_rows:
            return f"{table} AS {alias}"
        past = changes_query(source, Version.PAST, change_range)
        rows = EVER.format(columns=", ".join(map(quote, source.used)), table=table, past=past)
        return f"({rows}) AS {alias}"

    def _rows(self, scan: Scan) -> int:
        return self.definition.source(scan.relid).estimated_rows


def columns_of(alias: str, predicates: Iterable[Predicate]) -> list[str]:
    """List the columns of a leaf that predicates equate with others."""
    found = [each.equality for each in predicates if each.equality]
    return [name for each in found for owner, name in (each.left, each.right) if owner == alias]
