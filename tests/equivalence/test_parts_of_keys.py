"""Elements of arrays and fields of rows by which a query groups, or that a subquery gives."""

from tests.conftest import Database
from tests.equivalence.played import assert_differential

TABLES = """
    CREATE TYPE pair AS (a int, b text);
    CREATE TABLE l (id int PRIMARY KEY, p pair, v int[]);
    CREATE TABLE r (id int, p pair, v int[])"""
QUERIES = {
    "has_one": "SELECT v, count(*) AS n FROM l GROUP BY v HAVING 1 = ANY (v)",
    "shown": "SELECT (p).a, (p).b, 2 <> ALL (v) AS without, 1 = ANY (v) AS has, count(*) AS n FROM l GROUP BY p, v",
    "below": """SELECT q.a, sum(q.n) AS n
        FROM (SELECT (p).a, 1 = ANY (v) AS has, count(*) AS n FROM l GROUP BY p, v) AS q WHERE q.has GROUP BY q.a""",
    "sets": "SELECT (p).a, count(*) AS n FROM l GROUP BY GROUPING SETS ((p), ())",
    "windows": "SELECT id, max(id) OVER (PARTITION BY 1 = ANY (v) ORDER BY (p).a, id) AS m FROM l GROUP BY id, v, p",
    "correlated": "SELECT l.id, (SELECT count(*) FROM r WHERE r.v = l.v GROUP BY r.v HAVING 1 = ANY (r.v)) AS n FROM l",
    "of_a_subquery": "SELECT l.id, ((SELECT r.p FROM r WHERE r.id = l.id ORDER BY r.p LIMIT 1)).b FROM l",
}
CHANGES = (
    "INSERT INTO l VALUES (1, (1, 'x'), '{1,2}'), (2, (NULL, 'y'), '{2}'), (3, NULL, NULL), (4, (1, NULL), '{}')",
    "INSERT INTO r VALUES (1, (1, 'x'), '{1,2}'), (1, (0, 'z'), '{1}'), (2, NULL, '{1,2}'), (NULL, (1, 'q'), '{2}')",
    "UPDATE l SET v = '{1,2}' WHERE id > 2; UPDATE l SET p = (1, 'x') WHERE id = 2",
    "DELETE FROM r WHERE (p).a = 0; UPDATE l SET v = '{2,NULL}' WHERE id = 1",
)


def test_parts_of_what_is_grouped_by_refresh_differentially(db: Database) -> None:
    assert_differential(db, TABLES, QUERIES, CHANGES)
