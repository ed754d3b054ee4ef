"""The generated tables: many small sources, and ten times as many stream tables of four kinds over them."""

from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

ROWS, GROUPS = 100, 10

# What each tenth of the stream tables is: every kind reads source a; a join also b, and a chain the first of a's.
KINDS = (
    "SELECT id, amount FROM {a} WHERE amount > 20",
    "SELECT id, amount * 2 AS twice FROM {a}",
    "SELECT id, grp FROM {a} WHERE grp < 5",
    "SELECT id, amount - grp AS net FROM {a} WHERE amount > 50",
    "SELECT grp, count(*) AS n, sum(amount) AS total FROM {a} GROUP BY grp",
    "SELECT grp, sum(amount) AS total FROM {a} WHERE amount > 30 GROUP BY grp",
    "SELECT grp, avg(amount) AS average FROM {a} GROUP BY grp",
    "SELECT x.id, x.amount, y.amount AS other FROM {a} AS x JOIN {b} AS y ON y.id = x.id",
    "SELECT x.grp, sum(y.amount) AS total FROM {a} AS x JOIN {b} AS y ON y.id = x.id GROUP BY x.grp",
    "SELECT id, amount FROM {first} WHERE amount > 60",
)


@dataclass(frozen=True, slots=True)
class Fleet:
    """So many sources, and the stream tables over them: one of every kind for each source, in as many rounds."""

    sources: int
    tables: int

    def create_sources(self, connection: psycopg.Connection) -> None:
        """Create and fill the sources."""
        connection.execute("CREATE SCHEMA fleet")
        for number in range(self.sources):
            name = _source(number)
            connection.execute(
                f"CREATE TABLE {name} (id int PRIMARY KEY, grp int NOT NULL, amount int NOT NULL)".encode()
            )
            rows = f"SELECT n, n % {GROUPS}, n % 100 FROM generate_series(1, {ROWS}) AS n"
            connection.execute(f"INSERT INTO {name} {rows}".encode())
        connection.execute("VACUUM ANALYZE")

    def definitions(self) -> Iterator[tuple[str, str]]:
        """Yield name and defining query of every stream table, what is read before what reads it."""
        for number in range(self.tables):
            kind, source = divmod(number, self.sources)
            a, b = _source(source), _source((source + 1) % self.sources)
            yield f"fleet.t_{number}", KINDS[kind % len(KINDS)].format(a=a, b=b, first=f"fleet.t_{source}")

    def change_one(self, connection: psycopg.Connection, number: int) -> None:
        """Change one row of one source."""
        connection.execute(f"UPDATE {_source(number)} SET amount = amount + 1 WHERE id = 99".encode())


def _source(number: int) -> str:
    return f"fleet.s_{number}"
