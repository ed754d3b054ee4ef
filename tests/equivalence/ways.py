"""Stream tables whose refreshes may go either way: from the changes, or whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytrickle.client.client import Client
from tests.conftest import Database
from tests.equivalence.local_engine import LocalEngine, local_client
from tests.equivalence.oracle import differences

ROWS = 20_000
# Analyzed once: autovacuum between two statements of a test would change what PostgreSQL's planner expects.
TABLES = f"""
CREATE TABLE a (id int PRIMARY KEY, k int, v numeric) WITH (autovacuum_enabled = off);
CREATE TABLE b (k int PRIMARY KEY, name text) WITH (autovacuum_enabled = off);
INSERT INTO a SELECT i, i % 50, i % 7 FROM generate_series(1, {ROWS}) AS i;
INSERT INTO b SELECT i, 'name ' || i FROM generate_series(0, 49) AS i;
"""
QUERIES = {
    "grouped": "SELECT k, count(*) AS n, sum(v) AS s, avg(v) AS mean, min(v) AS low FROM a GROUP BY k"
    " HAVING count(*) > 3",
    "scalar": "SELECT count(*) AS n, max(v) AS high FROM a",
    "joined": "SELECT a.id, a.v, b.name FROM a JOIN b USING (k)",
    "names": "SELECT DISTINCT b.name, a.v FROM a JOIN b USING (k)",
}
MANY = f"UPDATE a SET v = v + 1 WHERE id <= {ROWS}"
FEW_ROWS = "UPDATE a SET v = v + 1 WHERE id IN (7, 8)"


@dataclass(frozen=True)
class World:
    """A database with the tables, and a client on the engine's double."""

    db: Database
    pt: Client
    engine: LocalEngine

    def tick(self) -> dict[str, str]:
        """Tick; return the actions by unqualified name."""
        results = self.pt.tick()
        assert not [result.error for result in results if result.error]
        return {result.stream_table.partition(".")[2]: result.action for result in results}

    def forget(self) -> None:
        """Drop the history, so that the choice does not depend on how fast this machine is."""
        self.db.execute("DELETE FROM pgtrickle.pgt_refresh_history")

    def assert_exact(self, names: tuple[str, ...] = tuple(QUERIES)) -> None:
        with self.db.connect() as connection:
            wrong = {name: differences(connection, name, QUERIES[name], True) for name in names}
        assert wrong == {name: [] for name in names}


@dataclass
class Prices:
    """What PostgreSQL's planner is made to say that a delta and a whole query cost; `asked` are the queries."""

    delta: float
    whole: float = 100_000.0
    asked: list[str] = field(default_factory=list)

    def cost(self, _: object, query: str, __: object) -> float:
        self.asked.append(query)
        return self.delta if "pgtrickle_changes" in query else self.whole


@contextmanager
def world_of(db: Database) -> Iterator[World]:
    """The tables, analyzed; no stream table yet."""
    with db.connect() as connection:
        connection.execute(TABLES)
        connection.execute("ANALYZE")
    with local_client(db.dsn, direct_delta_rows=0) as (client, engine):
        yield World(db, client, engine)


def create(world: World, names: tuple[str, ...] = tuple(QUERIES), **options: str) -> None:
    for name in names:
        world.pt.create_stream_table(name, QUERIES[name], **options)
    world.tick()


def took(world: World, action: str, seconds: float) -> None:
    """Pretend that what was done so far took so long in PostgreSQL."""
    world.db.execute(
        f"UPDATE pgtrickle.pgt_refresh_history SET started_at = finished_at - {seconds} * interval '1 second',"
        f" engine = 'postgres', phases = NULL WHERE action = '{action}'"
    )
