"""FROM a, LATERAL f(a.x) JOIN b: PostgreSQL prints joins in parentheses that begin with LATERAL."""

from random import Random

from tests.conftest import Database
from tests.equivalence.local_engine import local_client
from tests.equivalence.oracle import differences

TABLES = """
CREATE TABLE orders (id int PRIMARY KEY, parts int[]);
CREATE TABLE prices (part int, price numeric);
CREATE TABLE notes (part int, note text);
INSERT INTO orders SELECT n, ARRAY[n % 4, n % 3] FROM generate_series(1, 6) AS n;
INSERT INTO prices VALUES (0, 1.0), (1, 2.5), (1, 2.5), (3, NULL);
INSERT INTO notes VALUES (1, 'm'), (2, 'm');
"""
QUERIES = {
    "function": "SELECT o.id, p.price FROM orders o, unnest(o.parts) AS u (part) JOIN prices p ON p.part = u.part",
    "outer": "SELECT o.id, u.part, p.price FROM orders o, unnest(o.parts) AS u (part) LEFT JOIN prices p USING (part)",
    "by_name": """SELECT n.note, u.part, p.price
        FROM notes n, generate_series(1, n.part) AS u (part) JOIN prices p USING (part)""",
    "ordinality": """SELECT o.id, u.n, p.price FROM orders o, unnest(o.parts) WITH ORDINALITY AS u (part, n)
        JOIN prices p ON p.part = u.part AND u.n = 1""",
    "values": """SELECT o.id, p.price FROM orders o, LATERAL (VALUES (o.id), (1)) AS v (part)
        LEFT JOIN prices p USING (part)""",
    "rows": """SELECT o.id, v.n, p.price
        FROM orders o, ROWS FROM (unnest(o.parts), generate_series(1, o.id)) AS v (part, n)
        JOIN prices p ON p.part = v.part""",
    "subquery": """SELECT o.id, x.price, n.note
        FROM orders o, LATERAL (SELECT * FROM prices p WHERE p.part = o.id) AS x
        FULL JOIN notes n ON n.part = x.part""",
    "groups": """SELECT o.id, x.n, y.note FROM orders o,
        LATERAL (SELECT part, count(*) AS n FROM prices p WHERE p.part < o.id GROUP BY part) AS x
        LEFT JOIN notes y ON y.part = x.part""",
    "further": """SELECT o.id, p.price, g FROM orders o, unnest(o.parts) AS u (part) JOIN prices p USING (part)
        JOIN LATERAL generate_series(u.part, o.id) AS g ON g > p.price""",
    "exists": """SELECT o.id FROM orders o WHERE EXISTS (
        SELECT FROM notes n, unnest(ARRAY[n.part, 2]) AS u (part) JOIN prices p ON p.part = u.part
        WHERE n.part = o.id AND EXISTS (SELECT FROM notes m WHERE m.part = u.part))""",
    "of_the_row": """SELECT o.id, (
        SELECT max(u.part + v.n) FROM unnest(o.parts) AS u (part), generate_series(u.part, 3) AS g
        JOIN (VALUES (1), (2)) AS v (n) ON v.n = g) AS most FROM orders o""",
}


def a_change(random: Random) -> str:
    part, price = random.randrange(5), random.choice(("NULL", "1", "1.50"))
    return random.choice(
        (
            f"INSERT INTO prices VALUES ({part}, {price})",
            f"DELETE FROM prices WHERE part = {part}",
            f"INSERT INTO notes VALUES ({part}, 'n')",
            f"DELETE FROM notes WHERE part = {part}",
            f"UPDATE orders SET parts = parts || {part} WHERE id = {part + 1}",
            f"UPDATE orders SET parts = ARRAY[{part}, NULL] WHERE id = {part + 1}",
        )
    )


def test_joins_that_begin_with_lateral_are_differential(db: Database) -> None:
    db.execute(TABLES)
    random, changed = Random(1), set[str]()
    with local_client(db.dsn) as (client, _), db.connect() as connection:
        for name, query in QUERIES.items():
            client.create_stream_table(f"of_{name}", query, refresh_mode="DIFFERENTIAL")
            client.refresh(f"of_{name}")
        for _ in range(15):
            db.execute(a_change(random))
            db.execute(a_change(random))
            for name, query in QUERIES.items():
                result = client.refresh(f"of_{name}")
                assert result.action in ("DIFFERENTIAL", "NO_DATA"), result
                assert not differences(connection, f"of_{name}", query, True), name
                changed |= {name} if result.rows_inserted + result.rows_deleted else set()
        assert all(client.verify(f"of_{name}").matches for name in QUERIES)
    assert changed == QUERIES.keys()
