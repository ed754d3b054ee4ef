"""Subqueries that compute something of columns of the rows around them: within aggregates, windows, first rows."""

from random import Random

import pytest

from pytrickle.plan.algebra.relation import operations
from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.equivalence.played import batches, follow
from tests.equivalence.test_delta_cost import World, world
from tests.repeats import first

__all__ = ["world"]

TABLES = """
CREATE TABLE u (id int PRIMARY KEY, g int, since int, rate numeric, name text);
CREATE TABLE v (no int PRIMARY KEY, uid int, at int, kind text, amount numeric);
INSERT INTO u SELECT i, i % 3, i % 7, (i % 4)::numeric / 2, 'n' || i % 5 FROM generate_series(1, 15) AS i;
INSERT INTO u VALUES (20, NULL, NULL, NULL, NULL);
INSERT INTO v SELECT i, nullif(i % 17, 0), i % 11, 'k' || i % 3, (i % 9)::numeric / 4 FROM generate_series(1, 60) AS i;
"""
GROUPS = {
    "summed": "SELECT u.id, (SELECT sum(v.amount * u.rate) FROM v WHERE v.uid = u.id) AS s FROM u",
    "late": "SELECT u.id, (SELECT count(*) FILTER (WHERE v.at > u.since) FROM v WHERE v.uid = u.id) AS n FROM u",
    "untied": "SELECT u.id, (SELECT max(v.at - u.since) FROM v) AS n FROM u",
    "listed": """SELECT u.id, (SELECT string_agg(u.name || v.kind, ',' ORDER BY v.no)
        FROM v WHERE v.uid = u.id AND v.at > u.since) AS n FROM u""",
    "digits": "SELECT u.id, (SELECT max(u.rate::text || v.kind) FROM v WHERE v.uid = u.id) AS n FROM u",
    "grouped": """SELECT u.id, l.kind, l.s
        FROM u, LATERAL (SELECT v.kind, sum(v.amount + u.rate) AS s FROM v WHERE v.uid = u.id GROUP BY v.kind) AS l""",
    "keys": """SELECT u.id, l.* FROM u LEFT JOIN LATERAL (
        SELECT v.kind, v.at > u.since AS late, count(*) AS n FROM v WHERE v.uid = u.id GROUP BY 1, 2) AS l ON true""",
    "sets": """SELECT u.id, l.* FROM u, LATERAL (SELECT v.kind, u.g AS g, count(*) AS n
        FROM v WHERE v.uid = u.id GROUP BY GROUPING SETS ((v.kind), (u.g, v.kind))) AS l""",
    "joined": """SELECT u.id, l.s FROM u
        CROSS JOIN LATERAL (SELECT sum(v.amount * u.rate) AS s, count(*) AS n FROM v WHERE v.uid = u.id) AS l""",
    "above": "SELECT u.g, (SELECT max(v.at + u.g) FROM v WHERE v.uid = u.g) AS s FROM u GROUP BY u.g",
    "of_both": "SELECT u.g, (SELECT max(v.at + sum(u.since)) FROM v WHERE v.uid = u.g) AS s FROM u GROUP BY u.g",
    "compared": "SELECT u.id FROM u WHERE u.since < (SELECT avg(v.at * u.g) FROM v WHERE v.uid = u.id)",
    "any": """SELECT u.id FROM u
        WHERE u.since < ANY (SELECT sum(v.at + u.since) FROM v WHERE v.uid = u.id GROUP BY v.kind)""",
    "among": "SELECT u.id, u.since IN (SELECT max(v.at - u.g) FROM v WHERE v.uid = u.id GROUP BY v.kind) AS b FROM u",
    "array": "SELECT u.id, ARRAY(SELECT v.at + u.since FROM v WHERE v.uid = u.id ORDER BY 1) AS a FROM u",
    "median": """SELECT u.id, (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v.at + u.since)
        FROM v WHERE v.uid = u.id) AS m FROM u""",
    "distinct": """SELECT u.id, (SELECT count(DISTINCT v.at % (u.since + 1)) FROM v WHERE v.uid = u.id) AS n
        FROM u WHERE u.since >= 0""",
}
ROWS = {
    "one": "SELECT u.id, (SELECT u.name || v.kind FROM v WHERE v.no = u.since) AS s FROM u",
    "constant": "SELECT u.id, (SELECT u.name FROM v WHERE v.no = 3 AND v.at > 2) AS s FROM u",
    "grouped_around": "SELECT u.g, (SELECT sum(u.since) FROM v WHERE v.no = 2) AS s FROM u GROUP BY u.g",
    "last": "SELECT u.id, (SELECT v.at + u.since FROM v WHERE v.uid = u.id ORDER BY v.at DESC, v.no LIMIT 1) FROM u",
    "nearest": "SELECT u.id, (SELECT v.kind FROM v ORDER BY abs(v.at - u.since), v.no LIMIT 1) AS s FROM u",
    "two": """SELECT u.id, l.* FROM u, LATERAL (SELECT v.kind, abs(v.at - u.since) AS d FROM v WHERE v.uid = u.id
        ORDER BY abs(v.at - u.since), v.no LIMIT 2) AS l""",
    "distinct": """SELECT u.id, l.*
        FROM u, LATERAL (SELECT DISTINCT v.kind, u.since % 2 AS e FROM v WHERE v.uid = u.id) AS l""",
    "first": """SELECT u.id, l.* FROM u, LATERAL (SELECT DISTINCT ON (v.kind) v.kind, v.at + u.since AS d
        FROM v WHERE v.uid = u.id ORDER BY v.kind, abs(v.at - u.since), v.no) AS l""",
    "union": "SELECT u.id, l.* FROM u, LATERAL (SELECT u.since AS x UNION SELECT v.at FROM v WHERE v.uid = u.id) AS l",
    "except": "SELECT u.id, l.* FROM u, LATERAL (SELECT v.at AS x FROM v WHERE v.uid = u.id EXCEPT SELECT u.since) l",
}
WINDOWS = {
    "newest": """SELECT u.id, l.* FROM u, LATERAL (
        SELECT v.no, row_number() OVER (ORDER BY v.at, v.no) AS rn FROM v WHERE v.uid = u.id) AS l WHERE l.rn <= 2""",
    "several": """SELECT u.id, l.* FROM u LEFT JOIN LATERAL (
        SELECT v.no, sum(v.at + u.since) OVER (PARTITION BY v.kind ORDER BY v.no) AS s, rank() OVER (ORDER BY v.at) AS k
        FROM v WHERE v.uid = u.id) AS l ON true""",
    "gap": """SELECT u.id, (SELECT max(w.d) FROM (
        SELECT v.at - lag(v.at) OVER (ORDER BY v.no) AS d FROM v WHERE v.uid = u.id) AS w) AS gap FROM u""",
    "falls": """SELECT u.id FROM u WHERE EXISTS (SELECT FROM (
        SELECT v.at, lag(v.at) OVER (ORDER BY v.no) AS p FROM v WHERE v.uid = u.id) AS w WHERE w.at < w.p)""",
    "beyond": """SELECT u.id, (SELECT max(w.d) FROM (
        SELECT v.at - lag(v.at) OVER (ORDER BY v.no) AS d FROM v WHERE v.at > u.since) AS w) AS gap FROM u""",
    "tiles": """SELECT u.id, (SELECT max(w.d) FROM (
        SELECT ntile(u.g + 1) OVER (ORDER BY v.no) AS d FROM v WHERE v.uid = u.id) w) AS most FROM u WHERE u.g > 0""",
}
# The query around computes them, of which it then has one row.
OF_THE_QUERY_AROUND = "SELECT (SELECT sum(u.since) FROM v WHERE v.no = 1) AS s FROM u"

# Most orders are after all rates; some have no currency, or no time.
AS_OF = """
CREATE TABLE sales (id int PRIMARY KEY, currency text, at int);
CREATE TABLE rates (currency text, at int, rate numeric(8, 2), PRIMARY KEY (currency, at));
INSERT INTO sales SELECT i, 'c' || i % 3, i % 1500 FROM generate_series(1, 3000) AS i;
INSERT INTO sales VALUES (0, NULL, 7), (-1, 'c1', NULL), (-2, NULL, NULL);
INSERT INTO rates SELECT 'c' || i % 3, i, i FROM generate_series(1, 90) AS i;
ANALYZE;
"""
AS_OF_QUERY = """SELECT o.id, r.rate FROM sales o LEFT JOIN LATERAL (
    SELECT e.rate FROM rates e WHERE e.currency = o.currency AND e.at <= o.at ORDER BY e.at DESC LIMIT 1) r ON true"""


def a_change(random: Random) -> str:
    """Write one statement; numbers change by how they look, too."""
    key, number, g, at = random.randint(1, 22), random.randint(1, 70), random.randint(0, 3), random.randint(0, 12)
    return random.choice(
        (
            f"INSERT INTO u VALUES ({key}, {g}, {at}, {random.choice(('1', '1.0', '2.5', 'NULL'))}, 'n{at % 5}')"
            " ON CONFLICT DO NOTHING",
            f"DELETE FROM u WHERE id = {key}",
            f"UPDATE u SET since = since + {g - 1} WHERE id % 5 = {key % 5}",
            f"UPDATE u SET rate = rate + {random.choice(('0.00', '1', '0.5'))}, g = nullif({g}, 0) WHERE id = {key}",
            f"INSERT INTO v VALUES ({number}, {key}, {at}, 'k{g}', {random.choice(('1', '1.0', 'NULL'))})"
            " ON CONFLICT DO NOTHING",
            f"DELETE FROM v WHERE no % 11 = {number % 11}",
            f"UPDATE v SET uid = {key} WHERE no % 13 = {number % 13}",
            f"UPDATE v SET at = at + 1, amount = amount + 0.0 WHERE uid = {key}",
        )
    )


@pytest.mark.parametrize("queries", [GROUPS, ROWS, WINDOWS], ids=["groups", "rows", "windows"])
@pytest.mark.parametrize("seed", first(1, range(2)))
def test_subqueries_that_compute_with_outer_columns_are_differential(
    every_db: Database, queries: dict[str, str], seed: int
) -> None:
    every_db.execute(TABLES)
    named = {f"s_{name}": query for name, query in queries.items()}
    follow(every_db, named, batches(seed, a_change, 8, range(2, 9)))


def test_an_aggregate_of_the_query_around_it_is_no_aggregate_of_the_subquery(db: Database) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        client.create_stream_table("result", OF_THE_QUERY_AROUND)
        for statements in batches(5, a_change, 6, range(1, 4)):
            client.tick()
            assert not differences(connection, "result", OF_THE_QUERY_AROUND, True)
            for statement in statements:
                db.execute(statement)


def test_rows_without_a_value_need_no_comparison_of_all_with_all(world: World) -> None:
    world.db.execute(AS_OF)
    world.create(AS_OF_QUERY)
    world.db.execute("UPDATE sales SET at = at + 1 WHERE id BETWEEN 10 AND 12; UPDATE sales SET at = 3 WHERE id = -1")
    read = world.rows_read()
    assert 0 < read["compared"] <= 2_000
    world.refresh()
    world.db.execute("UPDATE rates SET rate = rate + 1 WHERE at = 80; UPDATE sales SET currency = NULL WHERE id = 5")
    assert world.rows_read()["compared"] <= 100_000
    world.refresh()
    plan = world.engine.plans[-1].shape.query
    assert plan is not None and {each.takes_any_order for each in operations(plan.rows)} == {True}
