"""The relational algebra over Z-sets: frozen nodes whose rows carry an integer weight."""

from dataclasses import dataclass
from enum import StrEnum


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


@dataclass(frozen=True, slots=True)
class Expr:
    """A PostgreSQL expression over qualified columns and the scan aliases that it reads."""

    sql: str
    tables: frozenset[str]


@dataclass(frozen=True, slots=True)
class Equality:
    """A join predicate `left = right` between two plain columns, each an (alias, column) pair.

    `as_text` says that a side is cast to text, as PostgreSQL does with varchar, for which that changes nothing.
    """

    left: tuple[str, str]
    right: tuple[str, str]
    as_text: bool = False


@dataclass(frozen=True, slots=True)
class Predicate:
    """One conjunct of ON or WHERE; `equality` is set when it equates plain columns of two scans."""

    expr: Expr
    equality: Equality | None = None


@dataclass(frozen=True, slots=True)
class Scan:
    """A source under an alias, at one version; `negated` flips the sign of its weights."""

    alias: str
    relid: int
    columns: tuple[str, ...]
    version: Version = Version.NEW
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Join:
    """Inner join of any number of relations; weights multiply. One input makes it a filter."""

    inputs: tuple["Relation", ...]
    predicates: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Project:
    """Named expressions over a relation; weights pass through."""

    input: "Relation"
    columns: tuple[tuple[str, Expr], ...]


@dataclass(frozen=True, slots=True)
class UnionAll:
    """Bag union of relations with the same columns; weights pass through."""

    inputs: tuple["Relation", ...]


Relation = Scan | Join | Project | UnionAll


@dataclass(frozen=True, slots=True)
class Call:
    """An aggregate call `function(argument)`; `argument` names an input column, None means count(*)."""

    name: str
    function: str
    argument: str | None


@dataclass(frozen=True, slots=True)
class Aggregate:
    """GROUP BY over `keys` (columns of the input), then HAVING and the final projection over keys and calls.

    `grouped` is False for a query without GROUP BY, which has one row even over no input. `shown_keys` pairs keys with
    output columns that show them unchanged.
    """

    input: Relation
    keys: tuple[str, ...]
    calls: tuple[Call, ...]
    having: str | None
    output: tuple[tuple[str, str], ...]
    grouped: bool
    shown_keys: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A differentiable defining query: rows, and the aggregate over them if there is one."""

    rows: Relation
    row_columns: tuple[str, ...]
    aggregate: Aggregate | None


def scans(node: Relation) -> tuple[Scan, ...]:
    """List the leaves of a relation from left to right."""
    match node:
        case Scan():
            return (node,)
        case Join(inputs=inputs) | UnionAll(inputs=inputs):
            return tuple(leaf for child in inputs for leaf in scans(child))
        case Project(input=child):
            return scans(child)
