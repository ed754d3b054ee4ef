"""The relational algebra over Z-sets: frozen nodes whose rows carry an integer weight."""

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from pytrickle.plan.algebra.construct import Construct
from pytrickle.plan.sql.dialect import row_order


class Version(StrEnum):
    """Which state of a source a scan reads.

    CURRENT is the table as the snapshot shows it; PAST and FUTURE are the buffered changes that the old and the new
    frontier do not cover, so that OLD = CURRENT - PAST, NEW = CURRENT - FUTURE and DELTA = NEW - OLD = PAST - FUTURE.
    """

    OLD = "old"
    NEW = "new"
    DELTA = "delta"
    CURRENT = "current"
    PAST = "past"
    FUTURE = "future"


BUFFERED = frozenset({Version.DELTA, Version.PAST, Version.FUTURE})
SORTED = "SELECT * FROM (\n{rows}\n) AS d ORDER BY {order}"

Column = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """A column that an expression shows unchanged: `bare`, or in parentheses; or cast to text."""

    column: Column
    bare: bool = True
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Expr:
    """A PostgreSQL expression over qualified columns and the aliases of the leaves that it reads.

    `columns` are the (alias, column) pairs that it reads. `shown` is set if it shows nothing but one of them;
    `holds_query` says that there is a subquery in it.
    """

    sql: str
    tables: frozenset[str]
    columns: frozenset[Column] = frozenset()
    shown: Shown | None = None
    holds_query: bool = False

    @property
    def column(self) -> Column | None:
        """The column that it is, without parentheses or a cast."""
        return self.shown.column if self.shown and self.shown.bare and not self.shown.as_text else None


@dataclass(frozen=True, slots=True)
class Equality:
    """A join predicate `left = right` between two plain columns, each an (alias, column) pair.

    `as_text` says that a side is cast to text, as PostgreSQL does with varchar, for which that changes nothing;
    `null_safe` that NULL equals NULL, as in IS NOT DISTINCT FROM.
    """

    left: Column
    right: Column
    as_text: bool = False
    null_safe: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """The two sides of a conjunct that compares them by one of = <> < <= > >=."""

    left: Expr
    operator: str
    right: Expr


@dataclass(frozen=True, slots=True)
class Predicate:
    """One conjunct of ON or WHERE; `equality` is set when it equates plain columns of two scans.

    `fixed` is the column that it equates with an expression, where the text has that column in parentheses.
    """

    expr: Expr
    equality: Equality | None = None
    fixed: Column | None = None
    comparison: Comparison | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A source under an alias, at one version; `negated` flips the sign of its weights.

    Of its changes those are read that an `entry` of the WITH list has, where one is named.
    """

    alias: str
    relid: int
    columns: tuple[str, ...]
    version: Version = Version.NEW
    negated: bool = False
    entry: str | None = None


class Node:
    """A node with others below it: it is hashed once, for compiling looks it up at every level of a plan."""

    __slots__ = ("_hash",)
    __match_args__: ClassVar[tuple[str, ...]] = ()
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            parts = (getattr(self, name) for name in self.__match_args__)
            object.__setattr__(self, "_hash", hash((type(self), *parts)))
            return self._hash


@dataclass(frozen=True, slots=True)
class Operation(Node):
    """A construct computed from whole partitions of its input: rows that agree in `keys`, apart from all others.

    `exact` says that equal values of every argument are the same text, `columns_canonical` that those of every column
    of the result are; `nullable` that a key may be NULL. `types` are those of the columns, where they were asked for.
    `representatives` are columns that hold one of several equal values, and may look like any of them; on the columns
    `pushed_down` PostgreSQL moves conditions below an operation that shows its rows as they are. Both come with their
    types.
    """

    construct: Construct
    input: "Relation"
    arguments: tuple[str, ...]
    keys: tuple[str, ...]
    exact: bool = True
    nullable: bool = True
    columns_canonical: bool = False
    types: tuple[str, ...] = ()
    representatives: frozenset[tuple[str, str]] = frozenset()
    pushed_down: frozenset[tuple[str, str]] = frozenset()
    __hash__ = Node.__hash__

    @property
    def name(self) -> str:
        """What its construct is called."""
        return self.construct.name

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the result."""
        return self.construct.columns(self.arguments, self.keys)

    @property
    def entries(self) -> tuple[str, ...]:
        """The columns through which a condition on the result reaches the input."""
        return self.construct.entries(self.arguments, self.keys)

    @property
    def linear(self) -> bool:
        """Whether it is its input, with its weights."""
        return self.construct.linear

    @property
    def depends_on_order(self) -> bool:
        """Whether its rows are sorted before it is computed: by the keys, the construct's order and their text."""
        return self.construct.depends_on_order(self.exact)

    @property
    def settled(self) -> bool:
        """Whether its result depends on no order of rows that the query leaves open."""
        return not self.depends_on_order and self.takes_any_order

    @property
    def takes_any_order(self) -> bool:
        """Whether an order of rows decides about nothing but which of several equal values it shows."""
        return not (self.construct.depends_on_order(exact=True) or self.construct.breaks_ties)

    def result(self, rows: str) -> str:
        """Write it over a query for rows of its arguments."""
        if self.depends_on_order:
            first = [*self.keys, *self.construct.ordering, row_order(self.arguments)]
            rows = SORTED.format(rows=rows, order=", ".join(first))
        return self.construct.over(f"(\n{rows}\n)", self.arguments, self.keys)


@dataclass(frozen=True, slots=True)
class Derived(Node):
    """The result of an operation under an alias, at one version; its rows count once unless it is linear.

    With `excludes` it stands for the partners that rows must not have: its join is taken away from all rows.
    """

    alias: str
    operation: Operation
    version: Version = Version.NEW
    negated: bool = False
    excludes: bool = False
    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class Function:
    """A FROM item computed from the row to its left or from nothing: a set-returning function, VALUES or a subquery.

    It `reads` columns of other leaves, as (alias, column) pairs.
    """

    alias: str
    sql: str
    reads: frozenset[tuple[str, str]]
    columns: tuple[str, ...]

    @property
    def tables(self) -> frozenset[str]:
        """The aliases of the leaves whose columns it reads."""
        return frozenset(alias for alias, _ in self.reads)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Inner join of any number of relations; weights multiply, and change sign if it is `negated`."""

    inputs: tuple["Relation", ...]
    predicates: tuple[Predicate, ...] = ()
    negated: bool = False
    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class Project(Node):
    """Named expressions over a relation; weights pass through."""

    input: "Relation"
    columns: tuple[tuple[str, Expr], ...]
    __hash__ = Node.__hash__


@dataclass(frozen=True, slots=True)
class UnionAll(Node):
    """Bag union of relations with the same columns; weights pass through."""

    inputs: tuple["Relation", ...]
    __hash__ = Node.__hash__


Leaf = Scan | Derived | Function
Relation = Leaf | Join | Project | UnionAll


def leaves(node: Relation) -> tuple[Leaf, ...]:
    """List the leaves of a relation from left to right; what is below an operation is not among them."""
    match node:
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            return tuple(leaf for child in inputs for leaf in leaves(child))
        case Project(input=child):
            return leaves(child)
        case _:
            return (node,)


def scans(node: Relation) -> tuple[Scan, ...]:
    """List the scans among the leaves."""
    return tuple(leaf for leaf in leaves(node) if isinstance(leaf, Scan))


def relids(node: Relation) -> frozenset[int]:
    """Return the sources that a relation reads, at any depth."""
    found: frozenset[int] = frozenset()
    for leaf in leaves(node):
        match leaf:
            case Scan(relid=relid):
                found |= {relid}
            case Derived(operation=operation):
                found |= relids(operation.input)
    return found


def operations(node: Relation) -> tuple[Operation, ...]:
    """List the operations of a relation, at any depth, each once."""
    found: dict[Operation, None] = {}
    for leaf in leaves(node):
        if isinstance(leaf, Derived):
            found |= dict.fromkeys(operations(leaf.operation.input)) | {leaf.operation: None}
    return tuple(found)
