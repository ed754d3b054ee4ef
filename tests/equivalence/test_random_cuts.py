"""Stream tables held back at random cuts against the history of what each cut covered."""

from dataclasses import dataclass, field
from random import Random
from typing import Any

import psycopg
import pytest

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.schemas import Table, mutation
from tests.equivalence.values import quote
from tests.equivalence.worlds import World
from tests.repeats import first

ROUNDS, QUERIES = 6, 7


@dataclass
class History:
    """Which rows every advance covered: copies that the loader's own transaction took right after it advanced."""

    world: World
    tolerance: int
    copies: dict[str, dict[int, str]] = field(default_factory=dict)
    chosen: dict[str, int] = field(default_factory=dict)
    writer: psycopg.Connection[Any] | None = None

    def load(self, table: Table, minute: int) -> None:
        """Change a table and advance its watermark somewhere within the same transaction."""
        rng = self.world.rng
        before, after = (
            [statement for _ in range(rng.randint(0, 2)) for statement in mutation(rng, table)] for _ in range(2)
        )
        copy = f"copies.c{len(self.copies.get(table.name, {}))}_{abs(hash(table.name)) % 10**6}_{minute}"
        advance = [
            f"SELECT pgtrickle.advance_watermark('{table.name}', '2024-01-01Z'::timestamptz + interval '{minute} min')",
            f"CREATE TABLE {copy} AS SELECT * FROM {table.name}",
        ]
        if self._run([*before, *advance, *after]):
            self.copies.setdefault(table.name, {})[minute] = copy

    def _run(self, statements: list[str]) -> bool:
        try:
            self.world.run("SET LOCAL lock_timeout = '50ms'", *statements)
        except (psycopg.errors.UniqueViolation, psycopg.errors.LockNotAvailable):
            self.world.script.append("-- refused")
            return False
        return True

    def begin_writer(self, table: Table) -> None:
        """Leave a transaction open that changed a table: it began before the advances and commits after them."""
        statements = ["SET LOCAL lock_timeout = '50ms'", *mutation(self.world.rng, table)]
        self.writer = self.world.db.connect(autocommit=False)
        self.world.script.append(f"-- other session: {'; '.join(statements)}")
        try:
            for statement in statements:
                self.writer.execute(statement.encode())
        except (psycopg.errors.UniqueViolation, psycopg.errors.LockNotAvailable):
            self.writer.rollback()

    def end_writer(self) -> None:
        if self.writer is not None:
            self.world.script.append("-- other session commits")
            self.writer.commit()
            self.writer.close()
        self.writer = None

    def choose(self) -> dict[str, int]:
        """Find the newest event time at which all sources agree: per source the minute of the entry to read."""
        for time in sorted({minute for entries in self.copies.values() for minute in entries}, reverse=True):
            found = {name: [minute for minute in entries if minute <= time] for name, entries in self.copies.items()}
            newest = {name: max(minutes) for name, minutes in found.items() if minutes}
            if len(newest) == len(self.world.tables) and max(newest.values()) - min(newest.values()) <= self.tolerance:
                return newest
        return {}

    def check(self, number: int) -> None:
        """Compare every stream table with its query over the copies of the chosen advances."""
        schema, chosen = f"at_{number}", self.choose()
        with self.world.db.connect() as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
            connection.execute(f"SET search_path = {schema}".encode())
            for name, minute in chosen.items():
                connection.execute(f"CREATE VIEW {name} AS TABLE {self.copies[name][minute]}".encode())
            for name, text in (*self.world.views.items(), *((n, q.sql) for n, q in self.world.queries.items())):
                connection.execute(f"CREATE VIEW {name} AS {text}".encode())
            for name, query in self.world.queries.items():
                wrong = differences(connection, f"public.{quote(name)}", query.sql, query.exact)
                assert not wrong, f"{name} differs: {wrong}\n{query.sql}\n{chosen}\n{self.world}"
        self.world.script.append(f"-- tick at {chosen}")


@pytest.mark.parametrize("seed", first(1, range(5), then=1))
def test_held_back_tables_show_exactly_what_their_cuts_cover(db: Database, seed: int) -> None:
    rng = Random(1000 + seed)
    with local_client(db.dsn, small_delta_rows=rng.choice((0, 20_000))) as (client, _):
        play_held_back(db, client, rng)


def play_held_back(db: Database, client: Client, rng: Random) -> None:
    """Load, change and advance at random; compare every stream table after every tick."""
    world = World(db, client, rng)
    history = History(world, tolerance=rng.choice((0, 0, 1, 3)))
    world.create_tables()
    world.run("CREATE SCHEMA copies")
    names = [table.name for table in world.tables]
    client.create_watermark_group("all", names, f"{history.tolerance} minutes")
    mode = rng.choice(("AUTO", "AUTO", "AUTO", "FULL"))
    world.create_stream_tables(QUERIES, watermark_gating="hold_back", refresh_mode=mode)
    for table in world.tables:
        history.load(table, 0)
    for number in range(ROUNDS):
        if history.writer is None and rng.random() < 0.6:
            history.begin_writer(rng.choice(world.tables))
        for table in rng.sample(world.tables, len(world.tables)):
            if rng.random() < 0.7:
                history.load(table, number + 1)
            else:
                history._run(mutation(rng, table))
        if rng.random() < 0.6:
            history.end_writer()
        world.tick(
            frozenset({"DIFFERENTIAL", "NO_DATA", "FULL"})
            if number == 0 or mode == "FULL"
            else frozenset({"DIFFERENTIAL", "NO_DATA"})
        )
        history.check(number)
    world.verify()
    history.end_writer()
    world.verify()
