"""A random database with stream tables over it, and the script that made it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import psycopg

from pytrickle.client import Client
from pytrickle.errors import PytrickleError
from tests.conftest import Database
from tests.equivalence.oracle import differences
from tests.equivalence.queries import WIDEST, Query, Writer
from tests.equivalence.schemas import Table, creation, insertion, mutation, random_tables
from tests.equivalence.values import quote

MOST_ROWS = 60

LARGEST = 12


@dataclass
class World:
    """Tables, views and stream tables of one seed, and the script that made them, for whoever must reproduce it."""

    db: Database
    client: Client
    rng: Random
    tables: tuple[Table, ...] = ()
    sources: list[Table] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    script: list[str] = field(default_factory=list)

    def run(self, *statements: str) -> None:
        connection = self.db.connect()
        with connection, connection.transaction():
            for statement in statements:
                self.script.append(statement)
                connection.execute(statement.encode())

    def create_tables(self) -> None:
        self.tables = random_tables(self.rng)
        for table in self.tables:
            rows = [insertion(self.rng, table, self.rng.randint(4, 12))] if self.rng.random() < 0.85 else []
            self.run(*creation(self.rng, table), *rows)
        self.sources = [*self.tables, *self.tables]
        for number in range(2):
            writer = Writer(self.rng, self.tables, left=3)
            query = writer.plain()
            self.views[f"view{number}"] = query.sql
            self.run(f"CREATE VIEW view{number} AS {query.sql}")
            self.sources.append(Table(f"view{number}", query.columns, width=3 - writer.left))

    def create_stream_tables(
        self, number_of_them: int, kinds: Sequence[Callable[[Writer], Query]] = (Writer.query,), **options: Any
    ) -> None:
        for number in range(number_of_them):
            writer, name = Writer(self.rng, tuple(self.sources)), f"st{number}"
            query = kinds[number % len(kinds)](writer)
            self.script.append(f"-- {name}: {query.sql}")
            try:
                self.client.create_stream_table(name, query.sql, **options)
            except PytrickleError as error:
                raise AssertionError(str(self)) from error
            self.queries[name] = query
            if self.rng.random() < 0.3 and self._is_small(query):
                self.sources.append(Table(name, query.columns, width=WIDEST - writer.left))

    def _is_small(self, query: Query) -> bool:
        """Whether it may be joined again: three joins over a wide one have more rows than a test has time for."""
        rows = self.db.execute(f"SELECT FROM ({query.sql}) AS q LIMIT {MOST_ROWS + 1}")
        return len(list(rows)) <= MOST_ROWS

    def mutate(self) -> None:
        for _ in range(self.rng.randint(2, 5)):
            table = self.rng.choice(self.tables)
            try:
                self.run(*mutation(self.rng, table))
            except psycopg.errors.UniqueViolation:
                self.script.append("-- refused")
        for table in self.tables:
            surplus = f"SELECT ctid FROM {table.name} ORDER BY ctid OFFSET {LARGEST}"
            self.run(f"DELETE FROM {table.name} WHERE ctid = ANY (ARRAY({surplus}))")

    def tick(self, allowed: frozenset[str]) -> None:
        for result in self.client.tick():
            told = f"{result.stream_table}: {result.action}, {result.error or result.reason}\n{self}"
            assert result.action in allowed, told
        self.script.append("-- tick")

    def check(self) -> None:
        with self.db.connect() as connection:
            for name, query in self.queries.items():
                wrong = differences(connection, quote(name), query.sql, query.exact)
                assert not wrong, f"{name} differs: {wrong}\n{query.sql}\n{self}"

    def verify(self) -> None:
        for name in self.queries:
            result = self.client.verify(name)
            assert result.matches, f"{result}\n{self}"

    def __str__(self) -> str:
        return ";\n".join(self.script)
