"""Tables whose few changes are taken back by lookups: joins of many tables all of which changed."""

from random import Random

import pytest

import pytrickle
from tests.conftest import Database
from tests.repeats import first

TABLES = """
CREATE TABLE countries (id int PRIMARY KEY, name text, area int);
CREATE TABLE suppliers (id int PRIMARY KEY, country int);
CREATE TABLE customers (id int PRIMARY KEY, country int);
CREATE TABLE parts (code text UNIQUE, kind int);
CREATE TABLE rates (country int, day int, rate numeric(6,2), UNIQUE (country, day));
CREATE TABLE orders (id int PRIMARY KEY, customer int, day int);
CREATE TABLE lines (order_id int, place int, part text, supplier int, n int, PRIMARY KEY (order_id, place));
CREATE INDEX ON suppliers (country);
CREATE INDEX ON customers (country);
CREATE INDEX ON orders (customer);
CREATE INDEX ON lines (part);
CREATE INDEX ON lines (supplier);
INSERT INTO countries SELECT i, 'c' || i % 5, i % 3 FROM generate_series(1, 8) AS i;
INSERT INTO suppliers SELECT i, i % 9 FROM generate_series(1, 20) AS i;
INSERT INTO customers SELECT i, nullif(i % 9, 0) FROM generate_series(1, 40) AS i;
INSERT INTO parts SELECT nullif('p' || i, 'p7'), i % 4 FROM generate_series(1, 30) AS i;
INSERT INTO rates SELECT nullif(c, 4), d, c + d FROM generate_series(1, 8) AS c, generate_series(1, 4) AS d;
INSERT INTO orders SELECT i, i % 42, i % 5 FROM generate_series(1, 100) AS i;
INSERT INTO lines
SELECT i % 100 + 1, i / 100, nullif('p' || i % 32, 'p0'), i % 22, i % 7 FROM generate_series(1, 400) AS i;
ANALYZE
"""
SHIPPED = """lines l JOIN orders o ON o.id = l.order_id JOIN customers b ON b.id = o.customer
JOIN suppliers s ON s.id = l.supplier JOIN countries c1 ON c1.id = b.country JOIN countries c2 ON c2.id = s.country"""
QUERIES = {
    "shares": f"""SELECT o.day, sum(CASE WHEN c2.name = 'c1' THEN l.n END) AS own, count(*) AS n, sum(l.n) AS s
FROM {SHIPPED} JOIN parts p ON p.code = l.part WHERE p.kind < 3 AND c1.area <> 1 GROUP BY o.day""",
    "within": f"SELECT c1.name, l.n, p.kind FROM {SHIPPED} JOIN parts p ON p.code = l.part WHERE b.country = s.country",
    "rated": """SELECT o.id, l.place, l.n * r.rate AS price FROM lines l JOIN orders o ON o.id = l.order_id
JOIN customers b ON b.id = o.customer JOIN rates r ON r.country = b.country AND r.day = o.day""",
    "missing": """SELECT l.order_id, o.day, b.country, c.name FROM lines l LEFT JOIN orders o ON o.id = l.order_id
LEFT JOIN customers b ON b.id = o.customer LEFT JOIN countries c ON c.id = b.country""",
    "alone": f"""SELECT s.id, count(*) AS n FROM {SHIPPED} WHERE NOT EXISTS (SELECT FROM lines x
WHERE x.order_id = l.order_id AND x.supplier <> l.supplier) AND c1.area < 2 GROUP BY s.id""",
    "least": """SELECT p.code, s.country, l.n FROM lines l JOIN parts p ON p.code = l.part
JOIN suppliers s ON s.id = l.supplier WHERE l.n = (SELECT min(x.n) FROM lines x JOIN suppliers y ON y.id = x.supplier
JOIN countries c ON c.id = y.country WHERE x.part = p.code AND c.area > 0)""",
    "pairs": """SELECT DISTINCT c1.name, c2.name AS other FROM suppliers s JOIN countries c1 ON c1.id = s.country
JOIN customers b ON b.id = s.id JOIN countries c2 ON c2.id = b.country""",
    "series": """SELECT o.id, g.day, b.country FROM orders o JOIN customers b ON b.id = o.customer
CROSS JOIN LATERAL generate_series(o.day, 3) AS g (day) JOIN countries c ON c.id = g.day""",
}
CHANGES = (
    "UPDATE countries SET area = (area + 1) % 3 WHERE id = {0} % 8 + 1",
    "UPDATE countries SET name = 'c' || {0} % 5 WHERE id = {0} % 3",
    "UPDATE suppliers SET country = {0} % 9 WHERE id = {0} % 20 + 1",
    "UPDATE suppliers SET id = id + 100 WHERE id = {0} % 20 + 1",
    "UPDATE customers SET country = nullif({0} % 9, 0) WHERE id IN ({0} % 40, {0} % 7)",
    "WITH gone AS (DELETE FROM customers WHERE id = {0} % 40 + 1 RETURNING *) SELECT * FROM gone",
    "INSERT INTO customers VALUES ({0} % 40 + 1, {0} % 8) ON CONFLICT (id) DO UPDATE SET country = excluded.country",
    "UPDATE parts SET kind = ({0} + kind) % 4 WHERE code IS NULL OR code = 'p' || {0} % 30",
    "UPDATE parts SET code = CASE WHEN code IS NULL THEN 'p7' END WHERE code = 'p7' OR code IS NULL",
    "UPDATE rates SET rate = {0} % 50, day = day WHERE country IS NULL OR country = {0} % 8",
    "DELETE FROM rates WHERE country = {0} % 8 AND day = {0} % 4",
    "INSERT INTO rates VALUES ({0} % 8, {0} % 4, 7) ON CONFLICT DO NOTHING",
    "UPDATE orders SET customer = {0} % 42, day = day + 1 WHERE id % 17 = {0} % 17",
    "DELETE FROM orders WHERE id = {0} % 100",
    "INSERT INTO orders VALUES ({0} % 100, {0} % 40, {0} % 5) ON CONFLICT DO NOTHING",
    "UPDATE lines SET n = n + 1, supplier = {0} % 22 WHERE order_id % 13 = {0} % 13",
    "UPDATE lines SET part = 'p' || {0} % 32 WHERE supplier = {0} % 22",
    "INSERT INTO lines SELECT {0} % 100 + 1, 10 + {0}, 'p' || {0} % 30, {0} % 20, {0} % 7 ON CONFLICT DO NOTHING",
)
CHANGED = {
    "countries": "area = 0 WHERE id = 3",
    "suppliers": "country = 1 WHERE id < 4",
    "customers": "country = 2 WHERE id < 9",
    "parts": "kind = 2 WHERE kind = 1",
    "orders": "day = day + 1 WHERE id < 30",
    "lines": "n = n + 1 WHERE place = 2",
}


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("seed", first(1, range(8), then=3))
def test_rows_are_those_of_the_query_whatever_changed(db: Database, seed: int, held: bool) -> None:
    """Held back, changes that came after the cut are taken back as well."""
    db.execute(TABLES)
    chance, names = Random(seed), ["countries", "suppliers", "customers", "parts", "rates", "orders", "lines"]
    options = {"watermark_gating": "hold_back"} if held else {}
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        if held:
            db.execute(f"SELECT pgtrickle.create_watermark_group('all', ARRAY{names})")
            advance(db, names, 0)
        for name, query in QUERIES.items():
            client.create_stream_table(name, query, refresh_mode="DIFFERENTIAL", **options)
        client.tick()
        for number in range(1, 9):
            change(db, chance)
            before = {name: db.execute(f"SELECT * FROM ({query}) AS q") for name, query in QUERIES.items()}
            if held:
                advance(db, names, number)
                change(db, chance)
            assert {result.error for result in client.tick()} == {None}
            for name, expected in before.items():
                shown = db.execute(f"SELECT * FROM {name}")
                assert sorted(map(str, shown)) == sorted(map(str, expected)), (name, number)


def test_seven_changed_tables_make_few_parts(db: Database) -> None:
    db.execute(TABLES)
    with pytrickle.connect(db.dsn, engine="postgres") as client:
        client.create_stream_table("shares", QUERIES["shares"], refresh_mode="DIFFERENTIAL")
        client.tick()
        for table in ("countries", "suppliers", "customers", "parts", "orders", "lines"):
            db.execute(f"UPDATE {table} SET {CHANGED[table]}")
        text = str(client.explain("shares").data["sql"])
        assert client.refresh("shares").action == "DIFFERENTIAL" and client.verify("shares").matches
    # Multiplied out, the changes of the last table alone would be joined 64 times.
    assert 10 <= text.count("FROM pgt_delta_") <= 40 and text.count("OFFSET 0") > 20


def change(db: Database, chance: Random) -> None:
    """Make some changes, in one transaction or in several."""
    statements = [chance.choice(CHANGES).format(chance.randrange(100)) for _ in range(chance.randrange(2, 8))]
    for some in [statements] if chance.random() < 0.5 else [[each] for each in statements]:
        db.execute(";\n".join(some))


def advance(db: Database, names: list[str], day: int) -> None:
    moment = f"timestamptz '2026-01-01' + {day} * interval '1 day'"
    db.execute("SELECT " + ", ".join(f"pgtrickle.advance_watermark('{name}', {moment})" for name in names))
