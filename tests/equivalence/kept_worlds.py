"""Queries with groups within them, the tables that they read, and what may happen to those."""

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import psycopg
import pytest

import pytrickle
from pytrickle.client.client import Client
from pytrickle.plan import kept_operations
from tests.conftest import Database

TABLES = """
CREATE TABLE lines (
    id int PRIMARY KEY, part int NOT NULL, zone int, price numeric(10,2), weight numeric, pieces bigint
);
CREATE TABLE parts (part int PRIMARY KEY, name text, price numeric(10,2));
CREATE INDEX ON lines (part);
INSERT INTO parts SELECT g, 'part ' || g, g * 1.5 FROM generate_series(1, 20) AS g;
"""
FILL = """
INSERT INTO lines SELECT g, g % 17, nullif(g % 5, 0), g % 13 * 1.1, (g % 7)::numeric / 10 ^ (g % 3), g % 11
FROM generate_series(1, 400) AS g
"""
QUERIES = {
    "best": """
        WITH r AS (SELECT part, sum(price * (1 - weight / 100)) AS total FROM lines WHERE pieces > 1 GROUP BY part)
        SELECT p.part, p.name, r.total FROM parts AS p JOIN r USING (part) WHERE r.total = (SELECT max(total) FROM r)
    """,
    "earned": """
        WITH r AS (SELECT part, sum(price * (2 - price)) AS total, avg(-price) AS mean FROM lines GROUP BY part)
        SELECT p.part, r.total, r.mean FROM parts AS p JOIN r USING (part) WHERE r.total >= (SELECT avg(total) FROM r)
    """,
    "shares": "SELECT part, sum(price) / (SELECT nullif(sum(price), 0) FROM lines) AS share FROM lines GROUP BY part",
    "large": """
        SELECT part, sum(price) AS total FROM lines GROUP BY part
        HAVING sum(price) > (SELECT sum(price) * 0.05 FROM lines)
    """,
    "averages": """
        SELECT p.name, a.mean, a.known FROM parts AS p
        JOIN (SELECT part, avg(weight) AS mean, count(weight) AS known FROM lines GROUP BY part) AS a USING (part)
    """,
    "all_parts": """
        SELECT p.part, p.name, a.* FROM parts AS p LEFT JOIN (
            SELECT part AS of, sum(weight) AS weight, count(*) AS lines, sum(pieces) AS pieces FROM lines GROUP BY part
        ) AS a ON a.of = p.part
    """,
    "correlated": """
        SELECT p.part, (SELECT sum(price) FROM lines AS l WHERE l.part = p.part) AS total,
            (SELECT count(*) FROM lines AS l WHERE l.part = p.part AND l.price > 5) AS dear
        FROM parts AS p
    """,
    "of_groups": "SELECT avg(t), max(t), min(t), count(*) FROM (SELECT sum(price) AS t FROM lines GROUP BY part) AS q",
    "histogram": "SELECT n, count(*) FROM (SELECT part, count(*) AS n FROM lines GROUP BY part) AS q GROUP BY n",
    "two_ways": """
        SELECT a.part, a.total, b.total AS named FROM (SELECT part, sum(price) AS total FROM lines GROUP BY part) AS a
        FULL JOIN (
            SELECT l.part, sum(weight) AS total FROM parts JOIN lines AS l USING (part) WHERE name LIKE '%1%'
            GROUP BY l.part
        ) AS b ON a.part = b.part
    """,
    "above": "SELECT p.* FROM parts AS p WHERE price > (SELECT avg(price) FROM parts)",
    "null_keys": """
        SELECT z.zone, z.n, p.name FROM (SELECT zone, count(*) AS n, sum(price) FROM lines GROUP BY zone) AS z
        LEFT JOIN parts AS p ON p.part = z.zone
    """,
    "first_three": """
        SELECT part, total FROM (SELECT part, sum(pieces) AS total FROM lines GROUP BY part) AS q
        ORDER BY total DESC, part LIMIT 3
    """,
}
SOME = "(SELECT id FROM lines ORDER BY hashint4(id + %(salt)s) LIMIT 1)"
CHANGES = (
    "INSERT INTO lines VALUES (%(new)s, %(part)s, %(zone)s, %(price)s, %(weight)s, %(part)s)",
    f"DELETE FROM lines WHERE id = {SOME}",
    f"UPDATE lines SET price = %(price)s WHERE id = {SOME}",
    f"UPDATE lines SET part = %(part)s WHERE id = {SOME}",
    f"UPDATE lines SET weight = %(weight)s, zone = %(zone)s WHERE id = {SOME}",
    "UPDATE parts SET price = coalesce(%(price)s, 1) WHERE part = %(part)s",
    "DELETE FROM lines WHERE part = %(part)s AND part % 5 = 0",
    "INSERT INTO parts VALUES (%(part)s, 'new 1', %(price)s) ON CONFLICT (part) DO UPDATE SET name = 'again'",
)


def change(connection: psycopg.Connection, random: Random, number: int) -> None:
    """Make one to forty changes in one transaction; some empty the table and fill it anew."""
    with connection.transaction():
        if number % 7 == 5:
            connection.execute(random.choice(["DELETE FROM lines", "TRUNCATE lines"]))
            connection.execute(FILL if random.random() < 0.7 else "SELECT")
        for step in range(random.choice([1, 3, 8, 40])):
            given = {
                "new": 1_000 * (number + 1) + step,
                "salt": random.randrange(1_000),
                "part": random.randrange(24),
                "zone": random.choice([None, 1, 2, 30]),
                "price": random.choice([None, 0, 1.5, 100, random.randrange(50)]),
                "weight": random.choice([None, "1.000", "2", "NaN", "3.10", "Infinity"]),
            }
            connection.execute(random.choice(CHANGES).replace("%'", "%%'").replace("% 5", "%% 5"), given)


@contextmanager
def filled(db: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Fill the tables, and keep groups however few rows they have."""
    monkeypatch.setattr(kept_operations, "WORTH_KEEPING", 0)
    monkeypatch.setattr(kept_operations, "LARGE", 0)
    db.execute(TABLES)
    db.execute(FILL)
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        yield client
