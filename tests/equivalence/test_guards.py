"""An expression that may fail is evaluated only for rows for which the query as written evaluates it."""

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.test_scenarios import TABLES
from tests.repeats import first, in_parts

WITHOUT = "WHERE NOT EXISTS (SELECT FROM r WHERE r.k = l.k)"
QUERIES = {
    "NOT EXISTS": f"SELECT id, 10 / k AS q FROM l {WITHOUT}",
    "NOT IN": "SELECT id, 10 / k AS q FROM l WHERE k NOT IN (SELECT r.k FROM r WHERE r.k IS NOT NULL)",
    "LEFT JOIN without a partner": "SELECT l.id, 10 / l.k AS q FROM l LEFT JOIN r ON r.k = l.k WHERE r.id IS NULL",
    "FULL JOIN": "SELECT l.id, r.id AS other, 10 / (l.k + coalesce(r.v, 0)) AS q FROM l FULL JOIN r ON r.k = l.k",
    "CASE": "SELECT id, CASE WHEN EXISTS (SELECT FROM r WHERE r.k = l.k) THEN 0 ELSE 10 / k END AS q FROM l",
    "CASE of two": "SELECT id, CASE WHEN EXISTS (SELECT FROM r WHERE r.k = l.k) THEN 0 "
    "WHEN l.k IN (SELECT r.k + 1 FROM r) THEN 1 ELSE 10 / k END AS q FROM l",
    "COALESCE": "SELECT id, coalesce((SELECT min(r.v) FROM r WHERE r.k = l.k), 10 / k) AS q FROM l",
    "a cast": f"SELECT id, CAST(t AS int) AS q FROM l {WITHOUT}",
    "a condition": "SELECT id FROM l "
    "WHERE CASE WHEN EXISTS (SELECT FROM r WHERE r.k = l.k) THEN true ELSE 10 / k > 2 END",
    "a group": f"SELECT 10 / k AS q, count(*) AS n FROM l {WITHOUT} GROUP BY 10 / k",
    "a sum": f"SELECT v, sum(10 / k) AS q FROM l {WITHOUT} GROUP BY v",
    "a minimum": f"SELECT v, min(10 / k) AS q FROM l {WITHOUT} GROUP BY v",
    "a list": f"SELECT v, array_agg(10 / k ORDER BY id) AS q FROM l {WITHOUT} GROUP BY v",
    "a group below": "SELECT g.q, r.v FROM (SELECT 10 / k AS q, max(v) AS m FROM l WHERE NOT EXISTS "
    "(SELECT FROM r WHERE r.k = l.k) GROUP BY 10 / k) AS g JOIN r ON r.k = g.q",
    "DISTINCT": f"SELECT DISTINCT 10 / k AS q FROM l {WITHOUT}",
    "DISTINCT ON": f"SELECT DISTINCT ON (v) v, 10 / k AS q FROM l {WITHOUT} ORDER BY v, id",
    "a window": f"SELECT id, sum(10 / k) OVER (PARTITION BY v) AS q FROM l {WITHOUT}",
    "a window's filter": "SELECT 10 / k AS q FROM "
    "(SELECT k, id, row_number() OVER (PARTITION BY v ORDER BY k DESC) AS rn FROM l "
    f"{WITHOUT}) AS w WHERE rn = 1",
    "UNION": f"SELECT 10 / k AS q FROM l {WITHOUT} UNION SELECT v FROM r",
    "UNION ALL": f"SELECT 10 / k AS q FROM l {WITHOUT} UNION ALL SELECT v FROM r",
    "EXCEPT": f"SELECT 10 / k AS q FROM l {WITHOUT} EXCEPT SELECT v FROM r",
    "over EXCEPT": "SELECT 10 / k AS q FROM (SELECT k FROM l EXCEPT SELECT k FROM r) AS e",
    "LIMIT": f"SELECT id, 10 / k AS q FROM l {WITHOUT} ORDER BY id LIMIT 2",
    "LATERAL": "SELECT r.id, s.q FROM r CROSS JOIN LATERAL (SELECT 10 / l.k AS q FROM l WHERE l.v = r.v AND NOT EXISTS "
    "(SELECT FROM r AS x WHERE x.k = l.k) ORDER BY l.id LIMIT 1) AS s",
    "an inner join": "SELECT l.id, 10 / (r.v - l.v) AS q FROM l JOIN r ON r.k = l.k WHERE r.v <> l.v",
    "a join's condition": "SELECT l.id FROM l JOIN r ON r.k = l.k AND r.v <> l.v AND 10 / (r.v - l.v) > 1",
    "EXISTS": "SELECT id, 10 / v AS q FROM l WHERE EXISTS (SELECT FROM r WHERE r.k = l.k AND r.v = -l.v)",
    "HAVING": "SELECT l.k, sum(r.v) AS q FROM l JOIN r ON r.k = l.k GROUP BY l.k HAVING 10 / max(r.id + 1) > 0",
}
BATCHES = (
    "INSERT INTO r VALUES (1, 0, 1, 'a'); INSERT INTO l VALUES (1, 0, 1, 'a'), (2, 1, 1, '7'), "
    "(3, 2, 1, '8'), (9, 9, 5, '9')",
    "INSERT INTO r VALUES (2, 2, 1, 'a'), (7, 9, -5, '1')",
    "INSERT INTO l VALUES (4, 0, 1, 'x'), (5, 5, 1, '6')",
    "DELETE FROM r WHERE id = 2; INSERT INTO r VALUES (3, 0, 2, 'a'); DELETE FROM r WHERE id = 1",
    "UPDATE l SET k = 5, t = '4' WHERE k = 0; DELETE FROM r WHERE k = 0",
    "INSERT INTO r VALUES (4, 5, 1, 'y'), (5, 0, 2, 'z'); UPDATE l SET k = 0, t = 'z' WHERE k = 5",
    "UPDATE r SET v = v + 1; UPDATE l SET v = v + 1 WHERE k <> 0",
    "DELETE FROM l WHERE k = 0; DELETE FROM r",
)


@pytest.mark.parametrize("small", first(1, (10_000, 0)))
@in_parts(2)
def test_what_a_guard_excludes_is_never_evaluated(db: Database, small: int, nth: int) -> None:
    played = dict(list(QUERIES.items())[nth::2])
    for statement in TABLES:
        db.execute(statement)
    with local_client(db.dsn, small_delta_rows=small) as (client, _):
        for number, query in enumerate(played.values()):
            client.create_stream_table(f"st{number}", query)
        client.tick()
        for batch in BATCHES:
            db.execute(batch)
            results = {result.stream_table: result for result in client.tick()}
            with db.connect() as connection:
                for number, (name, query) in enumerate(played.items()):
                    result = results.get(f"public.st{number}")
                    found = (result.action, result.error) if result else ("NO_DATA", None)
                    assert found in {("DIFFERENTIAL", None), ("NO_DATA", None)}, (name, batch)
                    assert not differences(connection, f"st{number}", query, False), (name, batch)
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status <> 'COMPLETED'") == 0


CORRELATED = {
    "a maximum": "SELECT id, (SELECT max(10 / r.v) FROM r WHERE r.k = l.k) AS q FROM l",
    "a sum of later rows": "SELECT id, (SELECT sum(10 / r.v) FROM r WHERE r.k = l.k AND r.id > l.id) AS q FROM l",
    "a cast": "SELECT id, (SELECT count(CAST(r.t AS int)) FROM r WHERE r.k = l.k) AS q FROM l",
    "one value": "SELECT id, (SELECT 10 / r.v FROM r WHERE r.k = l.k AND r.id < 3) AS q FROM l",
    "a list": "SELECT id, ARRAY(SELECT 10 / r.v FROM r WHERE r.k = l.k ORDER BY r.id) AS q FROM l",
    "LATERAL": "SELECT id, s.q FROM l, LATERAL (SELECT max(10 / r.v) AS q FROM r WHERE r.k = l.k) AS s",
    "LATERAL first rows": "SELECT id, s.q FROM l, LATERAL"
    " (SELECT 10 / r.v AS q FROM r WHERE r.k = l.k ORDER BY 10 / r.v, r.id LIMIT 2) AS s",
    "LATERAL groups": "SELECT id, s.q FROM l, LATERAL"
    " (SELECT r.t, sum(10 / r.v) AS q FROM r WHERE r.k = l.k GROUP BY r.t) AS s",
    "LATERAL windows": "SELECT id, s.q FROM l, LATERAL"
    " (SELECT sum(10 / r.v) OVER (ORDER BY r.id) AS q FROM r WHERE r.k = l.k) AS s",
    "LATERAL DISTINCT": "SELECT id, s.q FROM l, LATERAL (SELECT DISTINCT 10 / r.v AS q FROM r WHERE r.k = l.k) AS s",
    "LATERAL rows": "SELECT id, s.q FROM l, LATERAL (SELECT 10 / r.v AS q FROM r WHERE r.k = l.k) AS s",
}
UNASKED = (
    "INSERT INTO l VALUES (1, 1, 1, '1'), (2, 2, 2, '2'), (3, 3, 0, '3'); "
    "INSERT INTO r VALUES (1, 1, 2, '1'), (2, 2, 5, '2')",
    "INSERT INTO r VALUES (9, 9, 0, 'x')",
    "INSERT INTO r VALUES (4, 1, 3, '4'); DELETE FROM r WHERE id = 9",
    "INSERT INTO r VALUES (10, 8, 0, 'x'), (11, 8, 0, 'y'); UPDATE l SET k = 2 WHERE id = 1",
    "DELETE FROM r WHERE id = 10; UPDATE r SET v = 0, t = 'z' WHERE id = 2; DELETE FROM l WHERE k = 2",
    "UPDATE r SET v = 1, t = '5' WHERE k = 8; INSERT INTO l VALUES (4, 8, 1, '6')",
)


@pytest.mark.parametrize("small", first(1, (10_000, 0)))
def test_a_correlated_subquery_is_evaluated_only_for_what_asks(db: Database, small: int) -> None:
    for statement in TABLES:
        db.execute(statement)
    with local_client(db.dsn, small_delta_rows=small) as (client, _):
        for number, query in enumerate(CORRELATED.values()):
            client.create_stream_table(f"st{number}", query)
        client.tick()
        for batch in UNASKED:
            db.execute(batch)
            failed = {result.stream_table: result.reason for result in client.tick() if result.action != "DIFFERENTIAL"}
            assert not failed, batch
            with db.connect() as connection:
                for number, (name, query) in enumerate(CORRELATED.items()):
                    assert not differences(connection, f"st{number}", query, False), (name, batch)
    assert db.value("SELECT count(*) FROM pgtrickle.pgt_refresh_history WHERE status <> 'COMPLETED'") == 0
