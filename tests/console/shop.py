"""A web shop as the console shows it: sources out of step, stream tables in several states, and a long history."""

from __future__ import annotations

from tests.conftest import Database
from tests.equivalence.local_engine import local_client

SOURCES = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, region text NOT NULL);
CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL, ordered_at timestamptz NOT NULL, amount int NOT NULL);
CREATE TABLE order_lines (order_id int, line int, quantity int NOT NULL, PRIMARY KEY (order_id, line));
CREATE TABLE payments (order_id int PRIMARY KEY, paid_at timestamptz NOT NULL, paid numeric NOT NULL);
CREATE INDEX ON order_lines (order_id);
CREATE INDEX ON orders (customer);
INSERT INTO customers SELECT i, 'customer ' || i, (ARRAY['north', 'south', 'west'])[1 + i % 3]
    FROM generate_series(1, 50) AS i;
INSERT INTO orders SELECT i, 1 + i % 50, now() - i * interval '1 minute', i FROM generate_series(1, 500) AS i;
INSERT INTO order_lines SELECT i, 1, i % 7 FROM generate_series(1, 500) AS i;
INSERT INTO payments SELECT i, now(), i FROM generate_series(1, 400) AS i;
ANALYZE customers, orders, order_lines, payments;
"""
TABLES = {
    "order_totals": "SELECT o.id, o.customer, sum(l.quantity) AS items FROM orders o"
    " JOIN order_lines l ON l.order_id = o.id GROUP BY o.id, o.customer",
    "sales_by_region": "SELECT c.region, count(*) AS orders, sum(t.items) AS items FROM order_totals t"
    " JOIN customers c ON c.id = t.customer GROUP BY c.region",
    "unpaid_orders": "SELECT o.id, o.amount FROM orders o"
    " WHERE NOT EXISTS (SELECT FROM payments p WHERE p.order_id = o.id)",
    "revenue": "SELECT date_trunc('day', paid_at) AS day, sum(paid) AS paid FROM payments GROUP BY 1",
    "regions_at_risk": "SELECT s.region, s.orders, count(u.id) AS unpaid FROM sales_by_region s"
    " CROSS JOIN unpaid_orders u GROUP BY s.region, s.orders",
}
# An advance was made some seconds ago, and reached an event time so many seconds ago.
STEPS = """
CREATE TEMP TABLE step AS
SELECT s.name, now() - make_interval(secs => i * 150 + s.behind + 40 + 60 * (i % 3)) AS watermark,
    now() - make_interval(secs => i * 150 + s.shift) AS advanced_at
FROM generate_series(0, 24) AS i
CROSS JOIN (VALUES ('orders', 0, 30, 0), ('order_lines', 60, 75, 6), ('payments', 20, 10, 2))
    AS s(name, behind, shift, missing)
WHERE i > s.missing;
SELECT count(pgtrickle.advance_watermark(name, watermark)) FROM (SELECT * FROM step ORDER BY watermark) AS s;
UPDATE pgtrickle.pgt_watermark_history AS h SET advanced_at = s.advanced_at
    FROM step AS s WHERE h.source_relid = s.name::regclass AND h.watermark = s.watermark;
UPDATE pgtrickle.pgt_watermarks AS w SET advanced_at = s.advanced_at, last_seen_at = s.advanced_at
    FROM step AS s WHERE w.source_relid = s.name::regclass AND w.watermark = s.watermark;
"""
HISTORY = """
INSERT INTO pgtrickle.pgt_refresh_history (pgt_id, action, status, initiated_by, reason, started_at, finished_at,
    delta_rows, rows_inserted, rows_deleted, error, sqlstate, engine)
SELECT t.pgt_id, CASE WHEN i %% 97 = 0 THEN 'FULL' WHEN i %% 11 = 0 THEN 'NO_DATA' ELSE 'DIFFERENTIAL' END,
    CASE WHEN i %% 61 = 50 THEN 'FAILED' ELSE 'COMPLETED' END, 'SCHEDULER', (i %% 9 + 1) || ' changes in public.orders',
    s.at, s.at + make_interval(secs => m.ms / 1000.0), i %% 9 + 1, i %% 9, i %% 4,
    CASE WHEN i %% 61 = 50 THEN 'division by zero of s3cr3t-of-a-row' END, CASE WHEN i %% 61 = 50 THEN '22012' END,
    'postgres'
FROM pgtrickle.pgt_stream_tables AS t CROSS JOIN generate_series(1, %s) AS i
CROSS JOIN LATERAL (SELECT now() - make_interval(secs => (%s - i) * 20) AS at) AS s
CROSS JOIN LATERAL (
    SELECT 18 + 12 * abs(sin(i / 9.0)) + CASE WHEN i %% 97 = 0 THEN 140 ELSE (i * 37) %% 23 END AS ms) AS m
WHERE t.pgt_name = 'order_totals'
"""


def furnish(db: Database, refreshes: int = 60) -> Database:
    """Fill a database: three loaders, one of which lags, five stream tables, late data, an alert, a feed, a failure."""
    with db.connect() as connection:
        connection.execute(SOURCES)
    with local_client(db.dsn) as (client, _):
        client.create_watermark_group("shop", ["orders", "order_lines", "payments"], "4 minutes")
        for name, query in TABLES.items():
            client.create_stream_table(name, query, watermark_gating="gate" if name == "unpaid_orders" else "none")
        client.tick()
        client.set_event_time("orders", "ordered_at", "1 day")
    with db.connect() as connection:
        connection.execute(STEPS)
    db.execute(
        "SELECT pgtrickle.alert('stale', 'public.order_lines', true, 'public.order_lines is stale: not seen', 'shop')"
    )
    db.execute("SELECT pgtrickle.alert('idle', 'public.payments', true, 'public.payments was idle', 'shop')")
    db.execute("SELECT pgtrickle.alert('idle', 'public.payments', false, 'public.payments is back', 'shop')")
    db.execute("SELECT pgtrickle.create_feed('billing', 'order_totals')")
    db.execute(HISTORY, refreshes, refreshes)
    db.execute(
        "UPDATE pgtrickle.pgt_stream_tables SET last_error = 'division by zero of s3cr3t-of-a-row',"
        " last_sqlstate = '22012', status = 'ERROR', consecutive_failures = 2 WHERE pgt_name = 'revenue'"
    )
    return db
