"""Values compared with the elements of ARRAY(subquery), or with each row of a subquery by `<> ALL`, with NULLs."""

from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.played import batches, follow
from tests.repeats import first

TABLES = """
CREATE TABLE t (id int PRIMARY KEY, x int, name varchar(9), tags text[], at numeric, place point, by xid[]);
CREATE TABLE u (a int, name varchar(9), at numeric(9, 2), place point, list int[], by xid);
INSERT INTO t SELECT n, NULLIF(n % 5, 0), 'n' || n % 4, ARRAY['n' || n % 3, 'n' || n % 5], NULLIF(n % 3, 1),
    point(n % 3, 1), '{5}' FROM generate_series(1, 15) AS n;
"""
QUERIES = {
    "one": "SELECT id FROM t WHERE x = ANY (ARRAY(SELECT a FROM u))",
    "one_cast": "SELECT id FROM t WHERE name = ANY (ARRAY(SELECT name FROM u))",
    "one_shown": "SELECT id, x = ANY (ARRAY(SELECT a FROM u)) AS among FROM t",
    "one_of_another_type": "SELECT id FROM t WHERE x = ANY (ARRAY(SELECT at FROM u))",
    "one_of_its_own": "SELECT id FROM t WHERE x = ANY (ARRAY(SELECT a FROM u WHERE u.name = t.name))",
    "one_of_first": "SELECT id FROM t WHERE x = ANY (ARRAY(SELECT a FROM u ORDER BY a, name, at LIMIT 2))",
    "one_of_union": "SELECT id FROM t WHERE x = ANY (ARRAY(SELECT a FROM u UNION ALL SELECT at::int FROM u))",
    "like_any": "SELECT id FROM t WHERE name LIKE ANY (ARRAY(SELECT name || '%' FROM u))",
    "greater_than_any": "SELECT id, x > ANY (ARRAY(SELECT a FROM u)) AS greater FROM t",
    "no_element": "SELECT id FROM t WHERE x <> ALL (ARRAY(SELECT a FROM u))",
    "no_element_cast": "SELECT id FROM t WHERE name <> ALL (ARRAY(SELECT name FROM u))",
    "no_element_shown": "SELECT id, name <> ALL (ARRAY(SELECT name FROM u)) AS apart FROM t",
    "no_row": "SELECT id FROM t WHERE x <> ALL (SELECT a FROM u)",
    "no_row_shown": "SELECT id, at <> ALL (SELECT at FROM u) AS apart FROM t",
    "no_row_of_two": "SELECT id, (x, at) <> ALL (SELECT a, at FROM u) AS apart FROM t",
    "no_row_of_its_own": "SELECT id FROM t WHERE x <> ALL (SELECT a FROM u WHERE u.name = t.name)",
    "either": "SELECT id FROM t WHERE x = ANY (ARRAY(SELECT a FROM u)) OR name <> ALL (ARRAY(SELECT name FROM u))",
    "overlap": "SELECT id FROM t WHERE tags && ARRAY(SELECT name::text FROM u)",
    "contained": "SELECT id FROM t WHERE tags <@ ARRAY(SELECT u.name::text FROM u UNION SELECT 'n1')",
    "containing": "SELECT id, tags @> ARRAY(SELECT u.name FROM u WHERE u.a = t.x)::text[] AS all_of_them FROM t",
    "counted": "SELECT id, cardinality(ARRAY(SELECT u.name FROM u WHERE u.a = t.x UNION SELECT 'n0')) AS n FROM t",
}


def a_change(random: Random) -> str:
    """Write one statement; now and then there are no rows, or some that are NULL."""
    a, n = (random.choice(("NULL", "0", "1", "2", "3", "4")) for _ in range(2))
    row = f"VALUES ({a}, {random.choice(('NULL', 'name'))}, {n}, point({random.randrange(3)}, 1))"
    return random.choice(
        (
            *(f"INSERT INTO u (a, name, at, place) {row.replace('name', repr(f'n{random.randrange(5)}'))}",) * 3,
            f"DELETE FROM u WHERE a IS NOT DISTINCT FROM {a}",
            "DELETE FROM u WHERE name IS NULL",
            "DELETE FROM u WHERE at IS NULL OR a IS NULL",
            "DELETE FROM u",
            f"UPDATE t SET x = {a}, at = {n} WHERE id % 6 = {random.randrange(6)}",
            f"UPDATE t SET name = 'n' || {n}, tags = NULLIF(ARRAY['n' || {n}, 'n1'], '{{n0,n1}}') WHERE id % 5 = 1",
        )
    )


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_rows_are_compared_with_all_that_are_listed(db: Database, seed: int) -> None:
    db.execute(TABLES)
    follow(db, QUERIES, batches(seed, a_change, 10, range(2, 6)))


def test_rows_that_differ_from_all_others_are_found_by_their_keys(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        for name in ("no_row", "no_element", "one"):
            client.create_stream_table(name, QUERIES[name])
            explained = str(client.explain(name))
            assert "join on t.x = exists.k0" in explained


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT id FROM t WHERE x = ANY (ARRAY(SELECT list FROM u))", "elements of arrays"),
        ("SELECT id FROM t WHERE place <> ALL (SELECT place FROM u)", "values of type point, which have no equality"),
        ("SELECT id FROM t WHERE by && ARRAY(SELECT by FROM u)", "values of type xid, which have no order"),
        ("SELECT id FROM t WHERE ARRAY(SELECT name::text FROM u) = tags", "ARRAY over a subquery without ORDER BY"),
        ("SELECT id FROM t WHERE tags && ARRAY(SELECT name::text FROM u LIMIT 2)", "without ORDER BY"),
    ],
    ids=["arrays", "without an equality", "without an order", "a list that is seen", "some of the rows"],
)
def test_other_lists_are_computed_as_a_whole(db: Database, query: str, reason: str) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("whole", query)
        assert reason in client.explain("whole").data["full_reason"]
