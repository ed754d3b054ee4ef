"""Rows as often as their weight says: as many as there are, and about as many as PostgreSQL expects."""

from pytrickle.plan.sql.copies import copies
from tests.conftest import Database


def test_a_row_comes_as_often_as_its_weight_says(db: Database) -> None:
    weighted = "(VALUES (1, 1::bigint), (2, 3), (3, 0), (4, -2), (5, NULL)) AS d (k, n)"
    found = db.execute(f"SELECT d.k, count(*) FROM {weighted}, {copies('d.n')} GROUP BY 1 ORDER BY 1")
    assert found == [(1, 1), (2, 3)]


def test_postgresql_expects_each_row_about_once(db: Database) -> None:
    db.execute("CREATE TABLE d AS SELECT i AS k, 1::bigint AS n FROM generate_series(1, 500) AS i")
    db.execute("ANALYZE d")
    ((plan,),) = db.execute(f"EXPLAIN (FORMAT JSON) SELECT d.k FROM d, {copies('d.n')}")
    assert plan[0]["Plan"]["Plan Rows"] == 500
