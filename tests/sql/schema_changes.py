"""A small world in which schema changes are tried: sources, a view and a function, and stream tables over them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytrickle
from tests.conftest import Database
from tests.equivalence.local_engine import local_client

WORLD = """
CREATE SCHEMA elsewhere;
CREATE TYPE mood AS ENUM ('low', 'high');
CREATE DOMAIN amounts AS integer;
CREATE TABLE orders (
    id integer PRIMARY KEY,
    region text DEFAULT 'north',
    amount amounts DEFAULT 5,
    feeling mood DEFAULT 'high',
    price numeric(6, 2) DEFAULT 1.25,
    unread text DEFAULT 'x',
    doubled integer GENERATED ALWAYS AS (amount * 2) STORED
);
CREATE TABLE regions (name text, title text);
CREATE TABLE events (id integer, day integer DEFAULT 1, note text DEFAULT 'n') PARTITION BY RANGE (day);
CREATE TABLE events_low PARTITION OF events FOR VALUES FROM (0) TO (10);
CREATE TABLE events_high PARTITION OF events FOR VALUES FROM (10) TO (20);
CREATE TABLE loose (note text, day integer, id integer);
CREATE VIEW seen AS SELECT id, region FROM orders;
CREATE FUNCTION shown(amount integer) RETURNS integer IMMUTABLE LANGUAGE sql AS 'SELECT amount + 1';
INSERT INTO orders (id) VALUES (1), (2);
INSERT INTO regions VALUES ('north', 'The north');
INSERT INTO events VALUES (1, 5), (2, 15);
INSERT INTO loose VALUES ('l', 25, 3);
"""
STREAM_TABLES = {
    "copied": "SELECT id, region, amount, doubled FROM orders",
    "moods": "SELECT feeling, count(*) AS n FROM orders WHERE feeling <> 'low' GROUP BY feeling",
    "totals": "SELECT region, count(*) AS n, sum(price) AS price FROM orders GROUP BY region",
    "titled": "SELECT o.id, r.title FROM orders AS o JOIN regions AS r ON r.name = o.region",
    "viewed": "SELECT id, region FROM seen",
    "computed": "SELECT id, shown(amount) AS shown FROM orders",
    "happened": "SELECT id, day, note FROM events",
    "onward": "SELECT region, n FROM totals",
}


@dataclass
class World:
    """The world with its stream tables filled; changes of both sources are pending. `last` numbers inserted rows."""

    db: Database
    pt: pytrickle.Client
    last: int = 10
    actions: dict[str, str] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    def write(self, *tables: str) -> None:
        """Insert a row of defaults into tables, as a loader would that is not told of the change."""
        for table in tables:
            self.last += 1
            self.db.execute(f"INSERT INTO {table} (id) VALUES ({self.last})")

    def tick(self) -> dict[str, str]:
        """Tick; return the actions by unqualified name and remember the errors."""
        results = {result.stream_table.rpartition(".")[2]: result for result in self.pt.tick()}
        self.errors = {name: result.error for name, result in results.items() if result.error}
        self.actions = {name: result.action for name, result in results.items()}
        return self.actions

    def wrong(self) -> list[str]:
        """Verify every stream table; return the names of those that differ from their defining query."""
        found = [self.pt.verify(table.stream_table) for table in self.pt.stream_tables()]
        return [result.stream_table for result in found if not result.matches]


@contextmanager
def changing_world(db: Database) -> Iterator[World]:
    """Build the world, fill its stream tables and leave changes in the buffers."""
    db.execute(WORLD)
    with local_client(db.dsn) as (client, _):
        for name, query in STREAM_TABLES.items():
            client.create_stream_table(name, query)
        world = World(db, client)
        world.tick()
        db.execute("UPDATE orders SET amount = 7 WHERE id = 1")
        world.write("orders", "events")
        yield world
