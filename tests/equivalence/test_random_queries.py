"""Random queries over random tables and random changes: differential = recomputed, after every batch."""

from dataclasses import dataclass, field
from random import Random

import psycopg
import pytest

from pytrickle.client import Client
from pytrickle.errors import PytrickleError
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.equivalence.oracle import differences
from tests.equivalence.queries import Query, Writer
from tests.equivalence.schemas import Column, Table, creation, insertion, mutation, random_tables

QUERIES, BATCHES = 12, 5


@dataclass
class World:
    """Tables, views and stream tables of one seed, and the script that made them, for whoever must reproduce it."""

    db: Database
    client: Client
    engine: LocalEngine
    rng: Random
    tables: tuple[Table, ...] = ()
    sources: list[Table] = field(default_factory=list)
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
            rows = [insertion(self.rng, table, self.rng.randint(0, 9))] if self.rng.random() < 0.9 else []
            self.run(*creation(self.rng, table), *(row for row in rows if "VALUES  ON" not in row))
        self.sources = [*self.tables, *self.tables]
        for number in range(2):
            writer = Writer(self.rng, self.tables, left=3)
            query = writer.plain()
            self.run(f"CREATE VIEW view{number} AS {query.sql}")
            self.sources.append(Table(f"view{number}", query.columns, width=3 - writer.left))

    def create_stream_tables(self) -> None:
        for number in range(QUERIES):
            query, name = Writer(self.rng, tuple(self.sources)).query(), f"st{number}"
            self.script.append(f"-- {name}: {query.sql}")
            try:
                self.client.create_stream_table(name, query.sql)
            except PytrickleError as error:
                raise AssertionError(str(self)) from error
            self.queries[name] = query
            if self.rng.random() < 0.3:
                self.sources.append(Table(name, tuple(Column(c.name, c.type) for c in query.columns)))

    def mutate(self) -> None:
        for _ in range(self.rng.randint(1, 4)):
            table = self.rng.choice(self.tables)
            try:
                self.run(*mutation(self.rng, table))
            except psycopg.errors.UniqueViolation:
                self.script.append("-- refused")

    def tick(self, allowed: frozenset[str]) -> None:
        for result in self.client.tick():
            told = f"{result.stream_table}: {result.action}, {result.error or result.reason}\n{self}"
            assert result.action in allowed, told
        self.script.append("-- tick")

    def check(self) -> None:
        with self.db.connect() as connection:
            for name, query in self.queries.items():
                wrong = differences(connection, name, query.sql, query.exact)
                assert not wrong, f"{name} differs: {wrong}\n{query.sql}\n{self}"

    def verify(self) -> None:
        for name in self.queries:
            result = self.client.verify(name)
            assert result.matches, f"{result}\n{self}"

    def __str__(self) -> str:
        return ";\n".join(self.script)


@pytest.mark.parametrize("seed", range(20))
def test_random_stream_tables_equal_their_queries_after_every_batch(db: Database, seed: int) -> None:
    rng = Random(seed)
    with local_client(db.dsn, small_delta_rows=rng.choice((0, 20_000))) as (client, engine):
        world = World(db, client, engine, rng)
        world.create_tables()
        world.create_stream_tables()
        world.tick(frozenset({"FULL"}))
        world.check()
        for _ in range(BATCHES):
            world.mutate()
            world.tick(frozenset({"DIFFERENTIAL", "NO_DATA"}))
            world.check()
        world.verify()
        world.mutate()
        world.verify()
