"""Comparisons with ANY and ALL of an array: an empty one holds for nothing or for everything, NULL included."""

from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.played import batches, follow
from tests.repeats import first

TABLES = """
CREATE TABLE l (id int PRIMARY KEY, k int, x int, list int[]);
CREATE TABLE r (k int PRIMARY KEY, v int, list int[]);
INSERT INTO l VALUES (1, 1, NULL, '{}'), (2, 2, NULL, '{1}'), (3, 3, 3, '{3,9}'), (4, NULL, NULL, NULL);
INSERT INTO l VALUES (5, 9, 1, '{}');
INSERT INTO r VALUES (1, NULL, '{}'), (3, 5, '{5}'), (9, 1, '{}'), (4, 2, NULL);
"""
QUERIES = {
    "padded": "SELECT l.id FROM l LEFT JOIN r ON r.k = l.k WHERE r.v <> ALL (l.list)",
    "padded_all": "SELECT l.id FROM l LEFT JOIN r ON r.k = l.k WHERE r.v = ALL (l.list)",
    "padded_not_any": "SELECT l.id FROM l LEFT JOIN r ON r.k = l.k WHERE NOT (r.v = ANY (l.list))",
    "exists": "SELECT l.id FROM l WHERE EXISTS (SELECT FROM r WHERE l.x <> ALL (r.list))",
    "exists_all": "SELECT l.id FROM l WHERE EXISTS (SELECT FROM r WHERE r.k = ALL (l.list))",
    "exists_any": "SELECT l.id FROM l WHERE EXISTS (SELECT FROM r WHERE r.k = ANY (l.list))",
    "exists_not": "SELECT l.id FROM l WHERE NOT EXISTS (SELECT FROM r WHERE NOT (r.k = ANY (l.list)))",
    "counted": "SELECT l.id, (SELECT count(*) FROM r WHERE l.x <> ALL (r.list) AND r.k < 7 + l.id) AS n FROM l",
    "counted_any": "SELECT l.id, (SELECT count(*) FROM r WHERE r.k = ANY (l.list)) AS n FROM l",
    "counted_all": "SELECT l.id, (SELECT count(*) FROM r WHERE r.k = ALL (l.list)) AS n FROM l",
    "first_any": "SELECT l.id, (SELECT r.v FROM r WHERE r.k = ANY (l.list) ORDER BY r.v, r.k LIMIT 1) AS v FROM l",
    "first_listed": "SELECT l.id, (SELECT r.v FROM r WHERE r.k IN (l.k, 3, 9) ORDER BY r.v, r.k LIMIT 1) AS v FROM l",
    "first_all": "SELECT l.id, (SELECT r.v FROM r WHERE r.k = ALL (l.list) ORDER BY r.v, r.k LIMIT 1) AS v FROM l",
    "first_two": "SELECT l.id, q.* FROM l, LATERAL (SELECT r.v FROM r WHERE r.k = ANY (l.list) ORDER BY r.v LIMIT 2) q",
    "joined": "SELECT l.id, r.v FROM l LEFT JOIN r ON r.k = ANY (l.list)",
    "joined_all": "SELECT l.id, r.v FROM l LEFT JOIN r ON r.k = ALL (l.list)",
    "grouped": "SELECT r.k, r.v, count(*) AS n FROM r JOIN l ON r.k = ANY (l.list) GROUP BY r.k",
    "element": "SELECT l.id, r.v FROM l JOIN r ON r.k = (ARRAY[l.k, l.x])[1]",
}


def a_change(random: Random) -> str:
    """Write one statement; lists are empty now and then."""
    key, number, value = random.randint(1, 9), random.randint(1, 12), random.choice(("NULL", "1", "2", "5"))
    elements = ",".join(str(random.randint(1, 9)) for _ in range(random.randint(0, 3)))
    return random.choice(
        (
            f"INSERT INTO l VALUES ({number}, {value}, {value}, '{{{elements}}}') ON CONFLICT DO NOTHING",
            f"UPDATE l SET list = '{{{elements}}}', k = {key} WHERE id = {number}",
            f"UPDATE l SET x = {value} WHERE id % 3 = {key % 3}",
            f"DELETE FROM l WHERE id = {number}",
            f"INSERT INTO r VALUES ({key}, {value}, '{{{elements}}}') ON CONFLICT DO NOTHING",
            f"UPDATE r SET v = {value}, list = '{{{elements}}}' WHERE k = {key}",
            f"DELETE FROM r WHERE k = {key}",
        )
    )


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_what_an_array_is_compared_with_is_exact(every_db: Database, seed: int) -> None:
    every_db.execute(TABLES)
    named = {f"q_{name}": query for name, query in QUERIES.items()}
    follow(every_db, named, batches(seed, a_change, 14, range(1, 5)))
