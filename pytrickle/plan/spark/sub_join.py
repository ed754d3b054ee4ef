"""Leaves that PostgreSQL joins before Spark sees them: those that have to be together, as one input of Spark's join.

Multiplied out, a sub-join is the join of the tables as they are, less what PAST and FUTURE take from it. Terms that
read it at the old state and at the new one share the first part, which is the large one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.delta import unfold_all
from pytrickle.plan.algebra.relation import (
    Derived,
    Expr,
    Function,
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
from pytrickle.plan.missing_index import missing_below
from pytrickle.plan.postgres.compile import Compiler
from pytrickle.plan.spark.expected_rows import of_few
from pytrickle.plan.spark.leaves import Frame, SparkLeaf

JOINED = "a join by what only PostgreSQL can compare"
AS_IT_IS = frozenset({Version.CURRENT, Version.NEW})


@dataclass(slots=True)
class Input:
    """An input of a Spark join: one leaf that is read alone, or several that PostgreSQL joins, and its conditions.

    Rows of a leaf that is `looked_up` are found by an index.
    """

    leaves: tuple[Leaf, ...]
    tests: list[Predicate] = field(default_factory=list)
    looked_up: bool = False

    @property
    def name(self) -> str:
        """The aliases of its leaves."""
        return ", ".join(leaf.alias for leaf in self.leaves)

    @property
    def joined(self) -> bool:
        """Whether it is a sub-join, or else computed from nothing."""
        return len(self.leaves) > 1 or isinstance(self.leaves[0], Function)

    @property
    def shown(self) -> tuple[tuple[str, ...], ...]:
        """The columns of each leaf: where fewer were needed of a table, its changes have only those."""
        return tuple(leaf.operation.columns if isinstance(leaf, Derived) else leaf.columns for leaf in self.leaves)

    @property
    def where(self) -> str:
        """Its conditions, as a text."""
        return f" WHERE {' AND '.join(f'({test.expr.sql})' for test in self.tests)}" if self.tests else ""


def inputs_of(leaves: Iterable[Leaf], together: Iterable[frozenset[str]]) -> list[Input]:
    """Unite leaves wherever some aliases have to be together; the order is that of the first leaf of each input.

    >>> left, right, last = (Scan(alias, 1, ()) for alias in "abc")
    >>> [each.name for each in inputs_of((left, right, last), [frozenset("ac")])]
    ['a, c', 'b']
    """
    found = [Input((leaf,)) for leaf in leaves]
    for aliases in together:
        touched = [each for each in found if aliases & {leaf.alias for leaf in each.leaves}]
        for other in touched[1:]:
            touched[0].leaves += other.leaves
            found.remove(other)
    return found


@dataclass(slots=True)
class SubJoins:
    """Collects what the terms of a delta ask of their sub-joins, then writes the reads."""

    definition: Definition
    ranges: Mapping[int, ChangeRange]
    asked: dict[tuple[object, ...], list[Expr]] = field(default_factory=dict)

    def column(self, each: Input, expr: Expr) -> str:
        """Ask for an expression over the rows of a sub-join; return the column that will hold it."""
        texts = [known.sql for known in self._asked(each)]
        if expr.sql not in texts:
            self._asked(each).append(expr)
            texts.append(expr.sql)
        return f"c{texts.index(expr.sql)}"

    def leaf(self, each: Input) -> SparkLeaf:
        """Write the reads of a sub-join with all that was asked of it; how many rows it has nobody knows."""
        columns = tuple((f"c{i}", expr) for i, expr in enumerate(self._asked(each)))
        parts = unfold_all((Project(Join(each.leaves, tuple(each.tests)), columns),), self.ranges)
        whole = tuple(part for part in parts if all(map(_is_as_it_is, leaves(part))))
        others = tuple(part for part in parts if part not in whole)
        frames = tuple(self._frame(found) for found in (whole, others) if found)
        changed = any(not isinstance(leaf, Function) and leaf.version is Version.DELTA for leaf in each.leaves)
        return SparkLeaf(frames, tuple(name for name, _ in columns), multiplies=changed)

    def _asked(self, each: Input) -> list[Expr]:
        return self.asked.setdefault((each.name, each.where, each.shown), [])

    def _frame(self, parts: tuple[Relation, ...]) -> Frame:
        compiler = Compiler(self.definition, self.ranges, worth_asking=self._worth_asking)
        joined = any(len(leaves(part)) > 1 for part in parts)
        expected = of_few(self.definition, frozenset().union(*map(relids, parts)))
        return Frame(compiler.within(compiler.rows(UnionAll(parts))), left=JOINED if joined else "", rows=expected)

    def _worth_asking(self, operation: Operation, keys: frozenset[str]) -> bool:
        return operation.linear or not missing_below(operation, self.definition, keys)


def _is_as_it_is(leaf: Leaf) -> bool:
    match leaf:
        case Scan(version=version, negated=negated) | Derived(version=version, negated=negated):
            return version in AS_IT_IS and not negated
        case Function():
            return True


def further_test(test: str, alias: str) -> Predicate:
    """Make a condition on one leaf of a text that holds a subquery."""
    return Predicate(replace(Expr(test, frozenset({alias})), holds_query=True))
