"""Rows compared with what a subquery of one row shows, as a row, as one of a list, or by an operator."""

from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.played import batches, follow
from tests.repeats import first

TABLES = """
CREATE TABLE events (id int PRIMARY KEY, a int, b int, n numeric);
CREATE TYPE pair AS (a int, b int);
CREATE TABLE clock (a int, b int);
INSERT INTO clock VALUES (2, 2);
INSERT INTO events SELECT n, n % 5, n % 3, NULLIF(n % 4, 1) FROM generate_series(1, 20) AS n;
"""
CONDITIONS = {
    "row_greater": "(a, b) > (SELECT q.a, q.b FROM clock AS q)",
    "row_of_two": "(a, b) >= ((SELECT q.a FROM clock AS q), (SELECT q.b FROM clock AS q))",
    "row_equal": "(a, b) = (SELECT q.a, q.b FROM clock AS q)",
    "row_unequal": "(a, b) <> (SELECT q.a, q.b FROM clock AS q)",
    "row_of_extremes": "(a, b) > (SELECT max(q.a), min(q.b) FROM clock AS q)",
    "of_a_type": "ROW(a, b)::pair > (SELECT ROW(q.a, q.b)::pair FROM clock AS q)",
    "listed": "a IN ((SELECT q.a FROM clock AS q), (SELECT q.b FROM clock AS q))",
    "listed_with_another": "a IN ((SELECT q.a FROM clock AS q), 1)",
    "listed_sums": "n IN ((SELECT q.a FROM clock AS q) + 1, (SELECT q.b FROM clock AS q) - 1)",
    "not_listed": "a NOT IN ((SELECT q.a FROM clock AS q), 1)",
    "one_of_an_array": "a = ANY ((SELECT ARRAY[q.a, q.b] FROM clock AS q)::int[])",
    "above_an_array": "a > ALL ((SELECT ARRAY[q.a, q.b] FROM clock AS q)::int[])",
    "alike": "a::text LIKE (SELECT q.a || '%' FROM clock AS q)",
    "not_distinct": "n IS NOT DISTINCT FROM (SELECT q.a FROM clock AS q)",
    "in_between": "n BETWEEN (SELECT q.a FROM clock AS q) AND (SELECT q.b FROM clock AS q)",
}


def a_change(random: Random) -> str:
    """Write one statement; now and then the clock has no row, or no value."""
    a, b, key = (random.choice(("NULL", 0, 1, 2, 3, 4)) for _ in range(3))
    return random.choice(
        (
            *(f"UPDATE clock SET a = {a}, b = {b}",) * 3,
            "DELETE FROM clock",
            *("INSERT INTO clock SELECT 1, 3 WHERE NOT EXISTS (SELECT FROM clock)",) * 2,
            f"UPDATE events SET a = {a}, b = {b}, n = {key} WHERE id % 7 = {random.randrange(7)}",
            f"DELETE FROM events WHERE id = {random.randrange(1, 20)}",
            f"INSERT INTO events VALUES ({random.randrange(21, 30)}, {a}, {b}, {key}) ON CONFLICT DO NOTHING",
        )
    )


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_rows_follow_the_row_that_they_are_compared_with(db: Database, seed: int) -> None:
    db.execute(TABLES)
    queries = {name: f"SELECT id, a FROM events WHERE {condition}" for name, condition in CONDITIONS.items()}
    follow(db, queries, batches(seed, a_change, 10, range(1, 3)))
