"""Whole rows of functions in FROM, which are of the function's type or records with the names that the query gives."""

from tests.conftest import Database
from tests.equivalence.played import assert_differential

TABLES = """
    CREATE TABLE l (id int, k int, v int);
    CREATE TYPE pair AS (a int, b text);
    CREATE FUNCTION pairs(n int) RETURNS SETOF pair IMMUTABLE LANGUAGE sql SET search_path = public
        AS $$ SELECT i, 'x' || i FROM generate_series(1, n) AS i $$;
    CREATE FUNCTION parts(n int, OUT a int, OUT b text) IMMUTABLE LANGUAGE sql SET search_path = pg_catalog
        AS $$ SELECT n, 'x' || n $$"""
QUERIES = {
    "typed": "SELECT l.id, p AS p FROM l, pairs(l.v) AS p",
    "named_by_its_type": "SELECT l.id, row_to_json(p) AS j, p.x FROM l, pairs(l.v) AS p (x, y)",
    "named_by_the_query": "SELECT row_to_json(p) AS j, p.z FROM l, pairs(l.v) WITH ORDINALITY AS p (x, y, z)",
    "of_parameters": "SELECT l.id, p.a, row_to_json(p) AS j FROM l, parts(l.v) AS p",
    "optional": "SELECT l.id, row_to_json(p) AS j, p IS NULL AS missing FROM l LEFT JOIN pairs(l.v) AS p ON p.a > 1",
    "grouped": "SELECT p AS p, count(*) AS n FROM l, pairs(l.v) AS p GROUP BY p",
    "collected": """SELECT k, json_agg(p ORDER BY p.a, l.id) AS j, count(p) AS n
        FROM l LEFT JOIN pairs(l.v) AS p ON true GROUP BY k""",
    "of_two": "SELECT row_to_json(u) AS j FROM l, ROWS FROM (generate_series(1, l.k), pairs(l.v)) AS u (a, b, c)",
    "defined": "SELECT row_to_json(u) AS j FROM l, json_to_record(json_build_object('a', l.k)) AS u (a int, b text)",
    "of_values": "SELECT row_to_json(w) AS j FROM l JOIN (VALUES (1, 'a'), (2, 'b')) AS w (x, y) ON w.x = l.k",
}
CHANGES = (
    "INSERT INTO l VALUES (1, 1, 1), (2, 2, 3), (3, 1, NULL), (4, NULL, 0)",
    "UPDATE l SET v = 2 WHERE id IN (1, 3)",
    "DELETE FROM l WHERE id = 2; UPDATE l SET k = 2 WHERE id = 1",
)


def test_whole_rows_of_functions_refresh_differentially(db: Database) -> None:
    assert_differential(db, TABLES, QUERIES, CHANGES)
