"""Subqueries that show columns of the rows around them: as arms of a union, in outer joins, and in GROUPING()."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

QUERIES = {
    "arms": "SELECT v.* FROM l, LATERAL (SELECT l.k, l.t FROM r UNION ALL SELECT l.v, r.t FROM r) AS v (x, y)",
    "arms_behind_an_outer_join": """SELECT v.* FROM l LEFT JOIN r AS y ON l.k = y.k,
        LATERAL (SELECT l.k, y.k FROM r UNION ALL SELECT l.v, y.v FROM r) AS v (x, y)""",
    "optional": "SELECT a.id, x.k, s.z FROM l a, r x LEFT JOIN LATERAL (SELECT a.v FROM r) AS s (z) ON x.v = s.z",
    "grouping": """SELECT s.x, (SELECT grouping(s.x)) AS g, count(*) AS n
        FROM l, LATERAL (SELECT (SELECT l.k) AS x) AS s GROUP BY ROLLUP (s.x)""",
}
CHANGES = (
    "INSERT INTO l VALUES (1, 1, 1, 'a'), (2, 2, NULL, 'b'), (3, NULL, 5, NULL)",
    "INSERT INTO r VALUES (1, 1, 'x'), (2, 5, NULL), (NULL, NULL, 'y')",
    "UPDATE l SET v = 5 WHERE id = 1; DELETE FROM r WHERE k = 2",
    "DELETE FROM l WHERE id = 3; UPDATE r SET v = 5",
)


def test_subqueries_that_show_columns_of_outer_rows_are_differential(db: Database) -> None:
    db.execute('CREATE TABLE l (id int, k int, v int, t text COLLATE "C"); CREATE TABLE r (k int, v int, t text)')
    with local_client(db.dsn, small_delta_rows=0) as (client, _), db.connect() as connection:
        for name, query in QUERIES.items():
            client.create_stream_table(f'"{name}"', query, refresh_mode="DIFFERENTIAL")
        client.tick()
        for change in CHANGES:
            db.execute(change)
            assert {result.action for result in client.tick()} <= {"DIFFERENTIAL", "NO_DATA"}
            for name, query in QUERIES.items():
                assert not differences(connection, f'"{name}"', query, False), (name, change)
