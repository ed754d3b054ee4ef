"""Rows of several columns compared with the rows of a subquery, over NULLs and over two types of one value."""

from tests.conftest import Database
from tests.engines import double_under
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import on_both_servers

TABLES = """
    CREATE TABLE l (id int, k int, v int, t text, f double precision);
    CREATE TABLE r (id int, k int, v int, t text, n numeric)"""
OWN = "(SELECT r.k, r.v FROM r WHERE r.id = l.id)"
ANY = "(SELECT r.k, r.v FROM r)"
DIFFERENTIAL = {
    "equal": f"SELECT id FROM l WHERE (k, v) = {OWN}",
    "equal_or_not": f"SELECT id, (k, v) = {OWN} AS e, (k, v) <> {OWN} AS d FROM l",
    "equal_to_aggregates": "SELECT id FROM l WHERE (k, v) = (SELECT max(r.k), max(r.v) FROM r)",
    "unlike_aggregates": "SELECT id, (k, v) <> (SELECT count(*), max(r.v) FROM r WHERE r.k = l.k) AS x FROM l",
    "less": f"SELECT id FROM l WHERE (k, v) < {OWN}",
    "at_least": f"SELECT id, (k, v) >= {OWN} AS x FROM l",
    "under_or": f"SELECT id FROM l WHERE k = 1 OR ((k, v) = {OWN} AND v > 0)",
    "of_two_types": "SELECT id FROM l WHERE (f, v) = (SELECT r.n, r.v FROM r WHERE r.id = l.id)",
    "of_two_types_in_exists": """SELECT id FROM l WHERE EXISTS (SELECT FROM r z
        WHERE z.k = l.k AND (l.f, z.v) = (SELECT r.n, r.v FROM r WHERE r.id = z.id))""",
    "in_case": f"SELECT id, CASE WHEN (k, v) = {OWN} THEN 'a' ELSE 'b' END AS x FROM l",
    "in_filter": f"SELECT k, count(*) FILTER (WHERE (k, v) = {OWN}) AS n FROM l GROUP BY k",
    "in_window": f"SELECT id, sum(v) OVER (PARTITION BY (k, v) = {OWN}) AS s FROM l",
    "in_having": """SELECT k, max(v) AS m FROM l GROUP BY k
        HAVING (k, max(v)) = (SELECT r.k, max(r.v) FROM r WHERE r.k = l.k GROUP BY r.k)""",
    "three_of_them": f"""SELECT id FROM l WHERE (k, v) = {OWN}
        OR (k, t) > (SELECT r.k, r.t FROM r WHERE r.id = l.id)
        OR (v, t) <> (SELECT r.v, r.t FROM r WHERE r.id = l.id)""",
    "with_a_subquery": f"SELECT id, ((SELECT max(r.k) FROM r), v) < {OWN} AS x FROM l",
    "among_with_a_subquery": f"SELECT id, ((SELECT max(r.k) FROM r), v) IN {ANY} AS x FROM l",
    "among": f"SELECT id, (k, v) IN {ANY} AS x FROM l",
    "not_among": f"SELECT id FROM l WHERE (k, v) NOT IN {ANY}",
    "not_among_later_ones": "SELECT id, (k, v) NOT IN (SELECT r.k, r.v FROM r WHERE r.id >= l.id) AS x FROM l",
    "not_among_another_type": "SELECT id, (f, v) NOT IN (SELECT r.n, r.v FROM r) AS x FROM l",
    "less_than_any": f"SELECT id FROM l WHERE (k, v) < ANY {ANY}",
    "perhaps_less_than_any": f"SELECT id, (k, v) < ANY {ANY} AS x FROM l",
    "less_than_all": f"SELECT id FROM l WHERE (k, v) < ALL {ANY}",
    "equal_to_all": f"SELECT id, (k, v) = ALL {ANY} AS x FROM l",
    "unlike_all": f"SELECT id FROM l WHERE (k, v) <> ALL {ANY}",
    "shown_below": "SELECT id, x.w = ROW(3, 3) AS e, x.w < ROW(3, 4) AS b FROM (SELECT id, ROW(k, v) AS w FROM l) x",
    "joined_by_rows": """SELECT x.id, y.id AS other FROM (SELECT id, ROW(k, v) AS w FROM l) x
        JOIN (SELECT id, ROW(k, v) AS w FROM r) y ON x.w = y.w""",
    "joined_by_rows_of_one_name": """SELECT x.id, y.id AS other FROM (SELECT id, ROW(k, v) AS w FROM l) x
        LEFT JOIN (SELECT id, ROW(k, v) AS w FROM r) y USING (w)""",
    "row_of_a_subquery": "SELECT id, (SELECT ROW(r.k, r.v) FROM r WHERE r.id = l.id) = ROW(k, v) AS x FROM l",
    "row_of_aggregates": """SELECT id, (SELECT ROW(max(r.k), max(r.v)) FROM r WHERE r.id = l.id) <> ROW(k, v) AS x
        FROM l""",
    "one_of_shown_rows": """SELECT id, x.w IN (ROW(3, 3), ROW(1, NULL::int)) AS i,
        x.w NOT IN (SELECT ROW(r.k, r.v) FROM r) AS n FROM (SELECT id, ROW(k, v) AS w FROM l) x""",
    "unlike_any": "SELECT id, (k, v) <> ANY (SELECT r.k, r.v FROM r WHERE r.k = l.k) AS x FROM l",
}
ROWS = """
    INSERT INTO l VALUES (1, 1, 1, 'a', 1), (2, 2, 2, 'b', 0.1), (3, 3, NULL, 'c', 7), (4, 1, 5, NULL, NULL),
        (5, NULL, NULL, 'x', 1);
    INSERT INTO r VALUES (1, 1, 1, 'a', 1), (2, 2, 5, 'b', 0.1000000000000000055511151231257827), (3, 3, 3, NULL, 7),
        (7, 1, 1, 'b', 1.000000000000000000001)"""
BATCHES = (
    "UPDATE l SET v = 3 WHERE id = 3; UPDATE r SET v = NULL WHERE id = 1; DELETE FROM r WHERE id = 2",
    """UPDATE l SET k = 3 WHERE id = 1;
    INSERT INTO r VALUES (9, 3, 3, 'z', 0), (5, NULL, NULL, 'u', 1), (4, 1, 5, NULL, 3)""",
    "DELETE FROM r WHERE id IN (1, 5); UPDATE l SET v = 5 WHERE id <> 5; UPDATE r SET n = 1.0 WHERE id = 7",
    "DELETE FROM r",
)


def test_rows_compared_with_subqueries_are_differential(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn, small_delta_rows=0) as (client, _), db.connect() as connection:
        for name, query in DIFFERENTIAL.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        for number, batch in enumerate((ROWS, *BATCHES)):
            db.execute(batch)
            for result in client.tick():
                assert result.action in ({"DIFFERENTIAL", "NO_DATA"} if number else {"FULL"}), result
                assert result.error is None, result
            for name, query in DIFFERENTIAL.items():
                assert not differences(connection, name, query, False), (name, batch)


@on_both_servers
def test_groups_with_rows_of_no_named_type_are_computed_anew(every_db: Database) -> None:
    queries = {
        "by_row": "SELECT count(*) AS n, max(t) AS t FROM l GROUP BY ROW(k, v)",
        "by_rows": "SELECT count(*) AS n FROM l GROUP BY ARRAY[ROW(k, v)]",
        "of_rows": "SELECT id, max(w) = ROW(3, 3) AS x FROM (SELECT id, ROW(k, v) AS w FROM l) q GROUP BY id",
    }
    if every_db.version < 18:  # has no max() of rows
        del queries["of_rows"]
    every_db.execute(TABLES)
    with local_client(every_db.dsn) as (client, _), every_db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query)
        for batch in (ROWS, *BATCHES):
            every_db.execute(batch)
            assert {result.action for result in client.tick()} <= {"FULL", "NO_DATA"}
            for name, query in queries.items():
                assert not differences(connection, name, query, False)


def test_more_than_one_row_is_an_error_that_mends_itself(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("st", DIFFERENTIAL["equal"])
        db.execute(ROWS)
        assert [result.action for result in client.tick()] == ["FULL"]
        db.execute("INSERT INTO r VALUES (1, 2, 2, 'again', 2)")
        (result,) = client.tick()
        assert result.action == "FAILED" and "more than one row" in str(result.error)
        db.execute("DELETE FROM r WHERE t = 'again'")
        client.refresh("st")
        assert not differences(connection, "st", DIFFERENTIAL["equal"], False)


NULLS = {
    "is_null": "(CASE WHEN l.v > r.v THEN l.p ELSE r.p END) IS NULL",
    "is_not_null": "(CASE WHEN l.v > r.v THEN l.p ELSE r.p END) IS NOT NULL",
    "without_else": "(CASE WHEN l.v > r.v THEN l.p END) IS NULL",
}


def test_a_row_of_nulls_chosen_between_two_tables_is_null(db: Database) -> None:
    """Of such a row IS NULL is true, and of one that has some NULLs neither that nor IS NOT NULL."""
    with db.connect() as connection:
        connection.execute("""
            CREATE TYPE pair AS (x int, y int); CREATE TABLE l (id int, k int, v int, p pair);
            INSERT INTO l VALUES (1, 1, 1, NULL), (2, 1, 2, ROW(NULL, NULL)), (3, 1, 3, ROW(1, NULL)),
                (4, 1, 4, ROW(1, 2)), (5, 1, NULL, ROW(NULL, NULL));
            CREATE TABLE r AS SELECT id, k, 5 - v AS v, p FROM l""")
    queries = {
        name: f"SELECT l.id, r.id AS other, {test} AS x FROM l JOIN r ON l.k = r.k" for name, test in NULLS.items()
    }
    with double_under(db.dsn) as client, db.connect() as connection:
        for name, query in queries.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
        client.tick()
        assert {
            name: rows for name, query in queries.items() if (rows := differences(connection, name, query, True))
        } == {}
        connection.execute("UPDATE l SET p = r.p FROM r WHERE r.id = 5 - l.id; DELETE FROM r WHERE id = 3")
        client.tick()
        assert {
            name: rows for name, query in queries.items() if (rows := differences(connection, name, query, True))
        } == {}
        assert client.left == set()
