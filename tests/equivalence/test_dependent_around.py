"""Columns that depend on a grouped primary key, and that only a subquery of the grouped query reads."""

from tests.conftest import Database
from tests.equivalence.played import assert_differential
from tests.repeats import in_parts

TABLES = """
CREATE TABLE c (id int PRIMARY KEY, name text, region int, "from" date);
CREATE TABLE o (oid int PRIMARY KEY, cid int, amt int);
CREATE TABLE r (rid int, lim int, since date);
INSERT INTO c VALUES (1, 'a', 1, '2026-01-01'), (2, 'b', 1, NULL), (3, 'c', 2, '2026-01-03'), (4, NULL, NULL, NULL);
INSERT INTO o VALUES (1, 1, 10), (2, 1, 20), (3, 2, 5), (4, 3, 7), (5, NULL, 3);
INSERT INTO r VALUES (1, 15, '2026-01-02'), (2, 5, NULL), (NULL, 1, '2026-01-01')
"""
CHANGES = (
    "UPDATE c SET region = 2, name = upper(name) WHERE id = 1",
    "INSERT INTO r VALUES (1, 30, '2026-01-04'), (3, 9, '2025-01-01'); INSERT INTO o VALUES (6, 4, 8)",
    "UPDATE c SET region = nullif(region, 2), \"from\" = '2026-01-02'; DELETE FROM o WHERE cid = 2",
    "DELETE FROM r WHERE rid = 2; UPDATE o SET cid = cid + 1; INSERT INTO c VALUES (5, 'e', 3, '2026-02-01')",
    "UPDATE c SET id = id + 10 WHERE id = 5; UPDATE r SET lim = lim - 12",
    "TRUNCATE o",
    "INSERT INTO o SELECT i, i % 5, i FROM generate_series(1, 20) AS i; DELETE FROM c WHERE id = 2",
)
OF = "FROM r WHERE r.rid = c.region"
JOINED = "FROM c LEFT JOIN o ON o.cid = c.id GROUP BY c.id"
QUERIES = {
    "shown": f"SELECT c.id, c.name, sum(o.amt) AS s, (SELECT max(lim) {OF}) AS m {JOINED}",
    "alone": f"SELECT id, (SELECT max(lim) {OF}) AS m FROM c GROUP BY id",
    "beside": 'SELECT id, name, count(*) AS n, (SELECT min(since) FROM r WHERE since > "from") AS m FROM c GROUP BY id',
    "kept": f"SELECT c.id, sum(o.amt) AS s {JOINED} HAVING sum(o.amt) > (SELECT max(lim) {OF})",
    "found": f"SELECT c.id, sum(o.amt) AS s {JOINED} HAVING EXISTS (SELECT {OF} AND lim < sum(o.amt))",
    "chosen": f"SELECT c.id, CASE WHEN EXISTS (SELECT {OF}) THEN 'x' ELSE c.name END AS x {JOINED}",
    "listed": f"SELECT c.id, (SELECT array_agg(lim ORDER BY lim) {OF}) AS a, max(o.amt) AS m {JOINED}",
    "two": f'SELECT c.id, (SELECT count(*) {OF} AND r.since >= c."from" AND lim > count(o.oid)) AS n {JOINED}',
    "deeper": f"SELECT c.id, (SELECT count(*) FROM o AS p WHERE p.amt < (SELECT max(lim) {OF})) AS n {JOINED}",
    "ranked": f"SELECT c.id, rank() OVER (ORDER BY sum(o.amt), c.id) AS k, (SELECT max(lim) {OF}) AS m {JOINED}",
    "both": f"SELECT c.id, o.oid, (SELECT max(lim) {OF} AND lim > o.amt) AS m FROM c JOIN o ON o.cid = c.id "
    "GROUP BY c.id, o.oid",
    "first": f"SELECT c.id, count(*) AS n, (SELECT r.lim {OF} ORDER BY r.lim, r.since LIMIT 1) AS l {JOINED}",
}


@in_parts(3)
def test_a_subquery_reads_what_depends_on_a_grouped_key(every_db: Database, nth: int) -> None:
    names = list(QUERIES)[nth::3]
    assert_differential(every_db, TABLES, {f'"{name}"': QUERIES[name] for name in names}, CHANGES)
