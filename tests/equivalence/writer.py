"""The writer of random queries: its random numbers, what it may still read, and the grammar it draws from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TypeVar

from tests.equivalence.schemas import Column, Table
from tests.equivalence.values import NAMES, Type, quote

WIDEST = 4
DEEPEST = 2

T = TypeVar("T")
Scope = tuple[Column, ...]
Item = tuple[str, Type]


@dataclass(frozen=True, slots=True)
class Query:
    """A query and its output columns."""

    sql: str
    columns: Scope

    @property
    def exact(self) -> bool:
        """Whether even the text of its rows is determined by the sources."""
        return not any(column.type.blurred for column in self.columns)


@dataclass(frozen=True, slots=True)
class From:
    """A FROM clause, its conditions, and the columns that are visible."""

    text: str
    scope: Scope
    where: tuple[str, ...] = ()

    def sql(self, *more: str) -> str:
        """Write FROM and WHERE, with more conditions."""
        conditions = " AND ".join((*self.where, *more))
        return f" FROM {self.text}" + (f" WHERE {conditions}" if conditions else "")


Kind = Callable[["Writer"], Query]


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a writer draws from, as data. What it draws may decline, by None, for want of columns or of budget.

    `kinds` are whole queries and `items` derived tables, both with their weights. `conditions`, `values` and `calls`
    are predicates, expressions of a type and aggregate calls beyond the plain ones; `laterals` are items that see what
    is left of them.
    """

    kinds: tuple[tuple[Kind, int], ...]
    items: tuple[tuple[Kind, int], ...]
    joins: tuple[str, ...] = ("JOIN",)
    conditions: tuple[Callable[["Writer", Scope], str | None], ...] = ()
    values: tuple[Callable[["Writer", Scope, Type], str | None], ...] = ()
    calls: tuple[Callable[["Writer", Scope], Item | None], ...] = ()
    laterals: tuple[Callable[["Writer", Scope], Query | None], ...] = ()


@dataclass(slots=True)
class Writer:
    """Writes random queries over some tables.

    `left` is how many more tables the query may read, `crossed` whether it already has a join that is no equality.
    """

    rng: Random
    tables: tuple[Table, ...]
    grammar: Grammar
    names: "count[int]" = field(default_factory=lambda: count(1))
    left: int = WIDEST
    crossed: bool = False
    depth: int = DEEPEST

    def query(self) -> Query:
        """Write one query."""
        return self.pick(self.grammar.kinds)(self)

    def derived(self) -> Query:
        """Write one query for a place within another."""
        self.depth -= 1
        query = self.pick(self.grammar.items)(self)
        self.depth += 1
        return query

    def pick(self, weighted: Sequence[tuple[T, int]]) -> T:
        return self.rng.choices([each for each, _ in weighted], [weight for _, weight in weighted])[0]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def alias(self) -> str:
        return f"f{next(self.names)}"

    def literal(self, type_: Type) -> str:
        return self.rng.choice(type_.literals())

    def types(self, most: int = 3) -> list[Type]:
        """Draw the types of a row from those of the tables."""
        known = [column.type for table in self.tables for column in table.columns]
        return [self.rng.choice(known) for _ in range(self.rng.randint(1, most))]

    def table(self) -> tuple[str, Scope]:
        """Draw a table to read; return it under an alias, with its columns."""
        affordable = [table for table in self.tables if table.width <= max(self.left, 1)] or self.tables
        table, alias = self.rng.choice(affordable), self.alias()
        self.left -= table.width
        return f"{table.name} AS {alias}", qualified(alias, table.columns)

    def select(self, head: str, items: Sequence[Item], rest: str) -> Query:
        """Name the items at random and write the query."""
        names = [quote(name) for name in self.rng.sample(NAMES, len(items))]
        listed = ", ".join(f"{text} AS {name}" for (text, _), name in zip(items, names, strict=True))
        columns = tuple(Column(name, each) for (_, each), name in zip(items, names, strict=True))
        return Query(f"{head} {listed}{rest}", columns)

    def total_order(self, scope: Scope) -> str:
        """Order by all columns, so that rows which tie are equal."""
        return ", ".join(self.ordered(column.name) for column in self.rng.sample(scope, len(scope)))

    def ordered(self, text: str) -> str:
        return text + self.rng.choice(("", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"))


def qualified(alias: str, columns: Scope) -> Scope:
    """The columns as they are called under an alias."""
    return tuple(Column(f"{alias}.{column.name}", column.type) for column in columns)


def chosen(query: Query) -> Query:
    """The query, where its rows are chosen among equal ones."""
    return Query(query.sql, tuple(Column(column.name, column.type.chosen()) for column in query.columns))


def alike(left: Type, right: Type) -> bool:
    """Whether two types are one, whatever is known of their values."""
    return left.name == right.name
