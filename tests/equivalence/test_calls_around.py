"""Aggregates and GROUPING of a query that are read within its subqueries, beside aggregates of these."""

from tests.conftest import Database
from tests.equivalence.played import assert_differential
from tests.repeats import in_parts

TABLES = """
CREATE TABLE t (g int, v int);
CREATE TABLE u (g int, w int);
INSERT INTO t VALUES (1, 2), (1, 3), (2, 4), (NULL, 5);
INSERT INTO u VALUES (1, 7), (2, 8), (2, 9)
"""
CHANGES = (
    "INSERT INTO u VALUES (1, 5), (NULL, 6)",
    "INSERT INTO t VALUES (1, 1), (3, 3)",
    "DELETE FROM u WHERE g = 2",
    "UPDATE t SET v = v + 3",
    "TRUNCATE u",
    "INSERT INTO u VALUES (1, 20), (1, 2), (2, 1), (3, 30)",
    "DELETE FROM t",
    "INSERT INTO t VALUES (1, 10), (2, 2), (2, 5), (3, 1)",
)
AGGREGATES = {
    "added": "SELECT g, (SELECT sum(t.v) + sum(w) FROM u) AS x FROM t GROUP BY g",
    "shown": "SELECT g, sum(v), (SELECT sum(t.v) + sum(w) FROM u) AS x FROM t GROUP BY g",
    "tied": "SELECT g, count(*), (SELECT sum(t.v) + count(*) FROM u WHERE u.g = t.g) AS x FROM t GROUP BY g",
    "kept": "SELECT g, (SELECT sum(w) FROM u GROUP BY u.g HAVING u.g = t.g AND sum(w) > sum(t.v)) AS x "
    "FROM t GROUP BY g",
    "found": "SELECT g FROM t GROUP BY g "
    "HAVING EXISTS (SELECT FROM u WHERE u.g = t.g GROUP BY u.g HAVING sum(w) > sum(t.v))",
    "compared": "SELECT g FROM t GROUP BY g HAVING (SELECT count(*) < sum(t.v) FROM u WHERE u.g = t.g)",
    "some": "SELECT g, (SELECT count(*) FILTER (WHERE w > 7) * max(t.v) FROM u) AS x FROM t GROUP BY g",
    "case": "SELECT g, CASE WHEN max(v) > 3 THEN (SELECT max(w) FROM u) ELSE (SELECT min(w) + max(t.v) FROM u) END "
    "FROM t GROUP BY g",
    "derived": "SELECT g, (SELECT max(d.c) FROM (SELECT u.g, count(*) + sum(t.v) AS c FROM u GROUP BY u.g) AS d) AS x "
    "FROM t GROUP BY g",
    "nested": "SELECT g, (SELECT max(w) + (SELECT min(w) + max(u.w) + sum(t.v) FROM u AS o) FROM u) AS x "
    "FROM t GROUP BY g",
    "deeper": "SELECT g, (SELECT count(*) FROM u WHERE w > (SELECT max(w) - sum(t.v) FROM u AS o)) AS x "
    "FROM t GROUP BY g",
}
GROUPING = {
    "bit": "SELECT g, (SELECT grouping(t.g)) AS x FROM t GROUP BY ROLLUP (g)",
    "beside": "SELECT g, grouping(g) AS own, (SELECT count(*) + grouping(t.g) FROM u) AS x FROM t GROUP BY ROLLUP (g)",
    "bits": "SELECT g, v, (SELECT count(*) + grouping(t.g, t.v) FROM u WHERE u.g = t.g) AS x "
    "FROM t GROUP BY CUBE (g, v)",
    "chosen": "SELECT g FROM t GROUP BY ROLLUP (g) HAVING EXISTS (SELECT FROM u WHERE grouping(t.g) = 1 AND u.w > 5)",
    "both": "SELECT g, (SELECT sum(d.s) FROM (SELECT u.g, grouping(u.g) + grouping(t.g) + count(*) AS s FROM u "
    "GROUP BY ROLLUP (u.g)) AS d) AS x FROM t GROUP BY ROLLUP (g)",
}
VALUE = "(VALUES (t.v))"
AS_VALUES = {
    "listed": f"SELECT v FROM t WHERE {VALUE} IN (SELECT w FROM u)",
    "exists": f"SELECT v FROM t WHERE EXISTS (SELECT FROM u WHERE w = {VALUE})",
    "number": f"SELECT v, (SELECT count(*) FROM u WHERE w = coalesce({VALUE}, 0)) AS x FROM t",
    "joined": "SELECT v, w FROM t LEFT JOIN u ON w = (VALUES (t.v) LIMIT 1)",
    "twice": "SELECT v, s.w FROM t JOIN (SELECT DISTINCT w FROM u) AS s ON s.w = (VALUES ((VALUES (t.v))))",
    "nothing": "SELECT v, (SELECT count(*) FROM u WHERE w IS DISTINCT FROM (VALUES (t.v) LIMIT 0)) AS x FROM t",
}


@in_parts(2)
def test_aggregates_of_the_query_around_stand_beside_a_subquerys_own(every_db: Database, nth: int) -> None:
    names = list(AGGREGATES)[nth::2]
    assert_differential(every_db, TABLES, {f'"{name}"': AGGREGATES[name] for name in names}, CHANGES)


def test_a_subquery_is_told_which_keys_a_row_around_it_is_grouped_by(every_db: Database) -> None:
    assert_differential(every_db, TABLES, {f'"{name}"': query for name, query in GROUPING.items()}, CHANGES)


def test_one_row_of_values_is_a_value_of_each_row_around_it(every_db: Database) -> None:
    assert_differential(every_db, TABLES, {f'"{name}"': query for name, query in AS_VALUES.items()}, CHANGES)
