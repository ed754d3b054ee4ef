"""Conditions of several subqueries under AND and OR, with NULLs on either side: only where they are true counts."""

from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.played import batches, follow
from tests.repeats import first

TABLES = """
CREATE TABLE t (id int PRIMARY KEY, x int, y int);
CREATE TABLE u (a int, b int);
CREATE TABLE v (a int, b int);
INSERT INTO t SELECT n, NULLIF(n % 5, 0), NULLIF(n % 4, 1) FROM generate_series(1, 12) AS n;
"""
QUERIES = {
    "either": "SELECT id FROM t WHERE x IN (SELECT a FROM u) OR y IN (SELECT a FROM v)",
    "one_of_three": "SELECT id FROM t"
    " WHERE x IN (SELECT a FROM u) OR y IN (SELECT b FROM v) OR id IN (SELECT b FROM u)",
    "any_or_all": "SELECT id FROM t WHERE x > ANY (SELECT a FROM u) OR y <= ALL (SELECT b FROM v)",
    "exists_beside_another": "SELECT id FROM t WHERE EXISTS"
    " (SELECT FROM u WHERE u.a = t.x AND t.y >= ANY (SELECT b FROM u)) OR t.y > 2",
    "exists_in_case": "SELECT id, CASE WHEN EXISTS"
    " (SELECT FROM u WHERE u.a = t.x AND t.y >= ANY (SELECT b FROM u)) THEN 1 END AS c FROM t",
    "of_rows": "SELECT id FROM t WHERE (x, y) IN (SELECT a, b FROM u) OR y IN (SELECT a FROM v)",
    "not_in_or_in": "SELECT id FROM t WHERE x NOT IN (SELECT a FROM u) OR y IN (SELECT a FROM v)",
    "each_with_another": "SELECT id FROM t"
    " WHERE (x IN (SELECT a FROM u) AND y > 1) OR (y IN (SELECT a FROM v) AND x IS NULL)",
    "of_groups": "SELECT x, count(*) AS n FROM t GROUP BY x"
    " HAVING x IN (SELECT a FROM u) OR min(y) IN (SELECT b FROM v)",
    "in_case": """SELECT id, CASE WHEN x IN (SELECT a FROM u) THEN 'u' WHEN y IN (SELECT b FROM v) AND x > 0 THEN 'v'
        END AS c FROM t""",
    "of_what_case": "SELECT id, CASE y > 1 OR x IN (SELECT a FROM u) WHEN true THEN 1 WHEN false THEN 2 END AS c"
    " FROM t",
    "what_case_gives": "SELECT id, CASE WHEN y > 1 THEN x IN (SELECT a FROM u) ELSE x > 2 END AS c FROM t",
    "once_true_once_null": "SELECT id FROM t"
    " WHERE (x IN (SELECT a FROM u) AND y > 1) OR (x IN (SELECT a FROM u)) IS NULL",
    "in_case_and_shown": "SELECT id, x IN (SELECT a FROM u) AS i, CASE WHEN x IN (SELECT a FROM u) THEN 1 END AS c"
    " FROM t",
    "joined": "SELECT t.id, w.a FROM t JOIN v AS w ON t.x IN (SELECT a FROM u) OR t.y = w.b",
}


def a_change(random: Random) -> str:
    """Write one statement; now and then a subquery has no rows, or one that is NULL."""
    table, a, b = random.choice("uv"), *(random.choice(("NULL", "1", "2", "3", "4")) for _ in "ab")
    return random.choice(
        (
            f"INSERT INTO {table} VALUES ({a}, {b})",
            f"INSERT INTO {table} VALUES ({a}, {b})",
            f"DELETE FROM {table} WHERE a IS NOT DISTINCT FROM {a}",
            f"DELETE FROM {table}",
            f"UPDATE t SET x = {a}, y = {b} WHERE id % 6 = {random.randrange(6)}",
        )
    )


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_rows_are_those_for_which_it_is_true(db: Database, seed: int) -> None:
    db.execute(TABLES)
    follow(db, QUERIES, batches(seed, a_change, 20, range(1, 3)))
