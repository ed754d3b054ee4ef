"""A random database with stream tables over it, and the script that made it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import psycopg

from pytrickle.client.client import Client
from pytrickle.errors import PytrickleError, QueryRefused
from tests.conftest import Database
from tests.equivalence.grammar import CORE, WHOLE
from tests.equivalence.oracle import differences
from tests.equivalence.schemas import Table, creation, insertion, mutation, random_tables
from tests.equivalence.values import ALL, PREAMBLE, quote
from tests.equivalence.values import WHOLE as ALL_AND_MORE
from tests.equivalence.writer import WIDEST, Grammar, Kind, Query, Writer

MOST_ROWS = 60
LARGEST = 10
ANY_ACTION = frozenset({"FULL", "DIFFERENTIAL", "NO_DATA"})


@dataclass
class World:
    """Tables, views and stream tables of one seed, and the script that made them, for whoever must reproduce it."""

    db: Database
    client: Client
    rng: Random
    grammar: Grammar = CORE
    tables: tuple[Table, ...] = ()
    sources: list[Table] = field(default_factory=list)
    views: dict[str, str] = field(default_factory=dict)
    queries: dict[str, Query] = field(default_factory=dict)
    actions: Counter[str] = field(default_factory=Counter)
    differential: set[str] = field(default_factory=set)
    script: list[str] = field(default_factory=list)

    def run(self, *statements: str) -> None:
        connection = self.db.connect()
        with connection, connection.transaction():
            for statement in statements:
                self.script.append(statement)
                connection.execute(statement.encode())

    def create_tables(self) -> None:
        whole = self.grammar is WHOLE
        self.tables = random_tables(self.rng, ALL_AND_MORE if whole else ALL)
        self.run(*PREAMBLE if whole else ())
        for table in self.tables:
            rows = [insertion(self.rng, table, self.rng.randint(4, 12))] if self.rng.random() < 0.85 else []
            self.run(*creation(self.rng, table), *rows)
        self.sources = [*self.tables, *self.tables]
        for number in range(2):
            writer = Writer(self.rng, self.tables, self.grammar, left=2)
            query = writer.derived()
            self.views[f"view{number}"] = query.sql
            self.run(f"CREATE VIEW view{number} AS {query.sql}")
            self.sources.append(Table(f"view{number}", query.columns, width=max(1, 2 - writer.left)))

    def create_stream_tables(
        self, number_of_them: int, kinds: Sequence[Kind] = (Writer.query,), **options: Any
    ) -> None:
        for number in range(number_of_them):
            writer, name = Writer(self.rng, tuple(self.sources), self.grammar), f"st{number}"
            query = kinds[number % len(kinds)](writer)
            self.script.append(f"-- {name}: {query.sql}")
            try:
                self.client.create_stream_table(name, query.sql, **options)
            except PytrickleError as error:
                raise AssertionError(str(self)) from error
            self.queries[name] = query
            if self.rng.random() < 0.3 and self._is_small(query):
                self.sources.append(Table(name, query.columns, width=max(1, WIDEST - writer.left)))

    def _is_small(self, query: Query) -> bool:
        """Whether it may be joined again: three joins over a wide one have more rows than a test has time for."""
        rows = f"SELECT count(*) FROM (SELECT FROM ({query.sql}) AS q LIMIT {MOST_ROWS + 1}) AS found"
        return bool(self.db.value(rows) <= MOST_ROWS)

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
            self.actions[result.action] += 1
            if result.action == "DIFFERENTIAL":
                self.differential.add(result.stream_table)
        self.script.append("-- tick")

    def check(self) -> None:
        with self.db.connect() as connection:
            for name, query in self.queries.items():
                wrong = differences(connection, quote(name), query.sql, query.exact)
                assert not wrong, f"{name} differs: {wrong}\n{query.sql}\n{self}"

    def verify(self) -> None:
        for name in self.queries:
            try:
                result = self.client.verify(name)
            except QueryRefused:
                self.actions["not verified beyond the frontier"] += 1
                continue
            assert result.matches, f"{result}\n{self.queries[name].sql}\n{self}"

    def __str__(self) -> str:
        return ";\n".join(self.script)
