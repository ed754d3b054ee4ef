"""Rows of several columns compared with the rows of a subquery, over NULLs and over two types of one value."""

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

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
