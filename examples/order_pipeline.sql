-- Two loaders at different paces and a report that waits until they agree, from SQL alone.
--
--     pytrickle install
--     psql -f examples/order_pipeline.sql
--
-- psql and pytrickle read the same libpq environment (PGHOST, PGDATABASE, …). The lines that begin with \! refresh
-- whatever is due; where `pytrickle run` runs as a daemon, they are not needed.

CREATE SCHEMA shop;
SET search_path = shop;

CREATE TABLE orders (id bigint PRIMARY KEY, customer text NOT NULL, placed_at timestamptz NOT NULL);
CREATE TABLE order_lines (order_id bigint NOT NULL, product text NOT NULL, amount numeric NOT NULL);

-- The sources that must agree before they are shown together.
SELECT pgtrickle.create_watermark_group('shop_pipeline', ARRAY['orders', 'order_lines']);

-- The intermediate tables have one source each and refresh freely. The report reads both of them, so it reads two
-- sources of the group, if only through other stream tables: by default it is gated.
SELECT pgtrickle.create_stream_table('order_summary',
    'SELECT id AS order_id, customer, count(*) AS orders FROM orders GROUP BY id, customer');
SELECT pgtrickle.create_stream_table('line_summary',
    'SELECT order_id, count(*) AS lines, sum(amount) AS amount FROM order_lines GROUP BY order_id');
SELECT pgtrickle.create_stream_table('order_report',
    'SELECT s.customer, sum(s.orders) AS orders, sum(l.lines) AS lines, sum(l.amount) AS amount
     FROM order_summary s JOIN line_summary l ON l.order_id = s.order_id
     GROUP BY s.customer');

-- A load and the advance of its watermark belong into one transaction.
BEGIN;
INSERT INTO orders VALUES (1, 'Ada', '2026-03-02 11:40Z'), (2, 'Boole', '2026-03-02 11:52Z');
SELECT pgtrickle.advance_watermark('orders', '2026-03-02 11:55Z');
COMMIT;

BEGIN;
INSERT INTO order_lines VALUES (1, 'pen', 2.50), (1, 'ink', 7.10), (2, 'paper', 4);
SELECT pgtrickle.advance_watermark('order_lines', '2026-03-02 11:55Z');
COMMIT;

\! pytrickle tick
SELECT * FROM order_report ORDER BY customer;

-- The orders API is ahead of the lines API; the report stays as it is, and says why.
BEGIN;
INSERT INTO orders VALUES (3, 'Ada', '2026-03-02 11:58Z');
SELECT pgtrickle.advance_watermark('orders', '2026-03-02 12:05Z');
COMMIT;
INSERT INTO order_lines VALUES (3, 'table', 120);

\! pytrickle tick
SELECT * FROM order_report ORDER BY customer;
SELECT group_name, lag, aligned, waiting_for FROM pgtrickle.watermark_status();
SELECT stream_table, decision, reason FROM pgtrickle.pgt_status() ORDER BY stream_table;

-- The lines catch up.
BEGIN;
INSERT INTO order_lines VALUES (3, 'chair', 60);
SELECT pgtrickle.advance_watermark('order_lines', '2026-03-02 12:05Z');
COMMIT;

\! pytrickle tick
SELECT * FROM order_report ORDER BY customer;
