"""Subqueries in the ON of outer joins: of the side that may lack rows, of the side that is kept, or of neither."""

from collections import Counter
from random import Random

import pytest

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences
from tests.repeats import first

TABLES = """
CREATE TABLE people (id int PRIMARY KEY, name text);
CREATE TABLE orders (id int PRIMARY KEY, person int, amount numeric, at int);
CREATE TABLE clock (at int);
CREATE TABLE returns (order_id int);
INSERT INTO people SELECT n, 'n' || n FROM generate_series(1, 6) AS n;
INSERT INTO orders SELECT n, n % 8, n % 5, n FROM generate_series(1, 20) AS n;
INSERT INTO clock VALUES (10);
"""
JOIN = "SELECT p.id, o.id AS o, o.amount FROM people p LEFT JOIN orders o ON o.person = p.id AND "
# PostgreSQL prints such a column without a table: it may be of any.
MERGED = """SELECT number, o.amount
    FROM people AS p (number) FULL JOIN (SELECT order_id AS number FROM returns) AS r USING (number)
    LEFT JOIN orders AS o ON o.person = 1 AND number IN (SELECT at FROM clock)"""
QUERIES = {
    "since": f"{JOIN} o.at > (SELECT at FROM clock) - 5",
    "counted": """SELECT p.name, count(o.id) AS n, sum(o.amount) AS amount FROM people p
        LEFT JOIN orders o ON o.person = p.id AND o.at > (SELECT max(at) FROM clock) GROUP BY p.name""",
    "not_returned": f"{JOIN} NOT EXISTS (SELECT FROM returns r WHERE r.order_id = o.id) AND o.amount > 1",
    "not_in": f"{JOIN} o.id NOT IN (SELECT r.order_id FROM returns r WHERE r.order_id IS NOT NULL)",
    "not_in_with_nulls": f"{JOIN} o.id NOT IN (SELECT r.order_id FROM returns r)",
    "of_the_kept": f"{JOIN} p.id > (SELECT at FROM clock) - 8",
    "of_the_kept_with_nulls": f"{JOIN} p.id NOT IN (SELECT r.order_id FROM returns r)",
    "of_both_apart": f"{JOIN} p.id IN (SELECT r.order_id FROM returns r) AND o.at < (SELECT at FROM clock)",
    "of_neither": f"{JOIN} (SELECT count(*) FROM returns) > 2",
    "alone": "SELECT p.id, o.id AS o FROM people p LEFT JOIN orders o ON o.at > (SELECT at FROM clock)",
    "right_side": """SELECT p.id, o.id AS o FROM orders o
        RIGHT JOIN people p ON o.person = p.id AND EXISTS (SELECT FROM returns r WHERE r.order_id = o.id)""",
    "right_of_the_kept": """SELECT p.id, o.id AS o FROM orders o
        RIGHT JOIN people p ON o.person = p.id AND p.id IN (SELECT r.order_id FROM returns r)""",
    "in_a_row": """SELECT p.id, o.id AS o, r.order_id FROM people p
        LEFT JOIN orders o ON o.person = p.id AND o.at > (SELECT at FROM clock)
        LEFT JOIN returns r ON r.order_id = o.id AND r.order_id < (SELECT at FROM clock) + 3""",
    "in_parentheses": """SELECT p.id, o.id AS o, r.order_id FROM people p LEFT JOIN (
        orders o LEFT JOIN returns r ON r.order_id = o.id AND r.order_id > (SELECT at FROM clock) - 6
        ) ON o.person = p.id AND o.at > (SELECT at FROM clock) - 6""",
    "of_a_case": f"""{JOIN}
        CASE WHEN EXISTS (SELECT FROM returns WHERE order_id = o.id) THEN o.at > 4 ELSE o.amount > 1 END""",
    "newest": f"{JOIN} o.at = (SELECT max(x.at) FROM orders x WHERE x.person = p.id)",
    "newest_behind_another": """SELECT p.id, c.at AS clock, o.id AS o FROM people p LEFT JOIN clock c ON c.at > p.id
        LEFT JOIN orders o ON o.person = p.id AND o.id = (
        SELECT x.id FROM orders x WHERE x.person = p.id AND x.at < c.at ORDER BY x.at DESC, x.id LIMIT 1)""",
    "newest_and_oldest": """SELECT p.id, o.id AS o, q.id AS q, s.id AS s
        FROM (people p LEFT JOIN orders o ON o.person = p.id
            AND o.at = (SELECT max(x.at) FROM orders x WHERE x.person = p.id))
        JOIN (people q LEFT JOIN orders s ON s.person = q.id
            AND s.at = (SELECT min(x.at) FROM orders x WHERE x.person = q.id)) ON q.id = p.id + 1""",
    "either_side": f"{JOIN} (o.at > 8) = (p.id NOT IN (SELECT r.order_id FROM returns r))",
    "beside_the_right": """SELECT p.id, o.id AS o FROM orders o
        RIGHT JOIN people p ON o.person = p.id AND o.at >= (SELECT avg(x.at) FROM orders x WHERE x.person = p.id)""",
    "same_name_inside": f"{JOIN} o.at > (SELECT sum(o.at) FROM clock o)",
}


def a_change(random: Random) -> str:
    """Write one statement; now and then the clock has no row, or no value."""
    key, person, at = random.randint(1, 24), random.randint(0, 8), random.randint(0, 25)
    return random.choice(
        (
            *(f"UPDATE clock SET at = {random.choice(('NULL', at, at, at))}",) * 2,
            f"INSERT INTO orders VALUES ({key}, {person}, {at % 6}, {at})"
            " ON CONFLICT (id) DO UPDATE SET person = excluded.person, at = excluded.at",
            f"DELETE FROM orders WHERE id = {key}",
            f"INSERT INTO returns VALUES ({random.choice(('NULL', key, key, person))})",
            "DELETE FROM returns WHERE order_id IS NULL",
            f"DELETE FROM returns WHERE order_id = {key}",
            "DELETE FROM clock",
            *("INSERT INTO clock SELECT 5 WHERE NOT EXISTS (SELECT FROM clock)",) * 2,
            f"INSERT INTO people VALUES ({person}, 'x') ON CONFLICT DO NOTHING",
            f"DELETE FROM people WHERE id = {person}",
        )
    )


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_rows_without_a_partner_follow_what_the_subquery_reads(db: Database, seed: int) -> None:
    db.execute(TABLES)
    random, changed = Random(seed), Counter[str]()
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
            client.refresh(name)
        for _ in range(20):
            for _ in range(random.randint(1, 3)):
                db.execute(a_change(random))
            for name, query in QUERIES.items():
                result = client.refresh(name)
                assert result.action in ("DIFFERENTIAL", "NO_DATA"), result
                assert not differences(connection, name, query, True), name
                changed[name] += result.rows_inserted + result.rows_deleted
    assert all(changed[name] > 2 for name in QUERIES), changed


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (f"{JOIN} EXISTS (SELECT FROM returns r WHERE r.order_id = o.id AND r.order_id > p.id)", "over both sides"),
        (f"{JOIN} o.at > (SELECT at FROM clock)".replace("LEFT", "FULL"), "in the condition of a FULL JOIN"),
        (MERGED, "over both sides"),
    ],
    ids=["both sides", "full", "a merged column"],
)
def test_a_subquery_over_both_sides_is_computed_as_a_whole(db: Database, query: str, reason: str) -> None:
    db.execute(TABLES)
    with local_client(db.dsn) as (client, _):
        client.create_stream_table("whole", query)
        assert reason in client.explain("whole").data["full_reason"]
