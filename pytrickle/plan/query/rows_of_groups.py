"""Tables of which the rows of a group hold the same row, or none: a unique key of theirs is grouped by.

What is computed from such a row alone is the same for all rows of a group, so it may serve as a key, such as
`tags ->> 'a'` where a primary key is grouped by. It is computed from the row as it is, while of a key a group shows
one of several equal values.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from pytrickle.plan.algebra.relation import Scan
from pytrickle.plan.query.block import Block, project
from pytrickle.plan.query.calls import is_call
from pytrickle.plan.query.facts import Facts
from pytrickle.plan.query.lateral import calls_set
from pytrickle.plan.query.representatives import differing
from pytrickle.plan.query.scope import WHOLE, single_source
from pytrickle.plan.query.select_clauses import shown_and_asked
from pytrickle.plan.sql.fallible import may_fail

Blocks = tuple[Block, ...]
Columns = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RowsOfGroups:
    """The `columns` of tables of which a group has one row, as (table, column) pairs, and the expressions over them.

    Equal values of those that are `unlike` may look different. `alone` is the table of columns that name none, and
    `filtered` says that HAVING drops groups.
    """

    facts: Facts
    columns: Columns
    unlike: Columns
    alone: str
    filtered: bool

    @classmethod
    def of(cls, facts: Facts, select: exp.Select, keys: list[exp.Expr], blocks: Blocks) -> RowsOfGroups:
        """Find the tables of which a unique key is grouped by, whichever block a row is of."""
        names = blocks[0].names
        alone = single_source(names) or ""
        grouped = _read(keys, alone)
        tables = [table for table in names if all(_holds_one_row(facts, table, grouped, block) for block in blocks)]
        columns = frozenset((table, name) for table in tables for name in names[table] if name != WHOLE)
        parts = shown_and_asked(select)
        read = columns & _read([each for part in parts for each in part.find_all(exp.Column)], alone)
        unlike = Columns().union(*(_unlike(facts, sorted(read), block) for block in blocks)) if read else Columns()
        return cls(facts, columns, unlike, alone, select.args.get("having") is not None)

    def settles(self, node: exp.Expr) -> bool:
        """Whether an expression is computed from these rows alone, and may tell apart values that are equal.

        One that may fail is computed for all groups, which HAVING could have spared.
        """
        read = _read(list(node.find_all(exp.Column)), self.alone)
        if isinstance(node, exp.Column) or not isinstance(node, exp.Condition):
            return False
        if not (read & self.unlike and read <= self.columns) or (self.filtered and may_fail(node)):
            return False
        definition = self.facts.definition
        return not calls_set(node, definition) and not any(
            isinstance(each, exp.Query | exp.Window) or is_call(each, definition.aggregates) for each in node.walk()
        )


def _read(nodes: list[exp.Expr], alone: str) -> Columns:
    return frozenset((each.table or alone, each.name) for each in nodes if isinstance(each, exp.Column))


def _holds_one_row(facts: Facts, table: str, grouped: Columns, block: Block) -> bool:
    columns = {name: node for name, node in block.names[table].items() if name != WHOLE}
    if all(_is_null(node) for node in columns.values()):
        return True
    aliases = {node.table if isinstance(node, exp.Column) else "" for node in columns.values()}
    scan = next((leaf for leaf in block.leaves if aliases == {leaf.alias}), None)
    if not isinstance(scan, Scan):
        return False
    own = [node for name, node in columns.items() if (table, name) in grouped and facts.never_null(node, block)]
    return any(key <= {node.name for node in own} for key in facts.definition.source(scan.relid).keys)


def _is_null(node: exp.Expr) -> bool:
    return node.find(exp.Null) is not None and node.find(exp.Column) is None


def _unlike(facts: Facts, read: list[tuple[str, str]], block: Block) -> Columns:
    """Return which columns have equal values that may look different."""
    rows = project(Block(block.leaves, (), {}), tuple(block.names[table][name] for table, name in read))
    return frozenset(each for each, sort in zip(read, differing(facts, rows), strict=True) if sort)
