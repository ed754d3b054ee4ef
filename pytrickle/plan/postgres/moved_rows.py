"""Rows that several terms compare with a changed operation of one row: looked for once, for all of these terms.

A term of nothing but a table and the change of an average reads the whole table, for the rows of which the comparison
has another outcome now. Where the query has more, such as NOT EXISTS, other terms would read all of it again.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from pytrickle.catalog.definition import Definition
from pytrickle.plan.algebra.delta import blocks_of
from pytrickle.plan.algebra.relation import (
    BUFFERED,
    Derived,
    Function,
    Join,
    Leaf,
    Predicate,
    Project,
    Relation,
    Scan,
    Version,
    leaves,
)
from pytrickle.plan.postgres.eager_sum import Compared
from pytrickle.plan.postgres.in_place import entered
from pytrickle.plan.postgres.semijoin import reading
from pytrickle.plan.sql.dialect import quote


@dataclass(frozen=True, slots=True)
class Moved:
    """A table, read as it is, whose rows a term compares with a change, and the `others` that the term joins with it.

    `own` are the conditions on the table alone.
    """

    scan: Scan
    compared: Compared
    own: tuple[Predicate, ...]
    others: tuple[Leaf, ...]

    @classmethod
    def of(cls, block: Project) -> "Moved | None":
        """Find one in a term."""
        join = block.input
        assert isinstance(join, Join)
        compared = Compared.of(block, join)
        if compared is None:
            return None
        for leaf in leaves(join):
            if isinstance(leaf, Scan) and leaf.version is Version.CURRENT and compared.beside == {leaf.alias}:
                own = (p for p in join.predicates if p.expr.tables == {leaf.alias} and not p.expr.holds_query)
                others = tuple(other for other in leaves(join) if other not in (leaf, compared.leaf))
                return cls(leaf, compared, tuple(own), others)
        return None

    def serves(self, other: "Moved") -> bool:
        """Whether this term reads the table alone, and so finds all rows that the other one can need.

        Not where the other one joins changes: they find the rows that go with them by themselves.
        """
        same_table = replace(self.scan, columns=other.scan.columns) == other.scan
        same = same_table and self.compared == other.compared and set(self.own) <= set(other.own)
        joins_changes = any(not isinstance(leaf, Function) and leaf.version in BUFFERED for leaf in other.others)
        return same and not self.others and not joins_changes

    def rows(self, table: str, columns: Iterable[str], changes: str, definition: Definition) -> str:
        """Read so many columns of the rows for which the `changes` come to something."""
        shown = ", ".join(f"{quote(self.scan.alias)}.{quote(column)}" for column in columns)
        test = self.compared.test(changes, Join((self.scan,)), definition)
        tests = [*(each.expr.sql for each in self.own), test]
        return f"SELECT {shown} FROM {table} WHERE {' AND '.join(f'({test})' for test in tests)}"


def share_moved(
    parts: Iterable[Relation],
    changes_of: Callable[[Derived], str],
    from_scan: Callable[[Scan], str],
    entries: dict[str, str],
    definition: Definition,
) -> tuple[Relation, ...]:
    """Have terms that look for the same rows read one of the `entries` of the WITH list, where there are several."""
    blocks = [block for part in parts for block in blocks_of(part)]
    found = [Moved.of(block) for block in blocks]
    for moved in found:
        served = [i for i, other in enumerate(found) if moved and other and moved.serves(other)]
        if moved is None or len(served) < 2:
            continue
        columns = dict.fromkeys(name for i in served for each in (found[i],) if each for name in each.scan.columns)
        text = moved.rows(from_scan(moved.scan), columns, changes_of(moved.compared.leaf), definition)
        name = entered(entries, text, "pgt_moved")
        for i in served:
            blocks[i] = _reading(blocks[i], moved.scan.alias, name)
            found[i] = None
    return tuple(blocks)


def _reading(block: Project, alias: str, entry: str) -> Project:
    join = block.input
    assert isinstance(join, Join)
    (scan,) = (leaf for leaf in leaves(join) if isinstance(leaf, Scan) and leaf.alias == alias)
    return replace(block, input=reading(join, scan, entry))
