"""The tree that `explain` draws: what is done, where, and on about how many rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import singledispatchmethod
from math import prod
from typing import Any

from pytrickle.catalog.definition import ChangeRange, Definition
from pytrickle.plan.algebra.relation import Equality, Join, Project, Scan, UnionAll, Version
from pytrickle.readable import counted
from pytrickle.sql_name import sql_name

SUB_JOIN = "what has to be joined before"
NOTHING: Mapping[str, int] = {}
SYMBOLS = {Version.DELTA: "Δ", Version.OLD: "old ", Version.NEW: "new "}


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a refresh: what is done, on how many rows (None: unknown), and where, if not where its result goes.

    `counted` says that the rows were counted, not estimated.
    """

    label: str
    rows: int | None = None
    place: str | None = None
    parts: tuple["Part", ...] = ()
    counted: bool = False

    def data(self) -> dict[str, Any]:
        """Return the tree as nested dictionaries."""
        return {
            "part": self.label,
            "rows": self.rows,
            "counted": self.counted,
            "place": self.place,
            "parts": [part.data() for part in self.parts],
        }

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> "Part":
        """Read a tree back from its description."""
        parts = tuple(cls.of(each) for each in data["parts"])
        return cls(data["part"], data["rows"], data["place"], parts, data["counted"])

    def lines(self) -> Iterator[str]:
        """Draw the tree, one line for each part.

        >>> print(*Part("join", 2, "Spark", (Part("a", 1, counted=True), Part("b", 2000))).lines(), sep="\\n")
        join, about 2 rows [Spark]
        ├─ a, 1 row
        └─ b, about 2,000 rows
        """
        about = "" if self.counted else "about "
        rows = "" if self.rows is None else f", {about}{self.rows:,} row{'' if self.rows == 1 else 's'}"
        yield f"{self.label}{rows}" + (f" [{self.place}]" if self.place else "")
        for part in self.parts:
            first, further = ("└─ ", "   ") if part is self.parts[-1] else ("├─ ", "│  ")
            for number, line in enumerate(part.lines()):
                yield (further if number else first) + line


def symbol(node: Any) -> str:
    """Write the version at which a node is read."""
    version = getattr(node, "version", None)
    return SYMBOLS.get(version, "") if isinstance(version, Version) else ""


def name_of(node: Any) -> str:
    """Name a node that is no source: its operation, or its class."""
    operation = getattr(node, "operation", None) or node
    return str(getattr(operation, "name", type(operation).__name__.lower()))


def inputs_of(node: Any) -> tuple[Any, ...]:
    """Return what a node of the algebra reads, whatever its class: its `inputs`, its `input`, or its operation's."""
    if (inputs := getattr(node, "inputs", None)) is not None:
        return tuple(inputs)
    if (child := getattr(node, "input", None)) is not None:
        return (child,)
    operation = getattr(node, "operation", None)
    return () if operation is None else inputs_of(operation)


@dataclass(frozen=True, slots=True)
class RelationTree:
    """Draws relations: `leaf_place` is where the leaves of their joins are read, operations with all below them.

    From the leaves with the aliases `reached` only the rows that changes join are read, about so many. PostgreSQL joins
    the leaves that are `together` before. Operations that are `computed` above their leaves, each named by its alias
    and version, are computed where joins are.
    """

    definition: Definition
    ranges: dict[int, ChangeRange]
    leaf_place: str | None = None
    reached: Mapping[str, int] = field(default_factory=dict)
    together: tuple[frozenset[str], ...] = ()
    computed: frozenset[tuple[str, Version]] = frozenset()

    @singledispatchmethod
    def part(self, node: Any) -> Part:
        """Draw a node; one of an unknown class by its name, its version and its inputs."""
        operation = getattr(node, "operation", None)
        if operation is None:
            tree, place = self, None
        elif self._is_computed_above(node):
            tree, place = replace(self, reached={}, together=()), "Spark"
        else:
            tree, place = self._below(), self.leaf_place
        parts = tuple(tree.part(child) for child in inputs_of(node))
        return Part(f"{symbol(node)}{name_of(node)}", _most(parts), place, parts)

    def _is_computed_above(self, node: Any) -> bool:
        """Whether an operation is; the old state is its new state less its delta."""
        version = Version.DELTA if node.version is Version.DELTA else Version.NEW
        return (node.alias, version) in self.computed

    @part.register
    def _(self, node: Scan) -> Part:
        source, change_range = self.definition.source(node.relid), self.ranges[node.relid]
        buffered = {
            Version.DELTA: change_range.delta_rows,
            Version.PAST: change_range.past_rows,
            Version.FUTURE: change_range.future_rows,
        }
        rows = buffered.get(node.version, source.estimated_rows)
        rewound = {Version.OLD: change_range.past_rows, Version.NEW: change_range.future_rows}.get(node.version, 0)
        note = f" less {counted(rewound, 'buffered change')}" if rewound else ""
        label = f"{symbol(node)}{sql_name(source.schema, source.name)}{note}"
        if node.alias in self.reached:
            fewer = min(rows, self.reached[node.alias])
            return Part(f"{label}, only rows that changes join", fewer, self.leaf_place)
        return Part(label, rows, self.leaf_place, counted=node.version in buffered)

    @part.register
    def _(self, node: Project) -> Part:
        return self.part(node.input)

    @part.register
    def _(self, node: UnionAll) -> Part:
        parts = tuple(self.part(child) for child in node.inputs)
        return Part("union", sum(part.rows or 0 for part in parts), None, parts)

    @part.register
    def _(self, node: Join) -> Part:
        parts = tuple(self.part(child) for child in node.inputs)
        if len(parts) == 1 and not node.predicates and not node.negated:
            return parts[0]
        pairs = [predicate.equality for predicate in node.predicates if predicate.equality]
        names = {leaf.alias: self.name(leaf) for leaf in leaves(node)}
        shown = [
            _sign(pair).join(
                f"{names.get(alias, alias)}.{sql_name(column)}" for alias, column in (pair.left, pair.right)
            )
            for pair in pairs
        ]
        others = len(node.predicates) - len(pairs)
        shown += [f"{others} condition{'' if others == 1 else 's'}"] if others else []
        label = ("join" if len(parts) > 1 else "filter") + (f" on {' and '.join(shown)}" if shown else "")
        return Part(
            f"{'− ' if node.negated else ''}{label}", self._joined(node, parts), None, self._inputs(node, parts)
        )

    def _inputs(self, node: Join, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """Draw what is joined, leaves that PostgreSQL joins before as one part."""
        if not self.together:
            return parts
        below, found = self._below(self.reached), list[Part]()
        for aliases in self.together:
            inner = tuple(below.part(leaf) for leaf in leaves(node) if leaf.alias in aliases)
            found.append(Part(SUB_JOIN, None, self.leaf_place, inner))
        before = frozenset[str]().union(*self.together)
        return (*found, *(self.part(leaf) for leaf in leaves(node) if leaf.alias not in before))

    def _below(self, reached: Mapping[str, int] = NOTHING) -> "RelationTree":
        """Draw what is below what has a place."""
        return replace(self, leaf_place=None, reached=reached, together=(), computed=frozenset())

    def name(self, leaf: Any) -> str:
        """Name a leaf as a condition would: its table, or the operation below it."""
        return sql_name(self.definition.source(leaf.relid).name) if isinstance(leaf, Scan) else name_of(leaf)

    def _joined(self, node: Join, parts: tuple[Part, ...]) -> int | None:
        """Expect one partner on the larger side of every pair of relations that an equality connects."""
        if any(part.rows is None for part in parts):
            return None
        rows = {leaf.alias: self.part(leaf).rows or 0 for child in node.inputs for leaf in leaves(child)}
        pairs = {
            frozenset((pair.left[0], pair.right[0])) for predicate in node.predicates if (pair := predicate.equality)
        }
        divisor = prod(max(1, *(rows.get(alias, 1) for alias in pair)) for pair in pairs)
        product = prod(part.rows or 0 for part in parts)
        return max(product // divisor, min(1, product))


def _sign(pair: Equality) -> str:
    return " IS NOT DISTINCT FROM " if pair.null_safe else " = "


def leaves(node: Any) -> tuple[Any, ...]:
    """List the nodes below that conditions name by an alias."""
    if getattr(node, "alias", None) is not None:
        return (node,)
    return tuple(leaf for child in inputs_of(node) for leaf in leaves(child))


def _most(parts: tuple[Part, ...]) -> int | None:
    return max((part.rows for part in parts if part.rows is not None), default=None)
